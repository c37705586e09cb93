package cosmosstore

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
)

// requestVersion is the version of the request member that this package writes, and the only one that it reads.
const requestVersion = 1

// largestExact is the largest whole number up to which a double holds every whole number.
const largestExact = 1 << 53

// requestMember says which message a document came from. A sender cannot write it: his content is a member of its own. It is
// read by [document.record], member by member, since decoding into a struct takes KEY for key.
type requestMember struct {
	Version   int    `json:"version"`
	Key       string `json:"key"`
	MessageID string `json:"messageId"`
	Attempt   string `json:"attempt"`

	// Those of the inbox record.
	Program        string                  `json:"program,omitempty"`
	ProgramVersion string                  `json:"programVersion,omitempty"`
	Hash           string                  `json:"hash,omitempty"`
	Parameters     *fingerprint.Parameters `json:"parameters,omitempty"`
	State          string                  `json:"state,omitempty"`
	Outcome        json.RawMessage         `json:"outcome,omitempty"`
	Outbox         bool                    `json:"outbox,omitempty"`
	// Documents is 0 in a record whose message created no documents, so that nobody looks for one.
	Documents *int `json:"documents,omitempty"`
	// SequenceNumber is a number, or a text where a double would round it, as those of partitioned queues.
	SequenceNumber any      `json:"sequenceNumber,omitempty"`
	EnqueuedAt     string   `json:"enqueuedAt,omitempty"`
	CommittedAt    string   `json:"committedAt,omitempty"`
	Parts          []string `json:"parts,omitempty"`
	// PartTTLs are the times to live, in seconds, of those parts that have one.
	PartTTLs map[string]int64 `json:"partTTLs,omitempty"`
	// Claim is that of a record in progress.
	Claim *claimMember `json:"claim,omitempty"`

	// Those of a further document: its name, and the id of the first one.
	Part     string `json:"part,omitempty"`
	Document string `json:"document,omitempty"`
}

// partMember is the member of a further document.
func partMember(c worker.Commit, at time.Time, part string) *requestMember {
	return &requestMember{Version: requestVersion, Key: c.Key.String(), MessageID: c.MessageID, Attempt: c.Attempt,
		CommittedAt: timeText(at), Part: part, Document: c.DocumentID}
}

// recordMember is the inbox record.
func recordMember(c worker.Commit, at time.Time) *requestMember {
	r := partMember(c, at, "")
	r.Document = ""
	r.Program, r.ProgramVersion = c.Program, c.ProgramVersion
	r.Hash, r.Parameters = c.Fingerprint.Hash, &c.Fingerprint.Parameters
	r.Outcome, r.Outbox, r.EnqueuedAt = c.Outcome, len(c.Messages) > 0, timeText(c.EnqueuedAt)
	switch n := c.SequenceNumber; {
	case n == 0:
	case n >= -largestExact && n <= largestExact:
		r.SequenceNumber = n
	default:
		r.SequenceNumber = strconv.FormatInt(n, 10)
	}
	if len(c.Documents) == 0 {
		r.Documents = new(int)
		return r
	}
	for _, d := range c.Documents[1:] {
		r.Parts = append(r.Parts, d.Name)
		if d.TTL > 0 {
			if r.PartTTLs == nil {
				r.PartTTLs = map[string]int64{}
			}
			r.PartTTLs[d.Name] = int64(d.TTL / time.Second)
		}
	}
	return r
}
