package cosmosdb_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
)

func TestAWrongKeyIsRefused(t *testing.T) {
	b := newBench(t, setup{})
	cred, err := azcosmos.NewKeyCredential(base64.StdEncoding.EncodeToString([]byte("another key")))
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey("http://wrong-key.test/", cred, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: b.account.Transport()}})
	require.NoError(t, err)
	defer client.Close()
	container, err := client.NewContainer("shop", "orders")
	require.NoError(t, err)
	_, err = container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"a"}`), nil)
	requireStatus(t, err, http.StatusUnauthorized, 0)
	require.Zero(t, b.account.Count("shop", "orders"))
}

// editHeader changes a request after it was signed.
type editHeader struct{ name, value string }

func (e editHeader) Do(r *policy.Request) (*http.Response, error) {
	if r.Raw().URL.Path != "/" {
		r.Raw().Header.Set(e.name, e.value)
		if e.value == "" {
			r.Raw().Header.Del(e.name)
		}
	}
	return r.Next()
}

func TestTamperedRequestsAreRefused(t *testing.T) {
	for name, edit := range map[string]editHeader{
		"no authorization":      {"Authorization", ""},
		"another authorization": {"Authorization", "type%3Dmaster%26ver%3D1.0%26sig%3DAAAA"},
		"no known kind":         {"Authorization", "Bearer x"},
		"not encoded":           {"Authorization", "%zz"},
		"a token, not accepted": {"Authorization", "type=aad&ver=1.0&sig=a.b.c"},
		"another date":          {"x-ms-date", "Mon, 02 Jan 2006 15:04:05 GMT"},
	} {
		t.Run(name, func(t *testing.T) {
			options := once()
			options.PerRetryPolicies = []policy.Policy{edit}
			b := newBench(t, setup{client: options})
			requireStatus(t, b.tryCreate(t.Context(), "a"), http.StatusUnauthorized, 0)
			require.Zero(t, b.account.Count("shop", "orders"))
		})
	}
}

func TestASignatureIsGoodForFifteenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &delay{}
		options := once()
		options.PerRetryPolicies = []policy.Policy{late}
		b := newBench(t, setup{client: options})
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		late.by = 15 * time.Minute
		require.NoError(t, b.tryCreate(t.Context(), "a"))
		late.by += 2 * time.Second
		requireStatus(t, b.tryCreate(t.Context(), "b"), http.StatusForbidden, 0)
	})
}

// delay holds a signed request back.
type delay struct{ by time.Duration }

func (d *delay) Do(r *policy.Request) (*http.Response, error) {
	time.Sleep(d.by)
	return r.Next()
}

type anyToken struct{}

func (anyToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "a.b.c", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestATokenGivesDataButNoManagement(t *testing.T) {
	b := newBench(t, setup{options: cosmosdb.Options{AcceptTokens: true}})
	client, err := azcosmos.NewClient("http://tokens.test/", anyToken{}, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: b.account.Transport()}})
	require.NoError(t, err)
	defer client.Close()
	container, err := client.NewContainer("shop", "orders")
	require.NoError(t, err)
	pk := azcosmos.NewPartitionKeyString("a")
	_, err = container.CreateItem(t.Context(), pk, []byte(`{"id":"a"}`), nil)
	require.NoError(t, err)
	_, err = container.Read(t.Context(), nil)
	require.NoError(t, err)
	_, err = container.Delete(t.Context(), nil)
	requireStatus(t, err, http.StatusForbidden, 5300)
	// With a token no signature covers the path: the id ".." addresses the container, and only rights protect it.
	_, err = container.DeleteItem(t.Context(), pk, "..", nil)
	requireStatus(t, err, http.StatusForbidden, 5300)
	require.Equal(t, 1, b.account.Count("shop", "orders"))

	b.account.DenyData(5301)
	_, err = container.ReadItem(t.Context(), pk, "a", nil)
	requireStatus(t, err, http.StatusForbidden, 5301)
	_, err = container.Read(t.Context(), nil)
	require.NoError(t, err)
	b.account.AllowData()
	_, err = container.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	_, err := cosmosdb.New(cosmosdb.Options{Key: "not base64!"})
	require.ErrorContains(t, err, "base64")
	_, err = cosmosdb.New(cosmosdb.Options{Consistency: "Sometimes"})
	require.ErrorContains(t, err, "Sometimes")
}
