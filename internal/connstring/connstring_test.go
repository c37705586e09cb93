package connstring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/connstring"
)

func TestAConnectionStringIsRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       connstring.ConnectionString
		address    string
	}{
		{"of the portal", "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0=;EntityPath=orders",
			connstring.ConnectionString{Host: "shop.servicebus.windows.net", KeyName: "k", Key: "c2VjcmV0=", EntityPath: "orders"}, "shop.servicebus.windows.net:5671"},
		{"of an emulator", "Endpoint=sb://localhost;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true;",
			connstring.ConnectionString{Host: "localhost", KeyName: "k", Key: "s", Emulator: true}, "localhost:5672"},
		{"of an emulator with a port", "Endpoint=sb://[::1]:5673;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true",
			connstring.ConnectionString{Host: "[::1]:5673", KeyName: "k", Key: "s", Emulator: true}, "[::1]:5673"},
		{"with a signature", "endpoint=sb://a.test;sharedaccesssignature=SharedAccessSignature sr=a&sig=b",
			connstring.ConnectionString{Host: "a.test", Signature: "SharedAccessSignature sr=a&sig=b"}, "a.test:5671"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := connstring.Parse(tt.text)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.address, got.Address())
		})
	}
}

func TestAFaultOfAConnectionStringRepeatsNoneOfIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"":            connstring.ErrEndpoint,
		"hello":       connstring.ErrEndpoint,
		"Endpoint=sb": connstring.ErrEndpoint,
		"Endpoint=https://a.test;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0": connstring.ErrEndpoint,
		"Endpoint=sb://:5672;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0":     connstring.ErrEndpoint,
		"Endpoint=sb://a.test":                             connstring.ErrCredential,
		"Endpoint=sb://a.test;SharedAccessKeyName=k":       connstring.ErrCredential,
		"Endpoint=sb://a.test;SharedAccessKey=c2VjcmV0=":   connstring.ErrCredential,
		"Endpoint=sb://a.test%zz;SharedAccessKey=c2VjcmV0": connstring.ErrEndpoint,
	} {
		_, err := connstring.Parse(text)
		require.ErrorIs(t, err, want, text)
		require.NotContains(t, err.Error(), "c2VjcmV0")
	}
}
