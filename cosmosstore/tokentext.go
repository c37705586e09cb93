package cosmosstore

import "strings"

// tokenText says in one line why there is no token. A chain of credentials says only that it failed, and below that, indented
// by one, what each of them met, which is the cause; deeper lines are dumps of requests, of which only the status counts.
func tokenText(err error) string {
	lines := strings.Split(err.Error(), "\n")
	said, separator := strings.TrimSpace(lines[0]), " "
	for _, line := range lines[1:] {
		cause, indented := strings.CutPrefix(line, "\t")
		text := strings.TrimSpace(cause)
		switch {
		case !indented || text == "":
		case strings.HasPrefix(text, "RESPONSE "):
			said += " " + text
		case !strings.HasPrefix(cause, "\t"):
			said, separator = said+separator+text, "; "
		}
	}
	return said
}
