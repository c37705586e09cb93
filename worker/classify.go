package worker

import (
	"errors"

	"github.com/orderworker/orderworker/internal/brokerfault"
)

// faultOf is [brokerfault.Of], for calls that were bounded and recovered by supervised.
func faultOf(err error) brokerfault.Fault {
	if errors.Is(err, errStuck) {
		return brokerfault.Stuck
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return brokerfault.Panic
	}
	return brokerfault.Of(err)
}
