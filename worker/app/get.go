package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

// getTimeout bounds one look into the store, retries included.
const getTimeout = 30 * time.Second

// getSettings are the settings that say where the documents are and what their ids are made of.
func (c *config) getSettings() []setting {
	more := []string{"WORKER_ALLOW_KEYS", "SERVICEBUS_SUBSCRIPTION", "WORKER_CONSUMER", "WORKER_PARTITION", "WORKER_INBOX_RECORD"}
	return append(c.storeSettings(), slices.DeleteFunc(c.settings(), func(s setting) bool { return !slices.Contains(more, s.env) })...)
}

func newGet(sys system) *cobra.Command {
	var k keyFlags
	var output, partition string
	table := new(config).getSettings()
	c := &cobra.Command{
		Use: "get KEY", Short: "Show what is stored for a key", Args: needArgs("KEY"),
		Long: `Show what is stored for a key: the inbox record, the documents, and the program that committed them. Changes nothing.

KEY is the MessageId, or what WORKER_KEY names. Give it the settings of the worker: WORKER_CONSUMER is part of the key.
Where WORKER_PARTITION is not the key, --partition-value says which partition the message names.

` + secretSettings(table) + `

Exit codes: 0 when something is stored, 1 when the store cannot be read, 2 when a setting or the command is wrong, 4 when
nothing is stored.`,
		Example: sys.named("  {program} get 1042\n  {program} get 1042 -o json\n  {program} get M42 --partition-value 913"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			cfg, err := resolveTable(sys, c.Flags(), (*config).getSettings, (*config).checkStore)
			if err != nil {
				return err
			}
			id, err := k.documentID(cfg.worker.Admission.Consumer, args[0])
			if err != nil {
				return withCode(exitUsage, err)
			}
			found, err := cfg.get(c.Context(), partition, id)
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(sys.stdout, found)
			}
			return found.table(sys.stdout)
		},
	}
	bind(c.Flags(), table)
	k.bind(c.Flags())
	c.Flags().StringVar(&partition, "partition-value", "", "value of what WORKER_PARTITION names in the message; empty is the partition of the key")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

// get reads what is stored under a document id in a partition, or in the id's own when that is empty.
func (c config) get(ctx context.Context, partition, id string) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	t, log := quiet()
	k, err := newConnector(c)
	if err != nil {
		return stored{}, withCode(exitUsage, err)
	}
	store, err := k.openStore(ctx, t, log)
	if err != nil {
		return stored{}, err
	}
	defer store.Close()
	where := ""
	if partition != "" {
		partition = partitionOf(partition)
		where = fmt.Sprintf(", partition %s", partition)
	}
	i, err := store.Inspect(ctx, partition, id)
	if errors.Is(err, worker.ErrNotFound) {
		return stored{}, withCode(exitAbsent, fmt.Errorf("nothing is stored for this key: there is no document %s in %s/%s%s", id, c.store.Database, c.store.Container, where))
	}
	return storedOf(id, i), err
}

// partitionOf is the partition key value of what a message names, "" for none.
func partitionOf(value string) string {
	if value == "" {
		return ""
	}
	return identity.Text(value).DocumentID()
}

// stored is what is stored for a key, as people and programs read it.
type stored struct {
	DocumentID     string                   `json:"documentId"`
	Key            string                   `json:"key,omitempty"`
	Program        string                   `json:"program,omitempty"`
	ProgramVersion string                   `json:"programVersion,omitempty"`
	MessageID      string                   `json:"messageId,omitempty"`
	SequenceNumber int64                    `json:"sequenceNumber,omitempty"`
	EnqueuedAt     time.Time                `json:"enqueuedAt,omitzero"`
	CommittedAt    time.Time                `json:"committedAt,omitzero"`
	Fingerprint    *fingerprint.Fingerprint `json:"fingerprint,omitempty"`
	Outcome        json.RawMessage          `json:"outcome,omitempty"`
	Stale          bool                     `json:"stale,omitempty"`
	Claim          string                   `json:"claim,omitempty"`
	Unknown        string                   `json:"unknown,omitempty"`
	Missing        []string                 `json:"missing,omitempty"`
	Documents      []storedDocument         `json:"documents"`
	Calls          int                      `json:"calls"`
	Charge         float64                  `json:"charge"`
}

type storedDocument struct {
	ID         string          `json:"id"`
	Name       string          `json:"name,omitempty"`
	Type       string          `json:"type,omitempty"`
	ModifiedAt time.Time       `json:"modifiedAt,omitzero"`
	Content    json.RawMessage `json:"content,omitempty"`
	Body       json.RawMessage `json:"body"`
}

func storedOf(id string, i cosmosstore.Inspection) stored {
	r := i.Record
	s := stored{
		DocumentID: id, Key: r.Key, Program: r.Program, ProgramVersion: r.ProgramVersion, MessageID: r.MessageID, SequenceNumber: r.SequenceNumber,
		EnqueuedAt: r.EnqueuedAt, CommittedAt: r.CommittedAt, Fingerprint: r.Fingerprint, Outcome: r.Outcome, Stale: r.Stale, Unknown: r.Unknown, Missing: r.MissingParts,
		Claim: claimText(r.Claim), Documents: []storedDocument{}, Calls: i.Calls, Charge: i.Charge,
	}
	for _, d := range i.Documents {
		s.Documents = append(s.Documents, storedDocument{ID: d.ID, Name: d.Name, Type: d.Type, ModifiedAt: d.ModifiedAt, Content: d.Content, Body: d.Body})
	}
	return s
}

func (s stored) table(out io.Writer) error {
	sequence, hash, stale := "", "", ""
	if s.SequenceNumber != 0 {
		sequence = strconv.FormatInt(s.SequenceNumber, 10)
	}
	if s.Fingerprint != nil {
		hash = s.Fingerprint.Hash
	}
	if s.Stale {
		stale = "a newer version was stored already; nothing but the record was committed"
	}
	facts(out, [][2]string{
		{"document id", s.DocumentID}, {"key", s.Key}, {"program", strings.TrimSpace(s.Program + " " + s.ProgramVersion)}, {"message id", s.MessageID},
		{"sequence number", sequence}, {"enqueued", when(s.EnqueuedAt)}, {"committed", when(s.CommittedAt)}, {"hash", hash}, {"outcome", string(s.Outcome)},
		{"stale", stale}, {"claim", s.Claim}, {"not understood", s.Unknown}, {"missing", strings.Join(s.Missing, ", ")},
		{"read with", fmt.Sprintf("%d request(s), %.2f request units", s.Calls, s.Charge)},
	})
	for _, d := range s.Documents {
		fmt.Fprintln(out)
		facts(out, [][2]string{{"document", d.ID}, {"type", d.Type}, {"name", d.Name}, {"modified", when(d.ModifiedAt)}})
		content := d.Content // of the handler; an inbox record of its own has none, and is shown whole
		if content == nil {
			content = d.Body
		}
		var b bytes.Buffer
		if json.Indent(&b, content, "  ", "  ") != nil {
			b = *bytes.NewBuffer(content)
		}
		if _, err := fmt.Fprintf(out, "  %s\n", deadletter.VisibleJSON(b.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// claimText is the state of a record in progress, or "".
func claimText(c *worker.ClaimRecord) string {
	if c == nil {
		return ""
	}
	state := fmt.Sprintf("in progress, with a lease of %s", c.Lease)
	switch {
	case c.Released:
		state = "released, so that nothing stands against another attempt"
	case c.Over:
		state = "expired: the attempt may have got half way"
	}
	return fmt.Sprintf("attempt %d, since %s, %s", c.Number, when(c.Since), state)
}

// facts writes names with their values, but for empty ones.
func facts(out io.Writer, rows [][2]string) {
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(out, "%-16s %s\n", row[0], deadletter.Visible(row[1]))
		}
	}
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
