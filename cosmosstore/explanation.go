package cosmosstore

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// explanation is what the service says of a 401 or 403 beside its status, which many causes share.
type explanation struct {
	said string // the part of its sentence that was recognised, or ""
	fix  string // what to do about that
}

const (
	fixFirewall = "Allow this address or network in the firewall of the account (Networking), or reach the account through its private " +
		"endpoint: from inside its virtual network, with a private DNS zone that resolves the account's name. A change takes up to 15 minutes to work."
	fixRole = "Give the identity a data plane role with this action, such as Cosmos DB Built-in Data Contributor; a role of the control " +
		"plane, such as Contributor, does not hold it. A new role takes some minutes to work."
	fixClock    = "Set the clock of this machine: the service takes signatures and tokens of the last 15 minutes."
	fixLocal    = "The account takes no keys: sign in with an identity that has a data plane role, instead of with a key."
	fixKey      = "Check that the key belongs to this account and has not been rotated."
	fixBlocked  = "Check the firewall and the private endpoint of the account, then the key or the role of the identity."
	fixDataOnly = "Use the account key, or an identity with a data plane role: a token cannot do this."
)

// explanations are the sentences of the service that tell causes apart. Only what a pattern matches is quoted: the rest of a body
// may hold the ids of messages.
var explanations = []struct {
	pattern *regexp.Regexp
	fix     string
}{
	{regexp.MustCompile(`Request originated from (IP [0-9A-Fa-f.:]+|[A-Za-z ]{1,40}) through [A-Za-z ]{1,40}\. This is blocked by your Cosmos DB account firewall settings`), fixFirewall},
	{regexp.MustCompile(`Request is blocked\. Please check your authorization token and Cosmos DB account firewall settings`), fixBlocked},
	{regexp.MustCompile(`(principal \[[0-9A-Fa-f-]{1,40}\] )?does not have (the )?required RBAC permissions to perform action \[[A-Za-z./]{1,120}\]`), fixRole},
	{regexp.MustCompile(`authorization token is not valid at the current time(\. Please create another token and retry \(token start time: [A-Za-z0-9,: ]{1,40}, ` +
		`token expiry time: [A-Za-z0-9,: ]{1,40}, current server time: [A-Za-z0-9,: ]{1,40}\))?`), fixClock},
	{regexp.MustCompile(`(?i)(AAD|authorization|access) token (is|has|was) [a-z ]{0,40}(expired|not yet valid)`), fixClock},
	{regexp.MustCompile(`Local Authorization is disabled\. Use an AAD token to authorize all requests`), fixLocal},
	{regexp.MustCompile(`cannot be authorized by AAD token in data plane`), fixDataOnly},
	{regexp.MustCompile(`The input authorization token can't serve the request`), fixKey},
}

// explained returns what the service says in the body of a 401 or 403.
func explained(r *http.Response) explanation {
	if r.StatusCode != http.StatusUnauthorized && r.StatusCode != http.StatusForbidden || r.Body == nil {
		return explanation{}
	}
	body, err := azruntime.Payload(r)
	if err != nil {
		return explanation{}
	}
	return explain(body)
}

// explain finds the first sentence that it knows in the text of a reply. It is a pure function.
func explain(body []byte) explanation {
	var reply struct {
		Message string `json:"message"`
	}
	text := string(body)
	if json.Unmarshal(body, &reply) == nil && reply.Message != "" {
		text = reply.Message
	}
	text = strings.ReplaceAll(text, `\/`, "/") // a message may be JSON inside of JSON
	for _, e := range explanations {
		if said := e.pattern.FindString(text); said != "" {
			return explanation{said, e.fix}
		}
	}
	return explanation{}
}
