package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// Only the program that dead-lettered a message knows what its documents are. Another one would store documents that mean
// something else under its key, and the right ones could never be stored after that.

// Program returns the name of the program that dead-lettered the message, and its version. Both are empty when the broker, an
// application or an older version of the worker dead-lettered it.
func (l *DeadLetter) Program() (name, version string) {
	return propertyText(l.Message.ApplicationProperties[worker.PropertyProgram]), propertyText(l.Message.ApplicationProperties[worker.PropertyVersion])
}

// documentID returns the document id that the worker computed, empty when it did not say.
func (l *DeadLetter) documentID() string {
	return propertyText(l.Message.ApplicationProperties[worker.PropertyDocumentID])
}

// fromWorker reports whether a worker has written properties of its own on the message.
func (l *DeadLetter) fromWorker() bool {
	for _, name := range []string{worker.PropertyReason, worker.PropertyDocumentID, worker.PropertyStoredHash, worker.PropertyVersion} {
		if _, ok := l.Message.ApplicationProperties[name]; ok {
			return true
		}
	}
	return false
}

// foreign returns the other program to which the message belongs, empty when it says none or this one.
func foreign(l *DeadLetter, s Settings) string {
	if name, _ := l.Program(); s.Program != "" && name != s.Program {
		return name
	}
	return ""
}

// otherSettings says that the worker kept the message under another document id, or in another partition, than the settings
// here lead to, or nothing. An empty computed id is one that cannot be computed.
func otherSettings(l *DeadLetter, c worker.Commit) string {
	if detail := otherDocumentID(l, c.DocumentID); detail != "" {
		return detail
	}
	// A worker whose messages have partitions of their own names none.
	was := cmp.Or(propertyText(l.Message.ApplicationProperties[worker.PropertyPartition]), l.documentID())
	if was == "" || c.DocumentID == "" || was == c.PartitionKey() || strings.HasSuffix(was, "…") {
		return ""
	}
	return fmt.Sprintf("The worker that dead-lettered this message looked for it in the partition %s; with the settings here it is %s. Give this command the "+
		"worker's settings: WORKER_PARTITION decides the partition.", was, c.PartitionKey())
}

func otherDocumentID(l *DeadLetter, computed string) string {
	was := l.documentID()
	// The worker cuts what is too long for a property.
	if was == "" || was == computed || strings.HasSuffix(was, "…") {
		return ""
	}
	now := "with the settings here it has no key"
	if computed != "" {
		now = "with the settings here it is " + computed
	}
	return fmt.Sprintf("The worker that dead-lettered this message looked for it under the document id %s; %s. Give this command the worker's settings: WORKER_KEY and WORKER_CONSUMER decide the id.", was, now)
}

// unknownProgram says why nobody can tell that a message without a program belongs to this one, or nothing. Most such messages
// were dead-lettered by the broker and are this program's own. Other is another program that is known to use the queue or the
// key.
func unknownProgram(l *DeadLetter, s Settings, other string) string {
	if name, _ := l.Program(); s.Program == "" || name != "" {
		return ""
	}
	switch {
	case other != "" && other != s.Program:
		return fmt.Sprintf("It does not say which program it belongs to, and %s uses this queue or has stored a document under its key.", other)
	case l.fromWorker():
		return "A worker of a version that did not record its program has dead-lettered it."
	}
	return ""
}

// doubt is [unknownProgram] with all that is known: the stored record of the key, nil when there is none, and the dead letters
// around the message.
func (r *Reviewer) doubt(ctx context.Context, l *DeadLetter, stored *worker.Record) string {
	if name, _ := l.Program(); r.settings.Program == "" || name != "" {
		return ""
	}
	other := ""
	if stored != nil {
		other = stored.Program
	}
	if other == r.settings.Program {
		return "" // this program has stored the key
	}
	if other == "" {
		other = r.neighbours.other(ctx, r)
	}
	return unknownProgram(l, r.settings, other)
}

// neighbourMemory is how long what the dead letters say of other programs is used again.
const neighbourMemory = time.Minute

// neighbours remembers whether the first dead letters name another program. It is safe for concurrent use.
type neighbours struct {
	mu    sync.Mutex
	until time.Time // guarded by mu
	name  string    // guarded by mu
}

func (n *neighbours) other(ctx context.Context, r *Reviewer) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().Before(n.until) {
		return n.name
	}
	messages, err := r.broker.Peek(ctx, 1, pageSize)
	if err != nil {
		return "" // the action itself needs the broker, and says what is wrong
	}
	n.name, n.until = "", time.Now().Add(neighbourMemory)
	for _, l := range messages {
		if name := foreign(l, r.settings); name != "" {
			n.name = name
			break
		}
	}
	return n.name
}

// refuseOwner says why an action that this program must not do is refused, or nothing.
func refuseOwner(a Action, l *DeadLetter, v Verdict, s Settings, c Choice) string {
	switch {
	case v.Kind == OtherProgram && (a != Discard || c.Program != v.Program):
		why := fmt.Sprintf("It belongs to the program %s, and this is %s. Run:  %s deadletter %s %d --reason \"...\"", v.Program, s.Program, Visible(v.Program), a, l.Sequence)
		if a == Discard {
			why += fmt.Sprintf("  or, to discard it unread: --program %s --i-know", Visible(v.Program))
		}
		return why
	case v.Doubt != "" && !c.UnknownProgram && (a != Discard || v.Kind.processed()):
		return fmt.Sprintf("%s If it is a message of %s, add --accept-unknown-program; if not, use the review of its own program.", v.Doubt, s.Program)
	}
	return ""
}
