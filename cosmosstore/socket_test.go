package cosmosstore_test

import (
	"crypto/x509"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

// doors are the ways in which the store's own HTTP client reaches an account over sockets.
var doors = map[string]func(t *testing.T, a *cosmosdb.Account, o *cosmosstore.Options){
	"HTTP/1": func(t *testing.T, a *cosmosdb.Account, o *cosmosstore.Options) {
		l := listen(t)
		s := a.Serve(l)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		o.Endpoint = "http://" + l.Addr().String()
	},
	"HTTP/2": func(t *testing.T, a *cosmosdb.Account, o *cosmosstore.Options) {
		l := listen(t)
		s, err := a.ServeTLS(l)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		o.Endpoint = "https://" + l.Addr().String()
		o.RootCAs = x509.NewCertPool()
		require.True(t, o.RootCAs.AppendCertsFromPEM(s.CertificatePEM()))
	},
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// overSockets runs f for each door, with a store that uses its own HTTP client.
func overSockets(t *testing.T, f func(t *testing.T, e *env)) {
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, setup{unopened: true})
			e.options.Transport = nil
			door(t, e.account, &e.options)
			e.open()
			f(t, e)
			require.Empty(t, e.account.Refusals())
		})
	}
}

func TestOverSocketsALostAnswerIsRecognisedAsOwn(t *testing.T) {
	const body = `{"amount":40}`
	overSockets(t, func(t *testing.T, e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Key("1").After(fault.DropReply()), fault.On(history.ExecuteBatch).After(fault.DropReply()))
		c := commit("1", body)
		o := e.commit(c)
		require.Equal(t, worker.Own, judge(c, o, body))
		require.Equal(t, 3, o.Calls, "neither net/http nor azcosmos may replay the write")
		b := commit("2", body, lines(2)...)
		o = e.commit(b)
		require.Equal(t, worker.Own, judge(b, o, body))
		require.Equal(t, 4, o.Calls, "and one batch that reads the lines")
		require.Equal(t, 4, e.account.Count(database, container))
	})
}

func TestOverSocketsASilentAnswerIsCutShort(t *testing.T) {
	overSockets(t, func(t *testing.T, e *env) {
		require.NoError(t, e.store.Close())
		e.options.RequestTimeout = time.Second
		e.open()
		e.faults.Add(fault.On(history.CreateDocument).After(fault.Action{Kind: fault.Silence}))
		c := commit("1", `{}`)
		require.Equal(t, worker.Own, judge(c, e.commit(c), `{}`))
	})
}

// gate is a door that cuts every connection while it is shut.
type gate struct {
	account http.Handler
	open    atomic.Bool
	// protocol is that of the last request.
	protocol atomic.Value
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.protocol.Store(r.Proto)
	if !g.open.Load() {
		panic(http.ErrAbortHandler) // net/http documents it for the purpose
	}
	g.account.ServeHTTP(w, r)
}

func TestOverSocketsTheStoreComesBackWithItsAccount(t *testing.T) {
	e := newEnv(t, setup{unopened: true})
	g := &gate{account: e.account}
	s, err := cosmosdb.ServeTLS(listen(t), g)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	e.options.Transport, e.options.Endpoint, e.options.RootCAs = nil, s.URL(), x509.NewCertPool()
	require.True(t, e.options.RootCAs.AppendCertsFromPEM(s.CertificatePEM()))
	e.open()
	requireAs[*worker.UnavailableError](t, e.store.Ready(t.Context()))
	g.open.Store(true)
	require.NoError(t, e.store.Ready(t.Context()), "the failed account read must not be kept")
	require.True(t, e.commit(commit("1", `{}`)).Created)
	require.Equal(t, "HTTP/2.0", g.protocol.Load())
}

func TestOverSocketsAForeignCertificateIsRefused(t *testing.T) {
	e := newEnv(t, setup{unopened: true})
	e.options.Transport = nil
	doors["HTTP/2"](t, e.account, &e.options)
	e.options.RootCAs = x509.NewCertPool()
	e.open()
	u := requireAs[*worker.UnavailableError](t, e.store.Ready(t.Context()))
	require.Contains(t, u.Error(), "certificate")
	require.Zero(t, e.requests(history.ReadAccount))
}
