package body_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"

	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/worker/reason"
)

func data(sections ...string) *azservicebus.ReceivedMessage {
	m := &azservicebus.ReceivedMessage{RawAMQPMessage: &azservicebus.AMQPAnnotatedMessage{}}
	for _, s := range sections {
		m.RawAMQPMessage.Body.Data = append(m.RawAMQPMessage.Body.Data, []byte(s))
	}
	return m
}

func value(v any) *azservicebus.ReceivedMessage {
	m := data()
	m.RawAMQPMessage.Body.Value = v
	return m
}

func labelled(m *azservicebus.ReceivedMessage, name string, label any) *azservicebus.ReceivedMessage {
	m.ApplicationProperties = map[string]any{name: label}
	return m
}

func packed(t testing.TB, contents ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, content := range contents {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(content))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return b.String()
}

// envelope is an envelope of the old .NET serialiser around records that are given byte for byte.
func envelope(name string, records ...string) string {
	const ns = "http://schemas.microsoft.com/2003/10/Serialization/"
	return "@" + string(rune(len(name))) + name + "\x08" + string(rune(len(ns))) + ns + strings.Join(records, "")
}

func record8(kind byte, text string) string { return string([]byte{kind, byte(len(text))}) + text }

func record32(kind byte, text string) string {
	return string(binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(text)))) + text
}

func TestDecode(t *testing.T) {
	const text = `{"a":1}`
	encoding := "gzip"
	gz := packed(t, text)
	noRaw := &azservicebus.ReceivedMessage{Body: []byte(text)}
	partRaw := data()
	partRaw.Body = []byte(text)
	both := value("x")
	both.RawAMQPMessage.Body.Data = [][]byte{[]byte("y")}
	amqpLabel := data(gz)
	amqpLabel.RawAMQPMessage.Properties = &azservicebus.AMQPAnnotatedMessageProperties{ContentEncoding: &encoding}
	typed := func(m *azservicebus.ReceivedMessage, contentType string) *azservicebus.ReceivedMessage {
		m.ContentType = &contentType
		return m
	}
	rawProperties := data(gz)
	rawProperties.RawAMQPMessage.ApplicationProperties = map[string]any{"Content-Encoding": "gzip"}

	tests := []struct {
		name    string
		message *azservicebus.ReceivedMessage
		options body.Options
		want    string // the content, or the reason of the refusal
	}{
		{"one data section", data(text), body.Options{}, text},
		{"several data sections", data(`{"a`, ``, `":`, `1}`), body.Options{}, text},
		{"a message that has no raw form", noRaw, body.Options{}, text},
		{"a message whose raw form has no body", partRaw, body.Options{}, text},
		{"a message without anything", &azservicebus.ReceivedMessage{}, body.Options{}, reason.EmptyBody},
		{"no section", data(), body.Options{}, reason.EmptyBody},
		{"an empty section", data(""), body.Options{}, reason.EmptyBody},
		{"blanks of all kinds", data(" \t\r\n\u00a0\u2003"), body.Options{}, reason.EmptyBody},
		{"only a byte order mark", data("\ufeff"), body.Options{}, reason.EmptyBody},
		{"a text value", value(text), body.Options{}, text},
		{"a binary value", value([]byte(text)), body.Options{}, text},
		{"an empty text value", value(""), body.Options{}, reason.EmptyBody},
		{"a null value, spelt out", value(amqp.Null{}), body.Options{}, reason.EmptyBody},
		{"a number", value(int64(1)), body.Options{}, reason.UnsupportedBody},
		{"a map", value(map[string]any{"a": 1}), body.Options{}, reason.UnsupportedBody},
		{"an empty map", value(map[any]any{}), body.Options{}, reason.UnsupportedBody},
		{"a list", value([]any{}), body.Options{}, reason.UnsupportedBody},
		{"an array", value([]int32{1}), body.Options{}, reason.UnsupportedBody},
		{"a symbol", value(amqp.Symbol("x")), body.Options{}, reason.UnsupportedBody},
		{"a uuid", value(amqp.UUID{}), body.Options{}, reason.UnsupportedBody},
		{"a time", value(time.Time{}), body.Options{}, reason.UnsupportedBody},
		{"false", value(false), body.Options{}, reason.UnsupportedBody},
		{"a type that AMQP does not have", value(struct{}{}), body.Options{}, reason.UnsupportedBody},
		{"a text value, refused by option", value(text), body.Options{RefuseValue: true}, reason.UnsupportedBody},
		{"two kinds of sections", both, body.Options{}, reason.UnsupportedBody},

		{"a byte order mark", data("\ufeff" + text), body.Options{}, text},
		{"a second byte order mark", data("\ufeff\ufeff" + text), body.Options{}, "\ufeff" + text},
		{"a byte order mark among bytes", data("\ufeff" + text), body.Options{Binary: true}, "\ufeff" + text},
		{"Latin-1", data("{\"name\":\"Andr\xe9\"}"), body.Options{}, reason.InvalidUTF8},
		{"Latin-1 among bytes", data("Andr\xe9"), body.Options{Binary: true}, "Andr\xe9"},
		{"blanks among bytes", data("  "), body.Options{Binary: true}, "  "},
		{"no bytes", data(""), body.Options{Binary: true}, reason.EmptyBody},
		{"UTF-16 with a mark", data("\xff\xfe{\x00}\x00"), body.Options{}, reason.InvalidUTF8},
		{"UTF-16 with a mark, big endian", data("\xfe\xff\x00{\x00}"), body.Options{}, reason.InvalidUTF8},
		{"UTF-16 without a mark", data("{\x00}\x00"), body.Options{}, reason.InvalidUTF8},
		{"UTF-16 without a mark, big endian", data("\x00{\x00}"), body.Options{}, reason.InvalidUTF8},
		{"UTF-32", data("{\x00\x00\x00}\x00\x00\x00"), body.Options{}, reason.InvalidUTF8},
		{"UTF-32, big endian", data("\x00\x00\x00{\x00\x00\x00}"), body.Options{}, reason.InvalidUTF8},
		{"a binary format with a length in front", data("\x16\x00\x00\x00"), body.Options{}, "\x16\x00\x00\x00"},
		{"an overlong form", data("\xc0\x80"), body.Options{}, reason.InvalidUTF8},
		{"a surrogate in UTF-8", data("\xed\xa0\x80"), body.Options{}, reason.InvalidUTF8},
		{"a serialised Java object", data("\xac\xed\x00\x05sr"), body.Options{}, reason.InvalidUTF8},
		{"a single NUL", data("\x00"), body.Options{}, "\x00"},

		{"gzip by property", labelled(data(gz), "Content-Encoding", "gzip"), body.Options{}, text},
		{"gzip by property in another case", labelled(data(gz), "cONTENT-eNCODING", " GZIP "), body.Options{}, text},
		{"gzip by property without a hyphen", labelled(data(gz), "contentEncoding", "x-gzip"), body.Options{}, text},
		{"gzip by the raw message's property", rawProperties, body.Options{}, text},
		{"gzip by the AMQP property", amqpLabel, body.Options{}, text},
		{"gzip by content type", typed(data(gz), "Application/GZIP; x=y"), body.Options{}, text},
		{"gzip by content type suffix", typed(data(gz), "application/vnd.shop+gzip"), body.Options{}, text},
		{"gzip by two labels", typed(labelled(data(gz), "Content-Encoding", "gzip"), "application/gzip"), body.Options{}, text},
		{"gzip of several members", labelled(data(packed(t, `{"a`, ``, `":1}`)), "Content-Encoding", "gzip"), body.Options{}, text},
		{"gzip in several sections", labelled(data(gz[:9], gz[9:]), "Content-Encoding", "gzip"), body.Options{}, text},
		{"gzip of a byte order mark", labelled(data(packed(t, "\ufeff"+text)), "Content-Encoding", "gzip"), body.Options{}, text},
		{"gzip of nothing", labelled(data(packed(t, "")), "Content-Encoding", "gzip"), body.Options{}, reason.EmptyBody},
		{"gzip of Latin-1", labelled(data(packed(t, "\xe9")), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidUTF8},
		{"gzip without a label", data(gz), body.Options{}, reason.InvalidUTF8},
		{"a label without gzip", labelled(data(text), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidCompression},
		{"a content type without gzip", typed(data(text), "application/gzip"), body.Options{}, reason.InvalidCompression},
		{"gzip cut off", labelled(data(gz[:len(gz)-5]), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidCompression},
		{"gzip cut off in its head", labelled(data(gz[:5]), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidCompression},
		{"gzip with rubbish after it", labelled(data(gz+"x"), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidCompression},
		{"gzip with zeros after it", labelled(data(gz+"\x00\x00"), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidCompression},
		{"gzip with a wrong checksum", labelled(data(gz[:len(gz)-8]+"\x00\x00\x00\x00"+gz[len(gz)-4:]), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidCompression},
		{"gzip up to the bound", labelled(data(packed(t, strings.Repeat("x", 100))), "Content-Encoding", "gzip"), body.Options{MaxBytes: 100}, strings.Repeat("x", 100)},
		{"gzip beyond the bound", labelled(data(packed(t, strings.Repeat("x", 101))), "Content-Encoding", "gzip"), body.Options{MaxBytes: 100}, reason.TooLarge},
		{"an empty body with a label", labelled(data(""), "Content-Encoding", "gzip"), body.Options{}, reason.EmptyBody},
		{"brotli", labelled(data(text), "Content-Encoding", "br"), body.Options{}, reason.UnsupportedEncoding},
		{"deflate", labelled(data(text), "Content-Encoding", "deflate"), body.Options{}, reason.UnsupportedEncoding},
		{"gzip twice", labelled(data(packed(t, gz)), "Content-Encoding", "gzip, gzip"), body.Options{}, reason.UnsupportedEncoding},
		{"gzip and identity", labelled(data(gz), "Content-Encoding", "identity, gzip"), body.Options{}, text},
		{"a label that is a number", labelled(data(text), "Content-Encoding", int32(1)), body.Options{}, reason.UnsupportedEncoding},
		{"a label that is null", labelled(data(text), "Content-Encoding", nil), body.Options{}, text},
		{"identity", labelled(data(text), "Content-Encoding", "identity"), body.Options{}, text},
		{"a character set for a label", labelled(data(text), "Content-Encoding", "utf-8"), body.Options{}, text},
		{"a character set with a semicolon", labelled(data(text), "Content-Encoding", "UTF-8;"), body.Options{}, text},
		{"a character set that the body is not in", labelled(data(text), "Content-Encoding", "utf-16"), body.Options{}, text},
		{"Latin-1 for a label", labelled(data(text), "Content-Encoding", "latin1"), body.Options{}, text},
		{"ISO 8859-1 for a label", labelled(data(text), "Content-Encoding", "iso-8859-1"), body.Options{}, text},
		{"ISO 8859-15 for a label", labelled(data(text), "Content-Encoding", "ISO-8859-15"), body.Options{}, text},
		{"a code page for a label", labelled(data(text), "Content-Encoding", "windows-1252"), body.Options{}, text},
		{"a character set and what it says", labelled(data("\xe9"), "Content-Encoding", "iso-8859-1"), body.Options{}, reason.InvalidUTF8},
		{"a character set and gzip", labelled(data(gz), "Content-Encoding", "utf-8, gzip"), body.Options{}, text},
		{"zstd", labelled(data(text), "Content-Encoding", "zstd"), body.Options{}, reason.UnsupportedEncoding},
		{"compress", labelled(data(text), "Content-Encoding", "compress"), body.Options{}, reason.UnsupportedEncoding},
		{"gzip by the property of Rebus", labelled(data(gz), "rbs2-content-encoding", "gzip"), body.Options{}, text},
		{"gzip by another content type", typed(data(gz), "application/x-gzip-compressed"), body.Options{}, text},
		{"gzip within gzip", labelled(data(packed(t, gz)), "Content-Encoding", "gzip"), body.Options{}, reason.InvalidUTF8},

		{"up to the bound", data(strings.Repeat("x", 100)), body.Options{MaxBytes: 100}, strings.Repeat("x", 100)},
		{"beyond the bound", data(strings.Repeat("x", 101)), body.Options{MaxBytes: 100}, reason.TooLarge},
		{"beyond the bound in sections", data(strings.Repeat("x", 60), strings.Repeat("x", 60)), body.Options{MaxBytes: 100}, reason.TooLarge},

		{"an envelope around text", data(envelope("string", record8(0x99, text))), body.Options{}, text},
		{"an envelope with an end of its own", data(envelope("string", record8(0x98, text), "\x01")), body.Options{}, text},
		{"an envelope with a 32-bit length", data(envelope("string", record32(0x9d, text))), body.Options{}, text},
		{"an envelope of several records", data(envelope("string", record8(0x98, `{"a`), "\xa8", record8(0x99, `":1}`))), body.Options{}, text},
		{"an envelope around bytes", data(envelope("base64Binary", record8(0x9f, text))), body.Options{}, text},
		{"an envelope around bytes in two records", data(envelope("base64Binary", record8(0x9e, `{"a":1`), record8(0x9f, `}`))), body.Options{}, text},
		{"an envelope around a byte order mark", data(envelope("string", record8(0x99, "\ufeff"+text))), body.Options{}, text},
		{"an envelope around one digit", data(envelope("string", "\x83")), body.Options{}, "1"},
		{"an envelope around the other digit", data(envelope("string", "\x81")), body.Options{}, "0"},
		{"an envelope around nothing", data(envelope("string", "\xa9")), body.Options{}, reason.EmptyBody},
		{"an envelope without content", data(envelope("string", "\x01")), body.Options{}, reason.EmptyBody},
		{"an envelope around gzip", labelled(data(envelope("base64Binary", record8(0x9f, gz))), "Content-Encoding", "gzip"), body.Options{}, text},
		{"an envelope within gzip", labelled(data(packed(t, envelope("string", record8(0x99, text)))), "Content-Encoding", "gzip"), body.Options{}, text},
		{"an envelope among bytes", data(envelope("base64Binary", record8(0x9f, "\x00\xff"))), body.Options{Binary: true}, "\x00\xff"},
		{"an envelope that is not opened twice", data(envelope("string", record8(0x99, envelope("string", record8(0x99, "x"))))), body.Options{Binary: true}, envelope("string", record8(0x99, "x"))},
		{"an envelope refused by option", data(envelope("string", record8(0x99, text))), body.Options{RefuseDataContract: true}, reason.DataContractBody},
		{"an envelope of another type", data(envelope("int", "\x89\x07")), body.Options{}, reason.DataContractBody},
		{"an envelope with bytes after it", data(envelope("string", record8(0x99, text), "x")), body.Options{}, reason.DataContractBody},
		{"an envelope with too long a length", data(envelope("string", "\x99\x7f", text)), body.Options{}, reason.DataContractBody},
		{"an envelope with too short a length", data(envelope("string", "\x99\x03", text)), body.Options{}, reason.DataContractBody},
		{"an envelope that ends in a length", data(envelope("string", "\x9d\x01\x00")), body.Options{}, reason.DataContractBody},
		{"an envelope that does not end", data(envelope("string", record8(0x98, text))), body.Options{}, reason.DataContractBody},
		{"an envelope of a head only", data(envelope("string")), body.Options{}, reason.DataContractBody},
		{"an envelope of bytes that calls itself text", data(envelope("string", record8(0x9f, text))), body.Options{}, reason.DataContractBody},
		{"an envelope of text that calls itself bytes", data(envelope("base64Binary", record8(0x99, text))), body.Options{}, reason.DataContractBody},
		{"an envelope with a length of four gigabytes", data(envelope("string", "\x9d\xff\xff\xff\xff", text)), body.Options{}, reason.DataContractBody},
		{"a beginning that only looks like one", data("@\x06string is what I said"), body.Options{}, "@\x06string is what I said"},
		{"an at sign", data("@"), body.Options{}, "@"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, refusal := body.Decode(tt.message, tt.options)
			if refusal == nil {
				require.Equal(t, tt.want, string(got.Bytes))
				return
			}
			require.Equal(t, tt.want, refusal.Reason, "%v", refusal)
			require.True(t, strings.HasSuffix(refusal.Detail, "."), "a sentence: %q", refusal.Detail)
		})
	}
}

func TestDecodeTellsHowItFoundTheBody(t *testing.T) {
	got, refusal := body.Decode(labelled(data(packed(t, "\ufeff{}")), "Content-Encoding", "gzip"), body.Options{})
	require.Nil(t, refusal)
	require.Equal(t, body.Decoded{Bytes: []byte("{}"), Section: "data", Gunzipped: true, BOM: true}, got)
	got, refusal = body.Decode(value(envelope("string", record8(0x99, "{}"))), body.Options{})
	require.Nil(t, refusal)
	require.Equal(t, body.Decoded{Bytes: []byte("{}"), Section: "value(string)", Unwrapped: true}, got)
}

func TestABombCostsNoMoreThanTheBound(t *testing.T) {
	bomb := labelled(data(packed(t, strings.Repeat("\x00", 16<<20))), "Content-Encoding", "gzip")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, refusal := body.Decode(bomb, body.Options{})
	runtime.ReadMemStats(&after)
	require.Equal(t, reason.TooLarge, refusal.Reason)
	allocated := after.TotalAlloc - before.TotalAlloc
	require.Less(t, allocated, uint64(5*body.DefaultMaxBytes), "all that was ever allocated, kept or not")
}

func TestADetailSaysWhatToDoAboutGzip(t *testing.T) {
	gz := packed(t, "{}")
	_, refusal := body.Decode(data(gz), body.Options{})
	require.Contains(t, refusal.Detail, "must set the application property Content-Encoding")
	_, refusal = body.Decode(labelled(data(packed(t, gz)), "Content-Encoding", "gzip"), body.Options{})
	require.Contains(t, refusal.Detail, "gzip within gzip: the sender must compress it once")
	for _, tt := range []struct{ name, body, says string }{
		{"never packed", `{"a":1}`, "begin like JSON"},
		{"cut", gz[:len(gz)-1], "cut, damaged or followed"},
		{"in base64", "H4sIAAAAAAAA", "gzip in base64"},
		{"in the form of zlib", "\x78\x9cabc", "zlib"},
		{"something else", "hello", "and nothing else. The sender"},
	} {
		_, refusal = body.Decode(labelled(data(tt.body), "Content-Encoding", "gzip"), body.Options{})
		require.Contains(t, refusal.Detail, tt.says, tt.name)
	}
}

func TestADetailNamesTheEncoding(t *testing.T) {
	for _, tt := range []struct{ body, says string }{
		{"\xff\xfe{\x00", "UTF-16 (little endian, with"},
		{"\xfe\xff\x00{", "UTF-16 (big endian, with"},
		{"{\x00}\x00", "UTF-16 (little endian, without"},
		{"\x00{\x00}", "UTF-16 (big endian, without"},
		{"\xff\xfe\x00\x00{\x00\x00\x00", "UTF-32 (little endian, with"},
		{"\x00\x00\xfe\xff\x00\x00\x00{", "UTF-32 (big endian, with"},
		{"{\x00\x00\x00", "UTF-32 (little endian, without"},
		{"\x00\x00\x00{", "UTF-32 (big endian, without"},
		{"\x78\x9c\xab", "zlib"},
		{"\x28\xb5\x2f\xfd", "zstd"},
	} {
		_, refusal := body.Decode(data(tt.body), body.Options{})
		require.Equal(t, reason.InvalidUTF8, refusal.Reason)
		require.Contains(t, refusal.Detail, tt.says, "%q", tt.body)
	}
}

// TestManySmallPiecesCostNoMore counts all that is ever allocated for bodies of the smallest records and gzip members.
func TestManySmallPiecesCostNoMore(t *testing.T) {
	const size = body.DefaultMaxBytes
	empty := packed(t, "")
	for name, m := range map[string]*azservicebus.ReceivedMessage{
		"empty records":      data(envelope("string", strings.Repeat("\xa8", size), "\x83")),
		"records of a digit": data(envelope("string", strings.Repeat("\x82", size-1), "\x83")),
		"empty gzip members": labelled(data(strings.Repeat(empty, size/len(empty))+packed(t, "1")), "Content-Encoding", "gzip"),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, refusal := body.Decode(m, body.Options{})
			runtime.ReadMemStats(&after)
			require.Nil(t, refusal)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*size))
		})
	}
}

func TestOptionsAreValidated(t *testing.T) {
	require.NoError(t, body.Options{}.Validate())
	require.ErrorContains(t, body.Options{MaxBytes: -1}.Validate(), "MaxBytes")
}

// FuzzDecode looks for a message that panics, and for a refusal or content that breaks a promise.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"a":1}`), "gzip", uint8(0), true)
	f.Add([]byte(packed(f, `{"a":1}`)), "gzip", uint8(0), false)
	f.Add([]byte(envelope("string", record8(0x98, "{}"), "\x01")), "", uint8(1), false)
	f.Add([]byte(envelope("base64Binary", record32(0xa3, "{}"))), "identity", uint8(2), false)
	f.Add([]byte("\xff\xfe{\x00"), "br", uint8(3), false)
	f.Fuzz(func(t *testing.T, content []byte, label string, kind uint8, binary bool) {
		m := data(string(content))
		switch kind % 4 {
		case 1:
			m = value(string(content))
		case 2:
			m = value(content)
		case 3:
			m = data(string(content[:len(content)/2]), string(content[len(content)/2:]))
		}
		const bound = 1 << 12
		got, refusal := body.Decode(labelled(m, "Content-Encoding", label), body.Options{MaxBytes: bound, Binary: binary})
		if refusal != nil {
			require.NotEmpty(t, refusal.Reason)
			require.Less(t, len(refusal.Detail), 600)
			return
		}
		require.NotEmpty(t, got.Bytes)
		require.LessOrEqual(t, len(got.Bytes), bound)
		if !binary {
			require.True(t, utf8.Valid(got.Bytes))
		}
	})
}
