package cosmosdb

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// DefaultKey is the public account key of Microsoft's emulators.
const DefaultKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// Options configure an account. The zero value is an account with session consistency, one region and [DefaultKey].
type Options struct {
	// Name is the id of the account. Defaults to "embedded".
	Name string
	// Key is the base64 account key that signatures are checked with. Defaults to DefaultKey.
	Key string
	// Consistency is the default consistency level of the account: Strong, BoundedStaleness, Session, ConsistentPrefix
	// or Eventual. Defaults to Session.
	Consistency string
	// Regions are the regions in order of preference; the first is the write region. Defaults to "South Central US".
	Regions []string
	// AdvertisedHost is the host:port that the account gives for its regions, except through
	// the compute gateway. Defaults to the host of the request.
	AdvertisedHost string
	// AcceptTokens lets requests in that carry a Microsoft Entra ID token, whatever the token says. As in the service,
	// a token gives no right to create or change databases, containers and throughput.
	AcceptTokens bool
	// ExpiredBlocksCreate makes a document that has expired block the creation of its successor with a 409, as long as
	// nobody has purged it; reads do not see it. See [Account.Purge].
	ExpiredBlocksCreate bool
	// Faults plans what goes wrong. Defaults to nothing.
	Faults *fault.Plan
	// OnRefusal is called with everything that the account refuses because it does not implement it. It must return
	// soon, and must not call the account. Defaults to nothing.
	OnRefusal func(what string)
	// History records what happens. Defaults to nowhere.
	History *history.Log
}

// Account is an embedded Cosmos DB account. Make one with [New].
type Account struct {
	opts   Options
	key    []byte
	closed chan struct{}

	inflight sync.WaitGroup // requests of the in-process transport

	mu          sync.Mutex // guards everything below, and the contents of the databases
	shut        bool
	databases   []*database
	regions     []string
	multiWrite  bool
	denied      *denial
	lag         Lag
	frozenAt    int64 // the commit that a frozen replica has seen last
	commits     int64 // counts committed transactions of all containers
	etags       int64 // counts versions of all resources
	rids        int64 // counts databases and containers
	refusals    []string
	anyActivity int64 // counts activity ids that the account had to make up
}

type denial struct{ status, substatus int }

// New returns an empty account. It fails when the options make no sense.
func New(opts Options) (*Account, error) {
	opts.Name = cmp.Or(opts.Name, "embedded")
	opts.Key = cmp.Or(opts.Key, DefaultKey)
	opts.Consistency = cmp.Or(opts.Consistency, "Session")
	if len(opts.Regions) == 0 {
		opts.Regions = []string{"South Central US"}
	}
	key, err := base64.StdEncoding.DecodeString(opts.Key)
	if err != nil {
		return nil, fmt.Errorf("cosmosdb: the account key is not base64: %w", err)
	}
	if !slices.Contains(consistencyLevels, opts.Consistency) {
		return nil, fmt.Errorf("cosmosdb: unknown consistency %q, use one of %v", opts.Consistency, consistencyLevels)
	}
	return &Account{opts: opts, key: key, closed: make(chan struct{}), regions: slices.Clone(opts.Regions)}, nil
}

// Key returns the account key in base64.
func (a *Account) Key() string { return a.opts.Key }

// History returns the log that the account writes, or nil.
func (a *Account) History() *history.Log { return a.opts.History }

// Faults returns the plan that the account follows, or nil.
func (a *Account) Faults() *fault.Plan { return a.opts.Faults }

// closedError is what the in-process transport returns for a closed account.
type closedError struct{}

func (closedError) Error() string { return "cosmosdb: the account is closed" }

// NonRetriable tells the Azure SDK not to try again. azcosmos refreshes its view of the account in the background every
// five minutes; a bubble that ends meanwhile would be left with a retry that no clock wakes.
func (closedError) NonRetriable() {}

// Close ends delays and silences at once, without the effects that were still to come, and waits for the requests of the
// in-process transport. The documents can still be inspected afterwards. Close always returns nil. Bubbles must close
// their account before they end, and let a client that is between two tries finish first.
func (a *Account) Close() error {
	a.mu.Lock()
	if !a.shut {
		a.shut = true
		close(a.closed)
	}
	a.mu.Unlock()
	a.inflight.Wait()
	return nil
}

// SetMultiWrite switches writes in several regions on or off. The account only announces it; it does not imitate the
// conflicts that follow.
func (a *Account) SetMultiWrite(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.multiWrite = on
}

// SetRegions replaces the list of regions; the first is the write region.
func (a *Account) SetRegions(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.regions = slices.Clone(names)
}

// DenyData refuses every access to documents from now on, as for an identity without a data plane role: status 403 with
// the substatus. Reading the account and the containers stays allowed.
func (a *Account) DenyData(substatus int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied = &denial{status: 403, substatus: substatus}
}

// AllowData ends what [Account.DenyData] began.
func (a *Account) AllowData() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied = nil
}

// Refusals returns what clients asked for that the account does not implement, in order. A test that expects none should
// check it at its end.
func (a *Account) Refusals() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.refusals)
}
