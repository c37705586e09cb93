package cosmosstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
)

// TestARecordOfAnUnknownFormatIsUnreadable stores, under the key of a message, records that a newer worker may write: a claim
// that is in progress, for example, whose hash and attempt are those of the message.
func TestARecordOfAnUnknownFormatIsUnreadable(t *testing.T) {
	const body = `{"amount":40}`
	tests := []struct{ name, members, want string }{
		{"a newer version", `"version":2,`, "version 2"},
		{"a newer version and a state", `"version":2,"state":"claimed",`, "version 2"},
		{"a version between", `"version":1.5,`, "version 1.5"},
		{"version zero", `"version":0,`, "version 0"},
		{"a version that is a string", `"version":"1",`, `version "1"`},
		{"a version that is null", `"version":null,`, "version null"},
		{"a version that is a list", `"version":[1],`, "version of an unknown kind"},
		{"a version that is a long text", fmt.Sprintf(`"version":"%0200d",`, 7), "version of an unknown kind"},
		{"a version with a hidden line break", `"version":"1\n2",`, "version of an unknown kind"},
		{"no version", ``, "no version"},
		{"no version and a state", `"state":"committed",`, "no version"},
		{"a claim", `"version":1,"state":"claimed",`, `state "claimed" without a claim`},
		{"a state in capitals", `"version":1,"state":"Committed",`, `state "Committed"`},
		{"a state that is null", `"version":1,"state":null,`, "state null"},
		{"a state that is a number", `"version":1,"state":1,`, "state 1"},
		{"an empty state", `"version":1,"state":"",`, "state of an unknown kind"},
		{"a committed record", `"version":1,"state":"committed",`, ""},
		{"a record whose number was rewritten", `"version":1.0,`, ""},
		{"a record of today", `"version":1,`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				c := commit("x-1", body)
				require.NoError(e.t, e.account.Seed(database, container, fmt.Sprintf(`{"id":"x-1","pk":"x-1","type":"order","order":%s,"request":{%s
					"key":"x-1","attempt":%q,"hash":%q,"parameters":{"v":1,"alg":"sha256","form":"json"},"parts":["line-1"]}}`,
					body, tt.members, c.Attempt, c.Fingerprint.Hash)))
				o := e.commit(c)
				require.NotNil(e.t, o.Existing)
				require.Equal(e.t, tt.want, o.Existing.Unknown)
				found, err := e.store.Find(e.ctx(), "", "x-1")
				require.NoError(e.t, err)
				require.Equal(e.t, tt.want, found.Unknown)
				if tt.want != "" {
					require.Empty(e.t, found.MissingParts, "what its parts are is not known either")
				} else {
					require.Equal(e.t, worker.Incomplete, judge(c, o, body))
				}
			})
		})
	}
}

func TestADocumentOfSomebodyElseHasNoFormatToBeUnknown(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		for id, document := range map[string]string{"a": `{"id":"a","pk":"a"}`, "b": `{"id":"b","pk":"b","request":"x"}`, "c": `{"id":"c","pk":"c","request":null}`} {
			require.NoError(e.t, e.account.Seed(database, container, document))
			found, err := e.store.Find(e.ctx(), "", id)
			require.NoError(e.t, err)
			require.Empty(e.t, found.Unknown)
			c := commit(id, `{}`)
			require.Equal(e.t, worker.HashMissing, judge(c, e.commit(c), `{}`))
		}
	})
}

func TestTheProgramIsStoredInTheInboxRecord(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		c := commit("1", `{}`, lines(1)...)
		c.Program, c.ProgramVersion = "shop-payments", "1.4.0"
		e.commit(c)
		found, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, "shop-payments", found.Program)
		require.Equal(e.t, "1.4.0", found.ProgramVersion)
		require.Equal(e.t, "shop-payments", e.commit(commit("1", `{}`)).Existing.Program)

		e.commit(commit("2", `{}`))
		found, err = e.store.Find(e.ctx(), "", "2")
		require.NoError(e.t, err)
		require.Empty(e.t, found.Program)
		require.NotContains(e.t, e.document("2")["request"], "program")
	})
}
