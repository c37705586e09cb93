// Package bench measures the worker on the embedded environment: its throughput against bare loops over the same SDK clients,
// what each outcome costs in round trips and request units, and its memory. It has no code of its own; make bench runs it.
//
// Throughput in real time depends on the machine and is only printed. What does not depend on it is asserted in tests: the
// counts of round trips, the request charge of each outcome, and, in the fake time of a testing/synctest bubble, how close
// the worker comes to the ideal of its slots when every round trip takes time.
package bench
