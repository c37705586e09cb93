package receiver

import (
	"errors"

	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// FaultOf is [brokerfault.Of], for calls that were bounded by package supervise.
func FaultOf(err error) brokerfault.Fault {
	if errors.Is(err, supervise.ErrStuck) {
		return brokerfault.Stuck
	}
	if _, ok := errors.AsType[*supervise.PanicError](err); ok {
		return brokerfault.Panic
	}
	return brokerfault.Of(err)
}
