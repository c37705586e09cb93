package cosmosstore

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// final is an error that no retry policy of azcore answers with another try.
type final struct{ error }

// NonRetriable marks the error for azcore.
func (final) NonRetriable()   {}
func (f final) Unwrap() error { return f.error }

// errSeveralRegions is the refusal to send a write to an account that takes writes in several regions.
var errSeveralRegions = errors.New("the account takes writes in several regions, where both of two creates of one id succeed")

// requestPolicy sits between azcosmos and the network, and sees every HTTP request. It bounds the request in time, counts it,
// and sends no write to an account that takes writes in several regions. A write that failed is final: azcosmos gives up on the
// failures that it knows, but azcore replays the others, such as a reset HTTP/2 stream, and the client would meet its own
// document. The store wants to know of each try, so it repeats writes itself, see [Store.Commit].
type requestPolicy struct {
	timeout time.Duration
	// severalRegions is what the account says of itself. azcosmos reads the account before the first operation, and again with
	// an operation after five minutes.
	severalRegions atomic.Bool
}

// Do implements policy.Policy.
func (p *requestPolicy) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	write := writes(raw)
	if write && p.severalRegions.Load() {
		return nil, final{errSeveralRegions}
	}
	// The body is read by a policy below this one, so the context may end when Next returns.
	ctx, cancel := context.WithTimeout(raw.Context(), p.timeout)
	defer cancel()
	req = req.WithContext(ctx)
	if readsAccount(raw) {
		return p.readAccount(req)
	}
	resp, err := req.Next()
	stats := statsOf(raw.Context())
	if err != nil {
		a := answerTo(err)
		lost := write && a.failure != notSent
		stats.note(a, 0, lost)
		if lost {
			err = final{err}
		}
		return resp, err
	}
	stats.note(answerOf(resp), charge(resp.Header), write && mayHaveHappened(resp.StatusCode))
	return resp, nil
}

// learn takes in the account's description of itself. A reply without sense changes nothing.
func (p *requestPolicy) learn(resp *http.Response, err error) {
	if err != nil || resp.StatusCode != http.StatusOK {
		return
	}
	body, err := azruntime.Payload(resp)
	var account struct {
		SeveralRegions *bool `json:"enableMultipleWriteLocations"`
	}
	if err == nil && json.Unmarshal(body, &account) == nil && account.SeveralRegions != nil {
		p.severalRegions.Store(*account.SeveralRegions)
	}
}

// headerQuery is set by azcosmos on every query.
const headerQuery = "X-Ms-Documentdb-Query"

func readsAccount(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "" || r.URL.Path == "/")
}

// writes reports whether a request changes documents. A query and a batch of reads are a POST too.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Header.Get(headerQuery) == "" && r.Context().Value(readingKey{}) == nil
}

type readingKey struct{}

// readingOnly marks the requests that follow from ctx as such that change nothing.
func readingOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readingKey{}, true)
}

// mayHaveHappened reports whether a write with this status may have had its effect.
func mayHaveHappened(status int) bool {
	return status < 400 || status == http.StatusRequestTimeout || status == http.StatusGone || status >= 500
}

type openingKey struct{}

// boundAccountRead lets the account reads that follow from ctx end with ctx.
func boundAccountRead(ctx context.Context) context.Context {
	return context.WithValue(ctx, openingKey{}, ctx)
}

// readAccount sends the read of the account, and learns from it. azcosmos strips deadline and cancellation from its context, but
// not the values, so the opening that it belongs to travels as one, and ends the read.
func (p *requestPolicy) readAccount(req *policy.Request) (*http.Response, error) {
	opening, ok := req.Raw().Context().Value(openingKey{}).(context.Context)
	if ok {
		ctx, cancel := context.WithCancel(req.Raw().Context())
		defer cancel()
		defer context.AfterFunc(opening, cancel)()
		req = req.WithContext(ctx)
	}
	resp, err := req.Next()
	if err != nil && ok && opening.Err() != nil {
		return resp, final{err}
	}
	p.learn(resp, err)
	return resp, err
}
