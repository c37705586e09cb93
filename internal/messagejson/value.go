package messagejson

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/Azure/go-amqp"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/orderworker/orderworker/internal/body"
)

// valueInto reads a value in its plain or its typed form.
func valueInto(at *any) func(jsontext.Value) error {
	return func(raw jsontext.Value) (err error) {
		*at, err = decodeValue(raw)
		return err
	}
}

func decodeValue(raw jsontext.Value) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return fromPlain(v)
}

func fromPlain(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s is a number that no double can hold", shortened(v.String()))
		}
		return f, nil
	case []any:
		return decodeList(v)
	case map[string]any:
		if len(v) == 1 {
			for name, inner := range v {
				return decodeTyped(name, inner)
			}
		}
	}
	return nil, fmt.Errorf("an object here is a typed value with one name, such as {\"int\":1}")
}

func decodeList(items []any) ([]any, error) {
	list := make([]any, len(items))
	for i, item := range items {
		v, err := fromPlain(item)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func decodeTyped(name string, v any) (any, error) {
	switch name {
	case "null":
		return nil, nil
	case "list":
		items, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("list: want an array")
		}
		return decodeList(items)
	case "map":
		return decodeMap(v)
	case "bool":
		b, ok := v.(bool)
		if !ok {
			return nil, fmt.Errorf("bool: want true or false")
		}
		return b, nil
	}
	text, err := scalarText(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return decodeScalar(name, text)
}

func decodeMap(v any) (any, error) {
	pairs, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("map: want an array of [key, value] pairs")
	}
	m := make(map[any]any, len(pairs))
	for _, p := range pairs {
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("map: want an array of [key, value] pairs")
		}
		kv, err := decodeList(pair)
		if err != nil {
			return nil, err
		}
		if kv[0] != nil && !reflect.TypeOf(kv[0]).Comparable() {
			return nil, fmt.Errorf("map: a list or a map cannot be a key")
		}
		m[kv[0]] = kv[1]
	}
	return m, nil
}

func scalarText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	}
	return "", fmt.Errorf("want a string or a number")
}

func decodeScalar(name, text string) (any, error) {
	switch name {
	case "string":
		return text, nil
	case "string_b64":
		b, err := decodeBase64(text)
		return string(b), err
	case "symbol":
		return amqp.Symbol(text), nil
	case "byte":
		return signed[int8](name, text, 8)
	case "short":
		return signed[int16](name, text, 16)
	case "int":
		return signed[int32](name, text, 32)
	case "long":
		return signed[int64](name, text, 64)
	case "ubyte":
		return unsigned[uint8](name, text, 8)
	case "ushort":
		return unsigned[uint16](name, text, 16)
	case "uint":
		return unsigned[uint32](name, text, 32)
	case "ulong":
		return unsigned[uint64](name, text, 64)
	case "float":
		f, err := decodeFloat(name, text, 32)
		return float32(f), err
	case "double":
		return decodeFloat(name, text, 64)
	case "uuid":
		return parseUUID(text)
	case "timestamp":
		return decodeTime(text)
	case "binary_b64":
		return decodeBase64(text)
	}
	return nil, fmt.Errorf("%q is not a type that messages can carry here", name)
}

func signed[T int8 | int16 | int32 | int64](name, text string, bits int) (any, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a whole number from %d to %d", name, shortened(text), int64(-1)<<(bits-1), int64(1)<<(bits-1)-1)
	}
	return T(n), nil
}

func unsigned[T uint8 | uint16 | uint32 | uint64](name, text string, bits int) (any, error) {
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a whole number from 0 to %d", name, shortened(text), uint64(math.MaxUint64)>>(64-bits))
	}
	return T(n), nil
}

func decodeFloat(name, text string, bits int) (float64, error) {
	f, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a number that it can hold", name, shortened(text))
	}
	return f, nil
}

func parseUUID(text string) (amqp.UUID, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != len(amqp.UUID{}) {
		return amqp.UUID{}, fmt.Errorf("uuid: %q is not a UUID", shortened(text))
	}
	return amqp.UUID(b), nil
}

// encodeValue returns what json.Marshal writes for v so that decodeValue gives v back.
func encodeValue(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return typed("string_b64", []byte(v)), nil
		}
		return v, nil
	case float64:
		return encodeFloat("double", v, 64), nil
	case float32:
		return encodeFloat("float", float64(v), 32), nil
	case int:
		return int64(v), nil
	case int8, int16, int32, uint8, uint16, uint32, uint64:
		return typed(body.TypeName(v), v), nil
	case amqp.Symbol:
		return typed("symbol", string(v)), nil
	case amqp.UUID:
		return typed("uuid", v.String()), nil
	case time.Time:
		return typed("timestamp", formatTime(v)), nil
	case []byte:
		return typed("binary_b64", v), nil
	case []any:
		return encodeList(v)
	case map[string]any:
		return encodeMap(reflect.ValueOf(v))
	case map[any]any:
		return encodeMap(reflect.ValueOf(v))
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice {
		list := make([]any, rv.Len())
		for i := range list {
			list[i] = rv.Index(i).Interface()
		}
		return encodeList(list)
	}
	return nil, fmt.Errorf("a value of type %T has no JSON form", v)
}

func typed(name string, v any) any { return map[string]any{name: v} }

// encodeFloat always writes the type, since a whole number would come back as a long, and spells what JSON cannot.
func encodeFloat(name string, f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return typed(name, strconv.FormatFloat(f, 'g', -1, bits))
	}
	return typed(name, json.Number(strconv.FormatFloat(f, 'g', -1, bits)))
}

func encodeList(items []any) (any, error) {
	out := make([]any, len(items))
	for i, item := range items {
		v, err := encodeValue(item)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// encodeMap writes the pairs in a fixed order, so that equal maps give equal lines.
func encodeMap(m reflect.Value) (any, error) {
	pairs := make([][2]any, 0, m.Len())
	for it := m.MapRange(); it.Next(); {
		k, err := encodeValue(it.Key().Interface())
		if err != nil {
			return nil, err
		}
		v, err := encodeValue(it.Value().Interface())
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, [2]any{k, v})
	}
	slices.SortFunc(pairs, func(a, b [2]any) int { return strings.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])) })
	return typed("map", pairs), nil
}
