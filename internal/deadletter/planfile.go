package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// planVersion is the version of the file format.
const planVersion = 1

// A Plan says what is to be done with dead letters, in the order of their sequence numbers. One of 100,000 steps takes some 20 MB.
type Plan struct {
	PlanHeader
	Steps []PlanStep
}

// A PlanHeader is the first line of a plan file.
type PlanHeader struct {
	Version int `json:"plan"`
	// ID names the plan in the ledger.
	ID    string `json:"id"`
	Queue string `json:"queue"`
	// Program is the program that made the plan, and the one that may apply it.
	Program   string    `json:"program,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
	// NewTTL is the time to live for resubmitted copies, empty for none.
	NewTTL string `json:"newTtl,omitempty"`
	// Acknowledged tells that warnings were acknowledged when the plan was made.
	Acknowledged bool `json:"acknowledged,omitempty"`
	// UnknownProgram tells that messages were accepted of which nobody can tell whether they belong to Program.
	UnknownProgram bool `json:"unknownProgram,omitempty"`
}

// A PlanStep is a line of a plan file: what is to be done with one message, and what was true of it.
type PlanStep struct {
	Sequence  int64  `json:"sequence"`
	Action    Action `json:"action"`
	Verdict   Kind   `json:"verdict"`
	MessageID string `json:"messageId,omitempty"`
	// DocumentID is where the message is stored, when that is not its MessageId.
	DocumentID  string    `json:"documentId,omitempty"`
	EnqueuedAt  time.Time `json:"enqueuedAt,omitzero"`
	Reason      string    `json:"reason,omitempty"`
	ArrivedHash string    `json:"arrivedHash,omitempty"`
	StoredHash  string    `json:"storedHash,omitempty"`
}

// planEnd is the last line of a plan file. It tells a whole plan from one that was cut or changed.
type planEnd struct {
	Steps  int    `json:"steps"`
	SHA256 string `json:"sha256"`
}

// Write writes the plan as a file for [ReadPlan].
func (p Plan) Write(out io.Writer) error {
	p.Version = planVersion
	var text bytes.Buffer
	line := func(v any) error {
		one, err := json.Marshal(v)
		text.Write(append(VisibleJSON(one), '\n'))
		return err
	}
	err := line(p.PlanHeader)
	for _, s := range p.Steps {
		err = errors.Join(err, line(s))
	}
	sum := sha256.Sum256(text.Bytes())
	if err = errors.Join(err, line(planEnd{Steps: len(p.Steps), SHA256: hex.EncodeToString(sum[:])})); err != nil {
		return err
	}
	_, err = text.WriteTo(out)
	return err
}

// ErrPlan is what every fault of a plan file is.
var ErrPlan = errors.New("not a whole plan")

func planFault(format string, args ...any) error {
	return fmt.Errorf("%w: %s. Make a new one with the plan command", ErrPlan, fmt.Sprintf(format, args...))
}

// ReadPlan reads a plan and checks it whole before anything is done by it.
func ReadPlan(in io.Reader) (Plan, error) {
	var p Plan
	text, err := io.ReadAll(in)
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	last := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
	lines := bytes.SplitAfter(text[:last], []byte("\n"))
	if err := json.Unmarshal(lines[0], &p.PlanHeader); err != nil || p.Version == 0 || p.ID == "" {
		return p, planFault("its first line is not the header of a plan, or nothing follows it")
	}
	if p.Version != planVersion {
		return p, planFault("it has version %d, and this program reads version %d", p.Version, planVersion)
	}
	var end planEnd
	sum := sha256.Sum256(text[:last])
	if err := json.Unmarshal(text[last:], &end); err != nil || end.SHA256 != hex.EncodeToString(sum[:]) {
		return p, planFault("it was cut, or changed after it was made")
	}
	for _, line := range lines[1 : len(lines)-1] { // behind the last line feed there is nothing
		var s PlanStep
		if err := json.Unmarshal(line, &s); err != nil || s.Sequence == 0 || !s.Action.Changes() {
			return p, planFault("line %d is not a step", len(p.Steps)+2)
		}
		if n := len(p.Steps); n > 0 && p.Steps[n-1].Sequence >= s.Sequence {
			return p, planFault("its steps are not in order")
		}
		p.Steps = append(p.Steps, s)
	}
	return p, nil
}
