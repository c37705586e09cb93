package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/worker/messagejson"
)

// maxLine is the longest line read, above any message that a queue takes.
const maxLine = 128 << 20

// sendTimeout bounds one send, reconnects included.
const sendTimeout = 30 * time.Second

func newSend(sys system) *cobra.Command {
	var checkOnly bool
	c := &cobra.Command{
		Use:   "send [FILE]",
		Short: "Send messages from a file of JSON lines, or from standard input",
		Long: `Send messages from a file of JSON lines, or from standard input.

A line is one message: {"message_id":"1042","body":{"orderId":"1042","amount":40}}.
Every line is checked before the first message is sent. Blank lines are skipped.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lines, err := readLines(sys.stdin, args)
			if err != nil {
				return withCode(exitUsage, err)
			}
			if checkOnly {
				_, err := fmt.Fprintf(sys.stdout, "%d message(s) can be sent\n", len(lines))
				return err
			}
			cfg, err := resolveBroker(sys.environ, c.Flags())
			if err != nil {
				return err
			}
			return sendAll(c.Context(), cfg, lines, sys.stdout)
		},
	}
	bindBroker(c.Flags())
	c.Flags().BoolVar(&checkOnly, "check", false, "check the lines and send nothing")
	return c
}

// numbered is a message with the line on which it stands.
type numbered struct {
	line    int
	message *azservicebus.AMQPAnnotatedMessage
}

func readLines(stdin io.Reader, args []string) ([]numbered, error) {
	name, in := "standard input", stdin
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer f.Close()
		name, in = args[0], f
	}
	var lines []numbered
	var faults []error
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	for n := 1; scanner.Scan(); n++ {
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		m, err := messagejson.Decode(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s, line %d: %w", name, n, err))
			continue
		}
		lines = append(lines, numbered{line: n, message: m})
	}
	if err := scanner.Err(); err != nil {
		faults = append(faults, fmt.Errorf("%s: %w", name, err))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("nothing was sent:\n%w", errors.Join(indent(faults)...))
	}
	return lines, nil
}

func sendAll(ctx context.Context, cfg config, lines []numbered, out io.Writer) error {
	k, err := newConnector(cfg)
	if err != nil {
		return err
	}
	k.impatient = true
	client, err := k.serviceBus()
	if err != nil {
		return err
	}
	defer closeClient(client)
	sender, err := client.NewSender(cfg.queue, nil)
	if err != nil {
		return err
	}
	for i, l := range lines {
		if err := sendOne(ctx, sender, l.message); err != nil {
			return fmt.Errorf("line %d was not sent, nor anything after it; %d message(s) before it were: %w", l.line, i, explainBroker(cfg, err))
		}
	}
	_, err = fmt.Fprintf(out, "%d message(s) sent to %s\n", len(lines), cfg.queue)
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
