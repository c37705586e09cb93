package cosmosdb

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// Conditions of a Drop, which say how it looks in process. Over sockets they make no difference.
const (
	// StreamReset looks like a reset HTTP/2 stream: azcosmos cannot tell whether the request had an effect, and repeats it.
	StreamReset = "stream-reset"
	// ConnectionRefused looks, before the effect, like a port on which nobody listens: the request was not sent.
	ConnectionRefused = "connection-refused"
)

var _ http.Handler = (*Account)(nil)

// ServeHTTP is the door for sockets, the routing gateway. It works with HTTP/1 and HTTP/2.
func (a *Account) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.serveHTTP(w, r, false) }

// ComputeGateway returns a second door to the same account, which takes document ids that the routing gateway refuses.
func (a *Account) ComputeGateway() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.serveHTTP(w, r, true) })
}

func (a *Account) serveHTTP(w http.ResponseWriter, r *http.Request, compute bool) {
	q, err := newRequest(r, compute)
	if err != nil {
		breakConnection(w)
		return
	}
	o := a.serve(r.Context(), q)
	if o.ending != sent {
		breakConnection(w)
		return
	}
	for n, v := range o.reply.headers(o.activity) {
		w.Header()[wireName(n)] = v
	}
	if len(o.reply.body) > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(o.reply.body)))
	}
	w.WriteHeader(o.reply.status)
	if o.reply.status != http.StatusNoContent && o.reply.status != http.StatusNotModified {
		// The client may have gone; there is nobody to tell.
		_, _ = w.Write(o.reply.body)
	}
}

// wireName is the spelling of a header as the service sends it. Python programs look headers up by their exact spelling.
func wireName(name string) string {
	if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") || lower == "etag" || lower == "lsn" {
		return lower
	}
	return name
}

// breakConnection ends a request without a reply. HTTP/1 connections are closed. An HTTP/2 stream can only be reset by
// this panic, which net/http documents for the purpose and recovers by itself.
func breakConnection(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
		return
	}
	panic(http.ErrAbortHandler)
}

// Transport returns the in-process door: a client that hands requests to the account without a socket. Do returns when
// the reply is there or the context of the request ends, whichever is first. Responses are complete; nothing is streamed.
func (a *Account) Transport() interface {
	Do(*http.Request) (*http.Response, error)
} {
	return &transport{account: a}
}

type transport struct{ account *Account }

// Do implements the transport interface of the Azure SDK.
func (t *transport) Do(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return nil, failed(r, err)
	}
	inside := r.WithContext(ctx)
	if inside.Host == "" {
		inside.Host = r.URL.Host
	}
	q, err := newRequest(inside, false)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if err != nil {
		return nil, failed(r, err)
	}
	if !t.account.enter() {
		return nil, failed(r, closedError{})
	}
	done := make(chan outcome, 1)
	go func() {
		defer t.account.inflight.Done()
		done <- t.account.serve(ctx, q)
	}()
	select {
	case o := <-done:
		return o.response(r)
	case <-ctx.Done():
		return nil, failed(r, ctx.Err())
	}
}

// enter counts a request in, unless the account is closed.
func (a *Account) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut {
		return false
	}
	a.inflight.Add(1)
	return true
}

// response turns an outcome into what an http.Client would return.
func (o outcome) response(r *http.Request) (*http.Response, error) {
	switch {
	case o.ending == silent && r.Context().Err() != nil:
		return nil, failed(r, r.Context().Err())
	case o.ending == silent, o.ending == ended:
		return nil, failed(r, closedError{})
	case o.ending != sent && o.condition == StreamReset:
		return nil, failed(r, streamError{})
	case o.ending != sent && o.condition == ConnectionRefused:
		return nil, failed(r, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	case o.ending != sent:
		return nil, failed(r, io.EOF)
	}
	body := o.reply.body
	if o.reply.status == http.StatusNoContent || o.reply.status == http.StatusNotModified {
		body = nil
	}
	return &http.Response{
		Status:     strconv.Itoa(o.reply.status) + " " + http.StatusText(o.reply.status),
		StatusCode: o.reply.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        o.reply.headers(o.activity),
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, nil
}

// failed wraps an error as http.Client does.
func failed(r *http.Request, err error) error {
	method := r.Method[:1]
	for _, c := range r.Method[1:] {
		method += string(c | 0x20)
	}
	return &url.Error{Op: method, URL: r.URL.String(), Err: err}
}

// streamError stands for the error of a reset HTTP/2 stream.
type streamError struct{}

func (streamError) Error() string {
	return "stream error: stream ID 1; INTERNAL_ERROR; received from peer"
}
