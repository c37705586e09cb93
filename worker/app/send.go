package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/messagejson"
)

// sendTimeout bounds one send, reconnects included.
const sendTimeout = 30 * time.Second

func newSend(sys system) *cobra.Command {
	var checkOnly bool
	table := new(config).brokerSettings()
	c := &cobra.Command{
		Use:   "send [FILE]",
		Short: "Send messages from a file of JSON lines, or from standard input",
		Long: `Send messages from a file of JSON lines, or from standard input.

A line is one message: {"message_id":"1042","body":{"orderId":"1042","amount":40}}.
Every line is checked before the first message is sent. Blank lines are skipped. For all members of a line see
go doc github.com/orderworker/orderworker/internal/messagejson

` + secretSettings(table) + `

Exit codes: 0 when all were sent, 1 when the broker did not take one, 2 when a line, a setting or the command is wrong.`,
		Example: sys.named(`  echo '{"message_id":"1042","body":{"orderId":"1042","amount":40}}' | {program} send
  {program} send --check orders.jsonl`),
		Args: func(c *cobra.Command, args []string) error {
			return withCode(exitUsage, cobra.MaximumNArgs(1)(c, args))
		},
		RunE: func(c *cobra.Command, args []string) error {
			lines, err := readLines(sys, append(args, "-")[0], decodeNumbered)
			if err != nil {
				return withCode(exitUsage, err)
			}
			if checkOnly {
				_, err := fmt.Fprintf(sys.stdout, "%d message(s) can be sent\n", len(lines))
				return err
			}
			cfg, err := resolveTable(sys, c.Flags(), (*config).brokerSettings, (*config).checkBroker)
			if err != nil {
				return err
			}
			ctx, release := interruptible(c.Context())
			defer release()
			return sendAll(ctx, cfg, lines, sys)
		},
	}
	bind(c.Flags(), table)
	c.Flags().BoolVar(&checkOnly, "check", false, "check the lines and send nothing")
	return c
}

// numbered is a message with its line, and the size of that line in bytes.
type numbered struct {
	line, size int
	message    *azservicebus.AMQPAnnotatedMessage
}

func decodeNumbered(line int, text []byte) (numbered, error) {
	m, err := messagejson.Decode(text)
	return numbered{line, len(text), m}, err
}

func sendAll(ctx context.Context, cfg config, lines []numbered, sys system) error {
	k, err := newConnector(cfg)
	if err != nil {
		return withCode(exitUsage, err)
	}
	k.impatient = true
	client, err := k.serviceBus()
	if err != nil {
		return err
	}
	defer closeClient(client)
	sender, err := client.NewSender(cfg.sendsTo(), nil)
	if err != nil {
		return err
	}
	meter := newMeter(sys.stderr)
	defer meter.clear()
	for i, l := range lines {
		meter.show(fmt.Sprintf("%d of %d sent", i, len(lines)))
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: line %d was not sent, nor anything after it; %d message(s) before it were", l.line, i)
		}
		// What is begun is finished, so that it is known what was sent.
		err := sendOne(context.WithoutCancel(ctx), sender, l.message)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			err = fmt.Errorf("the message is larger than %q takes. Its line has %d bytes; a queue or topic takes 256 KB in the tier Standard, and in Premium 1 MB unless it is set to more", cfg.sendsTo(), l.size)
		}
		if err != nil {
			return fmt.Errorf("line %d was not sent, nor anything after it; %d message(s) before it were: %w", l.line, i, explainBroker(cfg, err))
		}
	}
	meter.clear()
	_, err = fmt.Fprintf(sys.stdout, "%d message(s) sent to %s\n", len(lines), cfg.sendsTo())
	return err
}

func sendOne(ctx context.Context, sender *azservicebus.Sender, m *azservicebus.AMQPAnnotatedMessage) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return sender.SendAMQPAnnotatedMessage(ctx, m, nil)
}

// closeClient closes a client without waiting for a peer that does not answer.
func closeClient(client *azservicebus.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = client.Close(ctx)
}
