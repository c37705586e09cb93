package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/worker/identity"
)

func newKey(sys system) *cobra.Command {
	key := group("key", "Translate between message keys and document ids")
	key.AddCommand(newKeyEncode(sys), newKeyDecode(sys))
	return key
}

func newKeyEncode(sys system) *cobra.Command {
	var k identity.Key
	var kind string
	c := &cobra.Command{
		Use: "encode KEY", Short: "Print the id under which the document of a key stands", Args: needArgs("KEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			k.Kind, k.Value = identity.Kind(kind), args[0]
			_, err := fmt.Fprintln(sys.stdout, k.DocumentID())
			return err
		},
	}
	c.Flags().StringVar(&k.Consumer, "consumer", "", "name of the consumer, when it is part of the key")
	c.Flags().StringVar(&kind, "kind", string(identity.String), "string, number, ulong, uuid, binary or cloudevent")
	c.Flags().StringVar(&k.Source, "source", "", "source of the event, for a cloudevent")
	return c
}

func newKeyDecode(sys system) *cobra.Command {
	return &cobra.Command{
		Use: "decode ID", Short: "Print the key whose document stands under an id", Args: needArgs("ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := identity.ParseDocumentID(args[0])
			switch {
			case errors.Is(err, identity.ErrDigest):
				return withCode(exitAbsent, fmt.Errorf("this id is the digest of a long key. The key itself stands in the document as request.key"))
			case err != nil:
				return withCode(exitUsage, err)
			}
			_, err = fmt.Fprintln(sys.stdout, k.String())
			return err
		},
	}
}
