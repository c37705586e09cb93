package worker

// Effects are what a message does. A [Handler] returns them, and they are committed in one transaction with the record that
// the message was processed: all of them or none, and at most once for each key.
type Effects struct {
	// Documents are created. The first one is the inbox record of the message, unless the store keeps another.
	Documents []Document

	ignored string
}

// Create returns the effects of a message that only creates documents.
func Create(documents ...Document) Effects { return Effects{Documents: documents} }

// Ignore returns the effects of a message that is none of this program's business. It is completed and counted under word,
// and nothing is stored, so that a repeat of it is ignored again. A word is made like that of [Reject]; when nothing of it
// remains it is [reason.Ignored].
func Ignore(word string) Effects { return Effects{ignored: wordOf(word, ignoredWord)} }

// ignoredWord is what a message is ignored as that the handler gave no word for.
const ignoredWord = "Ignored"

// Ignored returns the word of [Ignore], or "".
func (e Effects) Ignored() string { return e.ignored }
