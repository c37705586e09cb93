package cosmosdb_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// sockets are the ways to reach an account over loopback.
var sockets = []struct {
	name   string
	tls    bool
	proto  string
	alpn   []string
	replay bool // the client repeats a write whose reply was lost
}{
	{name: "plain HTTP/1", proto: "HTTP/1.1"},
	{name: "TLS and HTTP/1", tls: true, proto: "HTTP/1.1", alpn: []string{"http/1.1"}},
	{name: "TLS and HTTP/2", tls: true, proto: "HTTP/2.0", replay: true},
}

// overSockets runs a test once for each kind of socket.
func overSockets(t *testing.T, f func(t *testing.T, b *bench, proto string, replay bool)) {
	for _, s := range sockets {
		t.Run(s.name, func(t *testing.T) {
			b := newBench(t, setup{})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var server *cosmosdb.Server
			transport := &http.Transport{ForceAttemptHTTP2: true}
			if s.tls {
				server, err = b.account.ServeTLS(l)
				require.NoError(t, err)
				pool := x509.NewCertPool()
				require.True(t, pool.AppendCertsFromPEM(server.CertificatePEM()))
				transport.TLSClientConfig = &tls.Config{RootCAs: pool, NextProtos: s.alpn, MinVersion: tls.VersionTLS12}
				transport.ForceAttemptHTTP2 = s.alpn == nil
			} else {
				server = b.account.Serve(l)
			}
			t.Cleanup(func() { require.NoError(t, server.Close()) })
			t.Cleanup(transport.CloseIdleConnections)
			retry := policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond}
			b.connect(t, server.URL(), azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
				Transport: &http.Client{Transport: transport}, Retry: retry}})
			f(t, b, s.proto, s.replay)
		})
	}
}

func TestTheRealClientWorksOverSockets(t *testing.T) {
	overSockets(t, func(t *testing.T, b *bench, proto string, _ bool) {
		b.create(t, "a b?c", `{"id":"a b?c"}`)
		resp, err := b.read(t.Context(), "a b?c", nil)
		require.NoError(t, err)
		require.Equal(t, proto, resp.RawResponse.Proto)
		_, err = b.container.DeleteItem(t.Context(), azcosmos.NewPartitionKeyString("a b?c"), "a b?c", nil)
		require.NoError(t, err)
		_, err = b.read(t.Context(), "a b?c", nil)
		requireStatus(t, err, http.StatusNotFound, 0)
	})
}

func TestALostReplyOverSockets(t *testing.T) {
	overSockets(t, func(t *testing.T, b *bench, _ string, replay bool) {
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		b.faults.Add(fault.On(history.CreateDocument).After(fault.DropReply()))
		err := b.tryCreate(t.Context(), "a")
		if replay {
			requireStatus(t, err, http.StatusConflict, 0)
		} else {
			require.ErrorIs(t, err, io.EOF)
		}
		require.Equal(t, 2, b.account.Count("shop", "orders"))
	})
}

func TestALostRequestOverSockets(t *testing.T) {
	overSockets(t, func(t *testing.T, b *bench, _ string, replay bool) {
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		b.faults.Add(fault.On(history.CreateDocument).Before(fault.DropReply()))
		err := b.tryCreate(t.Context(), "a")
		if replay {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 1, b.account.Count("shop", "orders"))
	})
}

func TestSilenceOverSocketsEndsWithTheClient(t *testing.T) {
	overSockets(t, func(t *testing.T, b *bench, _ string, _ bool) {
		require.NoError(t, b.tryCreate(t.Context(), "warm"))
		ctx, giveUp := context.WithCancel(t.Context())
		b.faults.Add(fault.On(history.CreateDocument).After(fault.Action{Kind: fault.Silence, Do: giveUp}))
		require.ErrorIs(t, b.tryCreate(ctx, "a"), context.Canceled)
		require.Equal(t, 2, b.account.Count("shop", "orders"))
	})
}

func TestManyClientsOverSockets(t *testing.T) {
	overSockets(t, func(t *testing.T, b *bench, _ string, _ bool) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { _ = b.tryCreate(t.Context(), fmt.Sprint(i%10)) })
		}
		wg.Wait()
		require.Equal(t, 10, b.account.Count("shop", "orders"))
		require.NoError(t, history.Check(b.history.Events(), history.Expect{}))
	})
}

func TestAServerCanBeClosedTwiceAndItsPortIsFree(t *testing.T) {
	b := newBench(t, setup{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := b.account.Serve(l)
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, s.Close())
	again, err := net.Listen("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestTheComputeGatewayTakesEveryId(t *testing.T) {
	b := newBench(t, setup{spec: byPK})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := cosmosdb.ServeTLS(l, b.account.ComputeGateway())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(s.CertificatePEM()))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	b.connect(t, s.URL(), azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}}})
	pk := azcosmos.NewPartitionKeyString("p")
	for _, id := range []string{"a/b", `a\b`, "a#b", "trailing ", "a%20b", "a\tb"} {
		_, err := b.container.CreateItem(t.Context(), pk, []byte(`{"id":`+quote(id)+`,"pk":"p"}`), nil)
		require.NoError(t, err)
		_, err = b.container.ReadItem(t.Context(), pk, id, nil)
		require.NoError(t, err, "%q", id)
	}
}
