package cosmosstore

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// headerSeveralRegions is set by azcosmos on every request to an account that takes writes in several regions.
const headerSeveralRegions = "X-Ms-Cosmos-Allow-Tentative-Writes"

// account is what the store has learnt of its account by watching azcosmos. azcosmos reads the account before the first
// operation and again every five minutes. Safe for concurrent use.
type account struct {
	mu sync.Mutex
	// guarded by mu
	said    bool // by the account's description of itself
	seen    bool // on the last request
	regions []string
}

// meets takes in the header of a request, and reports whether the account takes writes in several regions.
func (a *account) meets(h http.Header) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = strings.EqualFold(h.Get(headerSeveralRegions), "true")
	return a.seen || a.said
}

// learn takes in the account's description of itself. A reply without sense changes nothing.
func (a *account) learn(resp *http.Response) {
	body, err := azruntime.Payload(resp)
	if err != nil {
		return
	}
	var said struct {
		Several *bool `json:"enableMultipleWriteLocations"`
		Writes  []struct {
			Name string `json:"name"`
		} `json:"writableLocations"`
	}
	if json.Unmarshal(body, &said) != nil || said.Several == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said, a.regions = *said.Several, nil
	for _, w := range said.Writes {
		a.regions = append(a.regions, w.Name)
	}
}

// severalWriteRegions reports whether the account takes writes in several regions, and which it names.
func (a *account) severalWriteRegions() (bool, []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen || a.said, a.regions
}
