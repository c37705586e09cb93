//go:build unix

package bench_test

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process so far. Unlike elapsed time it hardly depends on what else runs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
