package amqp_test

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// golden pairs values with the bytes that the standard gives them (amqp-core-types section 1.6).
func golden() []struct {
	name  string
	value any
	bytes string
} {
	return []struct {
		name  string
		value any
		bytes string
	}{
		{"null", nil, "40"},
		{"true", true, "41"},
		{"false", false, "42"},
		{"ubyte", uint8(200), "50c8"},
		{"ushort", uint16(0x1234), "601234"},
		{"uint zero", uint32(0), "43"},
		{"uint small", uint32(255), "52ff"},
		{"uint", uint32(256), "7000000100"},
		{"ulong zero", uint64(0), "44"},
		{"ulong small", uint64(7), "5307"},
		{"ulong", uint64(math.MaxUint64), "80ffffffffffffffff"},
		{"byte", int8(-1), "51ff"},
		{"short", int16(-2), "61fffe"},
		{"int small", int32(-128), "5480"},
		{"int", int32(-129), "71ffffff7f"},
		{"long small", int64(127), "557f"},
		{"long", int64(128), "810000000000000080"},
		{"float", float32(1.5), "723fc00000"},
		{"double", float64(-2), "82c000000000000000"},
		{"decimal32", amqp.Decimal32{1, 2, 3, 4}, "7401020304"},
		{"decimal64", amqp.Decimal64{1, 2, 3, 4, 5, 6, 7, 8}, "840102030405060708"},
		{"decimal128", amqp.Decimal128{15: 9}, "9400000000000000000000000000000009"},
		{"char", amqp.Char('€'), "73000020ac"},
		{"timestamp", time.UnixMilli(1311704463521).UTC(), "830000013167adb8a1"},
		{"timestamp before the epoch", time.UnixMilli(-1).UTC(), "83ffffffffffffffff"},
		{"uuid", amqp.UUID{0x12, 15: 0x34}, "9812000000000000000000000000000034"},
		{"binary", []byte{1, 2}, "a0020102"},
		{"empty binary", []byte{}, "a000"},
		{"string", "ä", "a102c3a4"},
		{"symbol", amqp.Symbol("x-opt"), "a305782d6f7074"},
		{"empty list", amqp.List{}, "45"},
		{"list", amqp.List{uint32(1), nil}, "c00402520140"},
		{"map", amqp.Map{{Key: "a", Value: int64(1)}}, "c10602a101615501"},
		{"empty map", amqp.Map{}, "c10100"},
		{"array of small longs", amqp.Array{Code: 0x55, Items: []any{int64(1), int64(-1)}}, "e004025501ff"},
		{"array of uuids", amqp.Array{Code: 0x98, Items: []any{amqp.UUID{1}}}, "e012019801" + strings.Repeat("00", 15)},
		{"array of true", amqp.Array{Code: 0x41, Items: []any{true, true, true}}, "e0020341"},
		{"array of arrays", amqp.Array{Code: 0xe0, Items: []any{amqp.Array{Code: 0x50, Items: []any{uint8(3)}}}}, "e00601e003015003"},
		{"described", amqp.Described{Descriptor: uint64(0x70), Value: amqp.List{}}, "00537045"},
		{"described array", amqp.Array{Code: 0xa1, Descriptor: amqp.Symbol("u"), Items: []any{"x"}}, "e0080100a30175a10178"},
	}
}

func TestGoldenBytes(t *testing.T) {
	for _, tt := range golden() {
		t.Run(tt.name, func(t *testing.T) {
			encoded, err := amqp.Append(nil, tt.value)
			require.NoError(t, err)
			require.Equal(t, tt.bytes, hex.EncodeToString(encoded))
			r := amqp.NewReader(encoded)
			decoded, err := r.Value()
			require.NoError(t, err)
			require.Equal(t, tt.value, decoded)
			require.Zero(t, r.Len())
			r = amqp.NewReader(encoded)
			skipped, err := r.Skip()
			require.NoError(t, err)
			require.Equal(t, encoded, skipped)
		})
	}
}

func TestLongFormsAreReadAndLargeValuesKeepTheirForm(t *testing.T) {
	for name, in := range map[string]string{
		"bool of one byte": "5601", "uint in full": "7000000001", "ulong in full": "800000000000000001", "int in full": "7100000001",
		"long in full": "810000000000000001", "binary of 32 bits": "b0000000020102", "string of 32 bits": "b10000000161",
		"list of 32 bits": "d0000000050000000140", "map of 32 bits": "d10000000400000000", "symbol of 32 bits": "b30000000161",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(in)
			require.NoError(t, err)
			v, err := amqp.NewReader(b).Value()
			require.NoError(t, err)
			again, err := amqp.Append(nil, v)
			require.NoError(t, err)
			require.LessOrEqual(t, len(again), len(b))
			w, err := amqp.NewReader(again).Value()
			require.NoError(t, err)
			require.Equal(t, v, w)
		})
	}
	for name, v := range map[string]any{
		"string": strings.Repeat("s", 300), "binary": make([]byte, 70000), "symbol": amqp.Symbol(strings.Repeat("y", 256)),
		"list": amqp.List{strings.Repeat("x", 250), strings.Repeat("y", 250)},
	} {
		t.Run("large "+name, func(t *testing.T) {
			b, err := amqp.Append(nil, v)
			require.NoError(t, err)
			w, err := amqp.NewReader(b).Value()
			require.NoError(t, err)
			require.Equal(t, v, w)
		})
	}
}

func TestMalformedValuesAreErrors(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "unknown constructor": "3f", "unknown fixed constructor": "57ff", "unknown wide constructor": "c5010000",
		"short number": "8000", "bad boolean": "5602", "string beyond the end": "a105616263", "huge binary": "b0ffffffff00",
		"list longer than its bytes": "c00105", "map with an odd count": "c1030140", "bytes after the last item": "c003014040",
		"array of a billion nulls": "f0000000054000000040", "array without a constructor": "e00101",
		"array with a null descriptor": "e00401004040", "array with two descriptors": "e006010053010041",
		"descriptor without a value": "005370",
		"nested too deep":            strings.Repeat("c0ff01", 200),
	} {
		t.Run(name, func(t *testing.T) {
			b, err := hex.DecodeString(in)
			require.NoError(t, err)
			_, err = amqp.NewReader(b).Value()
			require.ErrorIs(t, err, amqp.ErrMalformed)
			_, err = amqp.NewReader(b).Skip()
			require.ErrorIs(t, err, amqp.ErrMalformed)
		})
	}
}

func TestNestingIsBounded(t *testing.T) {
	b := []byte{0x45}
	for range 100 {
		b = append([]byte{0xd0, 0, 0, 0, 0, 0, 0, 0, 1}, b...)
		b[3], b[4] = byte((len(b)-5)>>8), byte(len(b)-5)
	}
	_, err := amqp.NewReader(b).Value()
	require.ErrorIs(t, err, amqp.ErrMalformed)
	require.ErrorContains(t, err, "nested")
	_, err = amqp.NewReader(b).Skip()
	require.ErrorContains(t, err, "nested")
}

func TestGoValuesThatAreNoAMQPValuesAreRefused(t *testing.T) {
	for _, v := range []any{1, struct{}{}, amqp.List{1}, amqp.Map{{Key: 1}}, amqp.Array{Code: 0x50, Items: []any{"x"}},
		amqp.Array{Code: 0x55, Items: []any{int64(1000)}}, amqp.Described{Descriptor: 1}} {
		_, err := amqp.Append(nil, v)
		require.ErrorContains(t, err, "amqp: encode")
	}
}

func FuzzValue(f *testing.F) {
	for _, g := range golden() {
		b, err := hex.DecodeString(g.bytes)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, s := amqp.NewReader(b), amqp.NewReader(b)
		v, err := r.Value()
		_, skipErr := s.Skip()
		require.Equal(t, err == nil, skipErr == nil, "decoding says %v, skipping says %v", err, skipErr)
		if err != nil {
			return
		}
		require.Equal(t, r.Len(), s.Len())
		once, err := amqp.Append(nil, v)
		require.NoError(t, err)
		require.LessOrEqual(t, len(once), len(b)-r.Len())
		w, err := amqp.NewReader(once).Value()
		require.NoError(t, err)
		twice, err := amqp.Append(nil, w)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
