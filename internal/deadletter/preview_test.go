package deadletter_test

import (
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func TestValuesAreShownByTheirNamesInAMQP(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{nil, "null"},
		{"text", "text"},
		{int64(5), "5"},
		{int32(5), "int(5)"},
		{uint8(5), "ubyte(5)"},
		{float32(1.5), "float(1.5)"},
		{time.Date(2026, 11, 30, 8, 15, 0, 0, time.UTC), "timestamp(2026-11-30 08:15:00 +0000 UTC)"},
		{map[string]any{"a": int64(1)}, "map[a:1]"},
		{[]any{"a", nil}, "[a <nil>]"},
	} {
		require.Equal(t, tt.want, deadletter.Value(tt.value))
	}
	require.Equal(t, "value (map)", deadletter.BodyOf(&amqp.Message{Value: map[string]any{"a": 1}}, 100).Kind)
}
