package cosmosstore

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMembersAreThoseThatEncodingJSONReads(t *testing.T) {
	for _, text := range []string{
		`{}`, ` {"a":1} `, `{"a":1,"a":2}`, `{"Id":1,"id":2}`, `{"n":12345678901234567890.10,"o":{"x":[1, {"y":null}]}}`, "{\"\\u0061\\n\":\"\\ud83d\\ude00\"}",
		``, `[]`, `null`, `1`, `{"a":1}{"b":2}`, `{"a":1}x`, `{"a":}`, `{"a"}`, `{"a":1`, `{"a":tru}`, `{`, "{\"a\":\"\x01\"}",
	} {
		var want document
		if json.Unmarshal([]byte(text), &want) != nil {
			want = nil
		}
		got := membersOf([]byte(text))
		require.Equal(t, want, got, text)
		if got != nil {
			require.Equal(t, want, membersOf(got.encode()), text)
		}
	}
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,2.50,"x<&>"]},"a":null,"":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		if !json.Valid(text) || json.Unmarshal(text, &want) != nil || want == nil {
			require.Nil(t, membersOf(text))
			return
		}
		got := membersOf(text)
		require.NotNil(t, got)
		require.Equal(t, len(want), len(got))
		require.Equal(t, got, membersOf(got.encode()))
	})
}
