package cosmosstore

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// errSeveralRegions is the refusal to send a write to an account that takes writes in several regions.
var errSeveralRegions = &refusedWrite{errors.New("the account takes writes in several regions, where a create guards nothing")}

// refusedWrite is an error that no retry policy may answer with another try.
type refusedWrite struct{ error }

// NonRetriable tells the retry policies of azcore to give up.
func (*refusedWrite) NonRetriable() {}

// ambiguousError is a failure of a write that may have happened nevertheless. azcosmos gives up on the failures that it
// knows, but azcore replays the others, such as a reset HTTP/2 stream, and then the client would meet its own document.
// The store wants to know of each try, so it repeats writes itself, see [Store.Commit].
type ambiguousError struct{ err error }

func (e *ambiguousError) Error() string {
	return "the outcome of a write is not known: " + e.err.Error()
}
func (e *ambiguousError) Unwrap() error { return e.err }

// NonRetriable tells the retry policies of azcore to give up.
func (*ambiguousError) NonRetriable() {}

// sentry stands between azcosmos and the network, once for every HTTP request. It bounds the request, counts it, turns
// the failure of a write into an ambiguousError, and sends no write to an account that takes writes in several regions.
type sentry struct {
	account *account
	timeout time.Duration
}

// Do implements policy.Policy.
func (s *sentry) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if readsAccount(raw) {
		return s.readAccount(req)
	}
	write := writes(raw)
	if s.account.meets(raw.Header) && write {
		return nil, errSeveralRegions
	}
	// The body is read by a policy below this one, so the context may end when Next returns.
	ctx, cancel := context.WithTimeout(raw.Context(), s.timeout)
	defer cancel()
	resp, err := req.WithContext(ctx).Next()
	t := tallyOf(raw.Context())
	if err != nil {
		a := answerTo(err)
		lost := write && a.failure != notSent
		t.note(a, 0, lost)
		if lost {
			return resp, &ambiguousError{err}
		}
		return resp, err
	}
	a := answerOf(resp)
	t.note(a, charge(resp.Header), write && mayHaveHappened(resp.StatusCode))
	return resp, nil
}

// readAccount bounds the account read, which azcosmos sends without the deadline of its caller, and learns from it.
func (s *sentry) readAccount(req *policy.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Raw().Context(), s.timeout)
	defer cancel()
	resp, err := req.WithContext(ctx).Next()
	if err == nil && resp.StatusCode == http.StatusOK {
		s.account.learn(resp)
	}
	return resp, err
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

// leash is a policy per call that ends the account read of an opening store together with the opening. azcosmos strips
// deadline and cancellation from the context of that read, but not its values.
type leash struct{}

type leashKey struct{}

// onLeash lets the account reads that follow from ctx end with ctx.
func onLeash(ctx context.Context) context.Context { return context.WithValue(ctx, leashKey{}, ctx) }

// Do implements policy.Policy.
func (leash) Do(req *policy.Request) (*http.Response, error) {
	owner, ok := req.Raw().Context().Value(leashKey{}).(context.Context)
	if !ok || !readsAccount(req.Raw()) {
		return req.Next()
	}
	ctx, cancel := context.WithCancelCause(req.Raw().Context())
	defer cancel(nil)
	stop := context.AfterFunc(owner, func() { cancel(context.Cause(owner)) })
	defer stop()
	return req.WithContext(ctx).Next()
}

// tokenError is the failure of a credential.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// credential marks the errors of another credential, so that they can be told from those of the account.
type credential struct{ azcore.TokenCredential }

// GetToken implements azcore.TokenCredential.
func (c credential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := c.TokenCredential.GetToken(ctx, o)
	if err != nil && ctx.Err() == nil {
		return token, &tokenError{err}
	}
	return token, err
}
