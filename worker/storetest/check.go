package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/orderworker/orderworker/worker"
)

// must ends the test with a message unless ok.
func (b *bench) must(ok bool, format string, args ...any) {
	b.Helper()
	if !ok {
		b.Fatalf(format, args...)
	}
}

// succeeds ends the test when an operation has failed.
func (b *bench) succeeds(err error, operation string, args ...any) {
	b.Helper()
	b.must(err == nil, "%s: %v", fmt.Sprintf(operation, args...), err)
}

// equal ends the test when what was got is not what was wanted.
func (b *bench) equal(want, got any, of string, args ...any) {
	b.Helper()
	b.must(reflect.DeepEqual(want, got), "%s: want %+v, got %+v", fmt.Sprintf(of, args...), want, got)
}

// empty ends the test when a list has elements.
func (b *bench) empty(list []string, of string) {
	b.Helper()
	b.must(len(list) == 0, "%s: want none, got %q", of, list)
}

// sameJSON ends the test when a stored content says something else than the content that was committed.
func (b *bench) sameJSON(want, got []byte) {
	b.Helper()
	var w, g any
	b.succeeds(json.Unmarshal(want, &w), "the wanted content")
	b.succeeds(json.Unmarshal(got, &g), "the stored content %q", got)
	b.equal(w, g, "the stored content")
}

// notFound ends the test unless an error says that nothing is stored.
func (b *bench) notFound(err error) {
	b.Helper()
	b.must(errors.Is(err, worker.ErrNotFound), "find: want worker.ErrNotFound, got %v", err)
}
