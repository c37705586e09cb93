package cosmosstore

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/worker"
)

var _ worker.Store = (*Store)(nil)

// Store is a [worker.Store] over one container of an Azure Cosmos DB account. Make one with [Open]. All methods are safe
// for concurrent use.
type Store struct {
	opts     Options
	key      azcosmos.KeyCredential // when opts.Key is set
	http     *http.Client           // nil when opts.Transport is set
	sends    policy.Transporter
	requests *requestPolicy
	log      *slog.Logger

	openers sync.WaitGroup // goroutines that open or renew a session

	// shortLived is done when the log says that first documents expire too early.
	shortLived sync.Once

	// standing is what the answers to writes tell of the store.
	standing standing

	mu sync.Mutex
	// guarded by mu
	current *session
	opening *opening
	renewal renewal
	closed  bool
}

// The keys of log attributes.
const (
	keyOperation = "operation"
	keyStatus    = "status"
	keySubstatus = "substatus"
	keyActivity  = "activity_id"
	keyDocument  = "document_id"
	keyCause     = "cause"
)

// report logs an answer that the store did not expect. One message may cause several of them, and no body is in them.
func (s *Store) report(ctx context.Context, op operation, a answer, documentID string) {
	s.log.LogAttrs(ctx, slog.LevelWarn, "unexpected answer of the store",
		slog.String(keyOperation, string(op)), slog.Int(keyStatus, a.status), slog.Int(keySubstatus, a.substatus),
		slog.String(keyActivity, a.activity), slog.String(keyDocument, documentID), slog.String(keyCause, a.text))
}

// pause waits for d and reports whether it did: false means that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// backoff is a random part of a bound that doubles with every try, from 1: so that writers that met do not meet again.
func backoff(try int) time.Duration {
	const first, most = 50 * time.Millisecond, time.Second
	return rand.N(min(first<<min(try-1, 10), most)) + time.Millisecond
}
