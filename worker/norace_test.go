//go:build !race

package worker_test

const underRace = false
