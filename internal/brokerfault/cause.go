package brokerfault

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Cause returns the error behind an [azservicebus.Error], for errors.Is and errors.As, and any other error as it is.
func Cause(err error) error {
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		if inner := hidden(e); inner != nil {
			return inner
		}
	}
	return err
}

// hidden returns the cause that an azservicebus.Error keeps to itself, or nil: the type has neither Unwrap nor a field to
// read (sdk/messaging/azservicebus/internal/exported/error.go, v1.11.0). Without it, what the broker answered and what TLS
// or a name server met can only be guessed from a text. A test holds this against the client in use.
func hidden(e *azservicebus.Error) error {
	f := reflect.ValueOf(e).Elem().FieldByName("innerErr")
	if !f.IsValid() || f.Type() != reflect.TypeFor[error]() {
		return nil
	}
	inner, _ := reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface().(error)
	return inner
}
