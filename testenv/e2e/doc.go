// Package e2e holds the tests of the whole: the engine, its store over azcosmos and the unmodified SDK clients, against both
// emulators of package testenv. It has no code of its own.
//
// Most tests run in testing/synctest bubbles over in-memory connections, where an hour of waiting costs nothing and a worker
// dies by having its connections cut at a chosen point. The tests in process_test.go do the same with real processes over
// real sockets. At the end of every test the whole history is held against every promise of package history, and against
// the audit of package traffic where a stream was sent.
package e2e
