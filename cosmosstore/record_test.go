package cosmosstore

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

func TestPartitionKeyPaths(t *testing.T) {
	for path, want := range map[string][]string{
		"/pk": {"pk"}, "/id": {"id"}, "/tenant/order": {"tenant", "order"}, `/"a/b"`: {"a/b"}, `/"a b"/c`: {"a b", "c"}, `/a/"b"`: {"a", "b"},
	} {
		names, err := splitPath(path)
		require.NoError(t, err, path)
		require.Equal(t, want, names, path)
	}
	for _, path := range []string{"", "/", "pk", "//", "/a/", "/a//b", `/"a`, `/""`, `/"a"b`, `/"a"/`} {
		_, err := splitPath(path)
		require.Error(t, err, "%q", path)
	}
}

func TestWhatAzcosmosAddsToABatchIsCounted(t *testing.T) {
	for _, text := range []string{`{"a":"plain"}`, `{"a":"<b>&c"}`, "{\"a\":\"\u2028\u2029é😀\"}"} {
		written, err := json.Marshal(json.RawMessage(text))
		require.NoError(t, err)
		require.Equal(t, len(written), escapedLength([]byte(text)), text)
	}
}

func TestAPartWhoseTimeWasUpIsNotMissed(t *testing.T) {
	now := time.Now()
	s := stored{Record: worker.Record{CommittedAt: now.Add(-time.Hour)}, expires: map[string]int64{"short": 600, "long": 36_000}}
	require.True(t, s.expired("short", now))
	require.False(t, s.expired("long", now))
	require.False(t, s.expired("for ever", now))
}

func TestALongIDOfAPartStillFits(t *testing.T) {
	record := identity.Text(strings.Repeat("/", 66)).DocumentID()
	require.Empty(t, storable.IDProblem(identity.PartDocumentID(record, strings.Repeat("x", 300))))
}

// FuzzParseRecord reads any text as a stored document. Nothing may panic, and a fingerprint must never appear that the text
// does not hold.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"id":"1","type":"order","order":{"a":12345678901234567000},"exactNumbers":{"/a":"12345678901234567890"},
		"request":{"key":"1","hash":"00","parameters":{"v":1,"alg":"sha256","form":"json"},"parts":["a"],"partTTLs":{"a":1},"sequenceNumber":"7"}}`))
	f.Add([]byte(`{"id":"1","type":"request","request":{"hash":1,"parameters":[],"parts":{},"sequenceNumber":1e99,"enqueuedAt":"x"}}`))
	f.Add([]byte(`{"id":"1","type":"id","_ts":1}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, ok := parseDocument("1", body)
		if !ok {
			return
		}
		r := d.record()
		require.Equal(t, "1", r.DocumentID)
		if r.Fingerprint != nil {
			require.NotEmpty(t, r.Fingerprint.Hash)
			require.NotZero(t, r.Fingerprint.Parameters.Version)
		}
		if r.Content != nil {
			require.True(t, json.Valid(r.Content))
		}
		require.Equal(t, r.Attempt, d.attempt())
	})
}

// FuzzEncode writes contents and reads them back as the store would without a service in between.
func FuzzEncode(f *testing.F) {
	f.Add("1042", "order", []byte(`{"id":"evil","n":12345678901234567890}`), "pk")
	f.Add("a~2Fb", "a b", []byte(`{"<":"\u2028"}`), "tenant")
	f.Fuzz(func(t *testing.T, key, kind string, content []byte, pk string) {
		l := layout{path: []string{pk, "x"}}
		id := identity.Text(key).DocumentID()
		c := worker.Commit{Key: identity.Text(key), DocumentID: id, Attempt: "n", Documents: []worker.Document{{Type: kind, Content: content}},
			Fingerprint: fingerprint.Fingerprint{Hash: "00", Parameters: fingerprint.Parameters{Version: 1}}}
		p, err := l.compose(c, time.Now())
		if err != nil || storable.Reserved(pk) {
			return
		}
		d, ok := parseDocument(id, p.docs[0].body)
		require.True(t, ok)
		r := d.record()
		require.Equal(t, c.Key.String(), r.Key)
		require.Equal(t, "n", r.Attempt)
		require.JSONEq(t, string(content), string(r.Content))
	})
}

func TestADocumentWhoseIDIsThePartitionKeyHasItOnce(t *testing.T) {
	c := worker.Commit{Key: identity.Text("1"), DocumentID: "1", Documents: []worker.Document{{Type: "order", Content: []byte(`{}`)}}}
	p, err := layout{path: []string{"id"}}.compose(c, time.Now())
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(p.docs[0].body), `"id":`))
}
