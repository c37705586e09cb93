package cosmosstore_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

// explanations are sentences of public reports, with what is to be quoted of them and the word that the fix must hold.
var explanations = []struct {
	name, message, quoted, fix string
	status                     int
}{
	{"a blocked address", "Request originated from IP 20.1.2.3 through public internet. This is blocked by your Cosmos DB account firewall settings. More info: https://aka.ms/cosmosdb-tsg-forbidden",
		"IP 20.1.2.3 through public internet", "private endpoint", 403},
	{"a blocked IPv6 address", "Request originated from IP 2001:db8::1 through public internet. This is blocked by your Cosmos DB account firewall settings.",
		"IP 2001:db8::1", "firewall", 403},
	{"a blocked network", "Request originated from client VNET through private endpoint. This is blocked by your Cosmos DB account firewall settings.",
		"client VNET through private endpoint", "firewall", 403},
	{"a block of either kind", `Message: {"Errors":["Request is blocked. Please check your authorization token and Cosmos DB account firewall settings. Learn more: https:\/\/aka.ms\/x"]}`,
		"check your authorization token and Cosmos DB account firewall settings", "firewall", 403},
	{"a missing action", "Request blocked by Auth shop : Request is blocked because principal [0cd8f3af-37e3-49cb-9bea-b84a6dc67f50] does not have required RBAC permissions to perform action [Microsoft.DocumentDB/databaseAccounts/readMetadata] on resource [/]. Learn more: https://aka.ms/cosmos-native-rbac.",
		"action [Microsoft.DocumentDB/databaseAccounts/readMetadata]", "role", 403},
	{"a missing action in JSON", `Message: {"Errors":["Request is blocked because principal [0cd8f3af-37e3-49cb-9bea-b84a6dc67f50] does not have the required RBAC permissions to perform action [Microsoft.DocumentDB\/databaseAccounts\/sqlDatabases\/containers\/items\/create] with OperationType [0] and ResourceType [2] on resource [dbs\/shop\/colls\/orders\/docs\/secret-id]."]}`,
		"action [Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create]", "role", 403},
	{"a clock that is wrong", "The authorization token is not valid at the current time. Please create another token and retry (token start time: Tue, 02 Oct 2018 12:00:46 GMT, token expiry time: Tue, 02 Oct 2018 12:15:46 GMT, current server time: Tue, 02 Oct 2018 11:54:00 GMT).",
		"current server time: Tue, 02 Oct 2018 11:54:00 GMT", "clock", 403},
	{"a clock that is wrong, without times", "The authorization token is not valid at the current time.",
		"not valid at the current time", "clock", 401},
	{"an account without keys", "Local Authorization is disabled. Use an AAD token to authorize all requests.",
		"Local Authorization is disabled", "identity", 401},
	{"a wrong key", "The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built as per the protocol. Server used the following payload to sign: 'post\\ndocs\\ndbs/shop/colls/orders/secret-id'",
		"The input authorization token can't serve the request", "rotated", 401},
}

// TestTheServicesOwnSentenceIsQuotedWhereItNamesTheCause refuses every operation with one of them. What people see of it must hold
// the cause, and nothing else of the body.
func TestTheServicesOwnSentenceIsQuotedWhereItNamesTheCause(t *testing.T) {
	for _, tt := range explanations {
		t.Run(tt.name, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"code": "Forbidden", "message": tt.message + "\r\nActivityId: secret-id, Microsoft.Azure.Documents.Common/2.14.0"})
			require.NoError(t, err)
			inBubble(t, setup{}, func(e *env) {
				refuse := fault.Action{Kind: fault.Refuse, Status: tt.status, Body: string(body)}
				e.faults.Add(fault.On(history.CreateDocument).Always().Before(refuse), fault.On(history.ExecuteBatch).Always().Before(refuse),
					fault.On(history.ReadDocument).Always().Before(refuse), fault.On(history.ReadContainer).Always().Before(refuse))
				_, one := e.store.Commit(e.ctx(), commit("1", `{}`))
				_, several := e.store.Commit(e.ctx(), commit("1", `{}`, lines(1)...))
				_, find := e.store.Find(e.ctx(), "", "1")
				for _, err := range []error{one, several, find, e.store.Ready(e.ctx())} {
					m := requireAs[*worker.MisconfiguredError](e.t, err)
					require.Contains(e.t, m.Cause.Error(), tt.quoted)
					require.Contains(e.t, m.Fix, tt.fix)
				}
				seen := texts(e.store.Check(e.ctx())) + e.logged.String()
				require.Contains(e.t, seen, tt.quoted)
				for _, err := range []error{one, several, find, fmt.Errorf("%s", seen)} {
					require.NotContains(e.t, err.Error(), "secret-id")
				}
			})
		})
	}
}

func TestTheServicesOwnSentenceIsQuotedOfTheAccountToo(t *testing.T) {
	inBubble(t, setup{unopened: true}, func(e *env) {
		body := `{"code":"Forbidden","message":"` + explanations[0].message + `"}`
		e.faults.Add(fault.On(history.ReadAccount).Always().Before(fault.Action{Kind: fault.Refuse, Status: 403, Body: body}))
		e.open()
		require.ErrorContains(e.t, e.store.Ready(e.ctx()), "IP 20.1.2.3")
		require.Contains(e.t, texts(e.store.Check(e.ctx())), "firewall of the account")
	})
}

func TestAnUnknownSentenceIsNotQuoted(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		body := `{"code":"Forbidden","message":"document secret-id is not for you"}`
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Action{Kind: fault.Refuse, Status: 403, Body: body}))
		_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		require.NotContains(e.t, err.Error()+e.logged.String(), "secret-id")
		for _, says := range []string{"role", "firewall", "private endpoint"} {
			require.Contains(e.t, requireAs[*worker.MisconfiguredError](e.t, err).Fix, says)
		}
		require.NotEmpty(e.t, cosmosstore.Findings(err))
	})
}
