//go:build race

package worker_test

// underRace tells that the race detector is on. The run time of Go 1.26 fails in it (a fault in the detector's own store of stacks)
// when thousands of timers fire in one bubble.
const underRace = true
