package cosmosstore

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/internal/backoff"
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

	// writes is what the answers to writes say about the store.
	writes writeHealth

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
		slog.String(keyActivity, a.activity), slog.String(keyDocument, documentID), slog.String(keyCause, cmp.Or(a.text, a.explanation.said)))
}

// writeBackoff returns the backoff between the writes of one commit, so that writers that met do not meet again.
func writeBackoff() backoff.Policy {
	return backoff.Policy{Base: 50 * time.Millisecond, Max: time.Second}
}
