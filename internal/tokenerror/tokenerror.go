// Package tokenerror reads the errors of credentials: azidentity writes whole replies of an identity endpoint into their
// texts, and such a reply may hold secrets.
package tokenerror

import (
	"errors"
	"strings"
)

// Fix says what to do when a credential gives no token.
const Fix = "Sign in with az login, or give an identity: AZURE_CLIENT_ID for a managed one, AZURE_TENANT_ID and AZURE_CLIENT_SECRET besides for a " +
	"service principal. AZURE_TOKEN_CREDENTIALS says which kinds are tried"

// Is reports whether err says that a credential gave no token. The marker method is what the Azure SDKs themselves ask for.
func Is(err error) bool {
	_, ok := errors.AsType[interface {
		error
		NonRetriable()
	}](err)
	return ok
}

// Text says in one line why there is no token. A chain of credentials says only that it failed, and below that, indented by
// one, what each of them met, which is the cause. Of a reply that is quoted below, between rulers, only the status is told.
func Text(err error) string {
	lines := strings.Split(err.Error(), "\n")
	said, separator, rulers := strings.TrimSpace(lines[0]), " ", 0
	for _, line := range lines[1:] {
		cause, indented := strings.CutPrefix(line, "\t")
		text := strings.TrimSpace(cause)
		if strings.HasPrefix(text, "----") {
			rulers++
		}
		quoted := rulers%3 != 0 // ruler, status, ruler, body, ruler
		switch {
		case rulers%3 == 1 && strings.HasPrefix(text, "RESPONSE "):
			said += " " + text
		case quoted, !indented, text == "", strings.HasPrefix(text, "----"), strings.HasPrefix(cause, "\t"):
		default:
			said, separator = said+separator+text, "; "
		}
	}
	return said
}
