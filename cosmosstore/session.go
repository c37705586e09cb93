package cosmosstore

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/worker"
)

// session is a client that has read its account, and a container whose layout is known. It does not change, but for unfit.
type session struct {
	client    *azcosmos.Client
	container *azcosmos.ContainerClient
	layout    layout
	readAt    time.Time
	// unfit is the newest reason why the documents of a message do not fit the container.
	unfit atomic.Pointer[worker.MisconfiguredError]
}

// opening is the attempt to open a session, which every call that needs one waits for.
type opening struct {
	done   chan struct{}
	cancel context.CancelFunc
	// session and err are set before done is closed.
	session *session
	err     error
}

// errClosed is what a closed store answers.
var errClosed = errors.New("cosmosstore: the store is closed")

// session returns the session of the store, and opens one when there is none. azcosmos ignores the deadline of its caller
// while it reads the account, and keeps a failure for five minutes; so the opening runs in a goroutine of its own, which
// the caller need not wait for, and each opening has a new client.
func (s *Store) session(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, noTime(ctx, opReadContainer, "no time to begin", false)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, &worker.UnavailableError{Cause: errClosed}
	}
	if sess := s.current; sess != nil {
		s.mu.Unlock()
		return sess, nil
	}
	o := s.openLocked(ctx)
	s.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, noTime(ctx, opReadContainer, "the account did not answer in time", false)
	}
}

// checkRegions refuses an account that takes writes in several regions.
func (s *Store) checkRegions() error {
	if s.requests.severalRegions.Load() {
		return storeError(opReadContainer, misconfigured, answerTo(errSeveralRegions), false)
	}
	return nil
}

// openLocked returns the opening that is going on, or begins one. The caller holds mu.
func (s *Store) openLocked(ctx context.Context) *opening {
	if s.opening != nil {
		return s.opening
	}
	ctx, cancel := context.WithTimeout(withoutCall(ctx), s.opts.ConnectTimeout)
	o := &opening{done: make(chan struct{}), cancel: cancel}
	s.opening = o
	s.openers.Go(func() {
		defer cancel()
		o.session, o.err = s.open(boundAccountRead(ctx))
		s.mu.Lock()
		s.opening = nil
		switch {
		case o.err != nil:
		case s.closed:
			o.session.client.Close()
			o.session, o.err = nil, &worker.UnavailableError{Cause: errClosed}
		default:
			s.current = o.session
		}
		s.mu.Unlock()
		close(o.done)
	})
	return o
}

// open makes a client and reads account and container.
func (s *Store) open(ctx context.Context) (*session, error) {
	client, err := s.newClient()
	if err != nil {
		return nil, &worker.MisconfiguredError{Fix: "Correct the endpoint or the key.", Cause: err}
	}
	sess := &session{client: client}
	sess.container, err = client.NewContainer(s.opts.Database, s.opts.Container)
	if err != nil {
		client.Close()
		return nil, &worker.MisconfiguredError{Fix: "Correct the names of database and container.", Cause: err}
	}
	sess.layout, err = s.readLayout(ctx, sess)
	if err == nil {
		err = s.checkRegions()
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	sess.readAt = time.Now()
	if f, ok := pathFinding(sess.layout.keyPath, s.opts); ok {
		s.log.LogAttrs(ctx, slog.LevelWarn, "container cannot hold every message", slog.String(keyCause, f.Text+". "+f.Fix))
	}
	return sess, nil
}

// readLayout reads the container. The first read of a client reads the account before it.
func (s *Store) readLayout(ctx context.Context, sess *session) (layout, error) {
	p, err := s.readContainer(ctx, sess)
	if err != nil {
		return layout{}, err
	}
	return layoutOf(p, s.opts)
}

func (s *Store) readContainer(ctx context.Context, sess *session) (azcosmos.ContainerProperties, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ConnectTimeout)
	defer cancel()
	resp, err := sess.container.Read(ctx, nil)
	if err != nil {
		return azcosmos.ContainerProperties{}, outOfTime(ctx, probeError(opReadContainer, answerTo(err)))
	}
	a := answerOf(resp.RawResponse)
	if err := probeError(opReadContainer, a); err != nil {
		return azcosmos.ContainerProperties{}, err
	}
	// An empty text and any object parse as a container that fits nothing, and would be for good.
	if resp.ContainerProperties == nil || resp.ContainerProperties.ID != s.opts.Container {
		return azcosmos.ContainerProperties{}, &worker.UnavailableError{Cause: &answerError{op: opReadContainer, answer: a,
			note: "the reply does not describe the container, so something else may answer in the place of the account"}}
	}
	return *resp.ContainerProperties, nil
}

// newClient returns a client that has not sent anything yet.
func (s *Store) newClient() (*azcosmos.Client, error) {
	o := &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Transport:        s.sends,
			Retry:            policy.RetryOptions{MaxRetries: 3, RetryDelay: 100 * time.Millisecond, MaxRetryDelay: 2 * time.Second},
			PerRetryPolicies: []policy.Policy{s.requests},
			Telemetry:        policy.TelemetryOptions{ApplicationID: s.opts.ApplicationID},
			TracingProvider:  quietTracing(s.opts.Tracing),
		},
		PreferredRegions: s.opts.PreferredRegions,
	}
	if s.opts.Key != "" {
		return azcosmos.NewClientWithKey(s.opts.Endpoint, s.key, o)
	}
	return azcosmos.NewClient(s.opts.Endpoint, credential{s.opts.Credential}, o)
}

// forget drops a session, so that the next call reads account and container anew.
func (s *Store) forget(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == sess {
		s.current = nil
		sess.client.Close()
	}
}

// Close ends the reading of account and container that may be going on and releases connections. Calls that are under way
// end by themselves; later ones fail. It always returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.opening != nil {
		s.opening.cancel()
	}
	if s.renewal.cancel != nil {
		s.renewal.cancel()
	}
	sess := s.current
	s.current = nil
	s.mu.Unlock()
	s.openers.Wait()
	if sess != nil {
		sess.client.Close()
	}
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
	return nil
}
