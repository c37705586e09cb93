package cosmosdb

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Server serves an account on a listener. Close it before the account is dropped.
type Server struct {
	server *http.Server
	url    string
	pem    []byte
	done   chan error
}

// Serve starts serving plain HTTP/1 on a listener and returns at once. The server owns the listener.
func (a *Account) Serve(l net.Listener) *Server { return Serve(l, a) }

// Serve is like [Account.Serve] for another door of an account, such as [Account.ComputeGateway].
func Serve(l net.Listener, h http.Handler) *Server { return start(l, h, "http") }

// ServeTLS starts serving HTTPS on a listener, HTTP/1 and HTTP/2, with a certificate made for localhost and the loopback
// addresses. The server owns the listener.
func (a *Account) ServeTLS(l net.Listener) (*Server, error) { return ServeTLS(l, a) }

// ServeTLS is like [Account.ServeTLS] for another door of an account, such as [Account.ComputeGateway].
func ServeTLS(l net.Listener, h http.Handler) (*Server, error) {
	cert, pem, err := SelfSigned("localhost", "127.0.0.1", "::1")
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	s := start(tls.NewListener(l, config), h, "https")
	s.pem = pem
	return s, nil
}

func start(l net.Listener, h http.Handler, scheme string) *Server {
	s := &Server{
		url:  scheme + "://" + l.Addr().String() + "/",
		done: make(chan error, 1),
		server: &http.Server{
			Handler:           h,
			ReadHeaderTimeout: time.Minute,
			// Broken connections are what this server is for; they are in the history, not in a log.
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		},
	}
	go func() { s.done <- s.server.Serve(l) }()
	return s
}

// URL is the endpoint for clients, with a slash at the end.
func (s *Server) URL() string { return s.url }

// CertificatePEM is the certificate that clients must trust, or nil for plain HTTP.
func (s *Server) CertificatePEM() []byte { return s.pem }

// Close cuts all connections and frees the port.
func (s *Server) Close() error {
	err := s.server.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	s.done <- http.ErrServerClosed // a second Close finds the same
	return err
}

// Shutdown waits for the requests in progress, as far as ctx allows, and frees the port.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	return errors.Join(err, s.Close())
}
