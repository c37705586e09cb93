package cosmosdb_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// bench is an account with a container and a real client for it.
type bench struct {
	account   *cosmosdb.Account
	client    *azcosmos.Client
	container *azcosmos.ContainerClient
	faults    *fault.Plan
	history   *history.Log
}

// setup is how a bench differs from the usual one.
type setup struct {
	options cosmosdb.Options
	spec    cosmosdb.ContainerSpec
	client  azcosmos.ClientOptions
	mayMiss bool // the test asks for things that are not implemented
}

func newBench(t *testing.T, s setup) *bench {
	t.Helper()
	b := &bench{faults: fault.Script(), history: history.New()}
	s.options.Faults, s.options.History = b.faults, b.history
	var err error
	b.account, err = cosmosdb.New(s.options)
	require.NoError(t, err)
	if s.spec.ID == "" {
		s.spec.ID = "orders"
	}
	require.NoError(t, b.account.CreateContainer("shop", s.spec))
	if s.client.Transport == nil {
		s.client.Transport = b.account.Transport()
	}
	b.connect(t, endpoint(t), s.client)
	t.Cleanup(func() {
		require.NoError(t, b.account.Close())
		if !s.mayMiss {
			require.Empty(t, b.account.Refusals())
		}
	})
	return b
}

// connect replaces the client.
func (b *bench) connect(t *testing.T, url string, options azcosmos.ClientOptions) {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(b.account.Key())
	require.NoError(t, err)
	b.client, err = azcosmos.NewClientWithKey(url, cred, &options)
	require.NoError(t, err)
	t.Cleanup(b.client.Close)
	b.container, err = b.client.NewContainer("shop", "orders")
	require.NoError(t, err)
}

// endpoint is a host of its own for each test, since azcosmos caches by host for the whole process.
func endpoint(t *testing.T) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return "http://" + strings.ToLower(clean) + ".test/"
}

func (b *bench) create(t *testing.T, id, document string) {
	t.Helper()
	_, err := b.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(id), []byte(document), nil)
	require.NoError(t, err)
}

func (b *bench) read(ctx context.Context, id string, options *azcosmos.ItemOptions) (azcosmos.ItemResponse, error) {
	return b.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, options)
}

// requireStatus asserts that an error is an answer with a status and a substatus.
func requireStatus(t *testing.T, err error, status, substatus int) *azcore.ResponseError {
	t.Helper()
	re, ok := errors.AsType[*azcore.ResponseError](err)
	require.True(t, ok, "not an answer: %v", err)
	require.Equal(t, status, re.StatusCode, "%v", err)
	require.Equal(t, fmt.Sprint(substatus), re.RawResponse.Header.Get("x-ms-substatus"))
	return re
}

// once is a client that never retries by itself.
func once() azcosmos.ClientOptions {
	return azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
}

func TestADocumentCanBeCreatedOnceAndReadBack(t *testing.T) {
	b := newBench(t, setup{})
	pk := azcosmos.NewPartitionKeyString("1042")
	resp, err := b.container.CreateItem(t.Context(), pk, []byte(`{"id":"1042","amount":12345678901234567890}`), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, resp.RawResponse.StatusCode)
	require.Empty(t, resp.Value)
	require.NotEmpty(t, resp.ETag)
	require.Equal(t, "0:-1#1", *resp.SessionToken)
	require.InDelta(t, 5, resp.RequestCharge, 3)

	_, err = b.container.CreateItem(t.Context(), pk, []byte(`{"id":"1042"}`), nil)
	re := requireStatus(t, err, http.StatusConflict, 0)
	require.Equal(t, "0:-1#1", re.RawResponse.Header.Get("x-ms-session-token"))
	require.Equal(t, "1.24", re.RawResponse.Header.Get("x-ms-request-charge"))
	require.NotEmpty(t, re.RawResponse.Header.Get("x-ms-activity-id"))

	read, err := b.read(t.Context(), "1042", nil)
	require.NoError(t, err)
	require.Equal(t, resp.ETag, read.ETag)
	require.Contains(t, string(read.Value), `"amount":12345678901234567000,"_rid"`)
	require.InDelta(t, 1, read.RequestCharge, 0.01)

	_, err = b.read(t.Context(), "other", nil)
	requireStatus(t, err, http.StatusNotFound, 0)
}

// errorsAs returns the answer inside an error.
func errorsAs(err error) (*azcore.ResponseError, bool) {
	return errors.AsType[*azcore.ResponseError](err)
}

// quote returns a string as JSON.
func quote(s string) string {
	text, err := json.Marshal(s, jsontext.EscapeForHTML(false))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// unmarshal reads JSON without regard to the case of names.
func unmarshal(text []byte, v any) error {
	return json.Unmarshal(text, v, json.MatchCaseInsensitiveNames(true))
}

// countEvents counts the events of an operation.
func (b *bench) countEvents(op string) int {
	return b.history.Count(func(e history.Event) bool { return e.Op == op })
}
