package deadletter

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// planVersion is the version of the file format.
const planVersion = 1

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

// A PlanWriter writes a plan line by line, so that a plan of any length takes no memory.
type PlanWriter struct {
	out   *bufio.Writer
	sum   hash.Hash
	steps int
}

// NewPlanWriter writes the header.
func NewPlanWriter(out io.Writer, h PlanHeader) (*PlanWriter, error) {
	h.Version = planVersion
	sum := sha256.New()
	w := &PlanWriter{out: bufio.NewWriter(out), sum: sum}
	return w, w.line(h, sum)
}

func (w *PlanWriter) line(v any, sum io.Writer) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text = append(VisibleJSON(text), '\n')
	_, _ = sum.Write(text)
	_, err = w.out.Write(text)
	return err
}

// Add writes a step. Steps come in the order of their sequence numbers.
func (w *PlanWriter) Add(s PlanStep) error {
	w.steps++
	return w.line(s, w.sum)
}

// Close writes the end of the plan. Without it the plan is refused. It does not close the file.
func (w *PlanWriter) Close() error {
	if err := w.line(planEnd{Steps: w.steps, SHA256: hex.EncodeToString(w.sum.Sum(nil))}, io.Discard); err != nil {
		return err
	}
	return w.out.Flush()
}

// Steps returns how many steps were added.
func (w *PlanWriter) Steps() int { return w.steps }

// maxPlanLine bounds a line: its one part without a bound of its own is a MessageId.
const maxPlanLine = 1 << 20

// ErrPlan is what every fault of a plan file is.
var ErrPlan = errors.New("not a whole plan")

// ReadPlan reads a plan and checks it whole before anything is done by it. A plan of 100,000 steps takes some 20 MB.
func ReadPlan(in io.Reader) (PlanHeader, []PlanStep, error) {
	r := planReader{scanner: bufio.NewScanner(in), sum: sha256.New()}
	r.scanner.Buffer(make([]byte, 64<<10), maxPlanLine)
	var h PlanHeader
	if !r.next() {
		return h, nil, r.fault("it is empty")
	}
	if err := json.Unmarshal(r.text, &h); err != nil || h.Version == 0 || h.ID == "" {
		return h, nil, r.fault("its first line is not the header of a plan")
	}
	if h.Version != planVersion {
		return h, nil, r.fault(fmt.Sprintf("it has version %d, and this program reads version %d", h.Version, planVersion))
	}
	steps, err := r.steps()
	return h, steps, err
}

type planReader struct {
	scanner *bufio.Scanner
	sum     hash.Hash
	text    []byte
	line    int
}

func (r *planReader) next() bool {
	if r.line > 0 {
		r.sum.Write(r.text)
		r.sum.Write([]byte{'\n'})
	}
	if !r.scanner.Scan() {
		return false
	}
	r.line++
	r.text = r.scanner.Bytes()
	return true
}

func (r *planReader) fault(text string) error {
	if err := r.scanner.Err(); err != nil {
		return fmt.Errorf("%w: line %d: %w", ErrPlan, r.line+1, err)
	}
	return fmt.Errorf("%w: line %d: %s. Make a new one with the plan command", ErrPlan, r.line, text)
}

func (r *planReader) steps() ([]PlanStep, error) {
	var steps []PlanStep
	for r.next() {
		var end planEnd
		if json.Unmarshal(r.text, &end) == nil && end.SHA256 != "" {
			return steps, r.end(end, len(steps))
		}
		var s PlanStep
		if err := json.Unmarshal(r.text, &s); err != nil || s.Sequence == 0 || !s.Action.Changes() {
			return nil, r.fault("it is not a step")
		}
		if n := len(steps); n > 0 && steps[n-1].Sequence >= s.Sequence {
			return nil, r.fault("its steps are not in order")
		}
		steps = append(steps, s)
	}
	return nil, r.fault("its end is missing")
}

// end compares the last line with those before it.
func (r *planReader) end(end planEnd, steps int) error {
	if end.Steps != steps || end.SHA256 != hex.EncodeToString(r.sum.Sum(nil)) {
		return r.fault("it was changed after it was made")
	}
	if r.next() {
		return r.fault("something follows its end")
	}
	return nil
}
