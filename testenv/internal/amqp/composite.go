package amqp

import (
	"encoding/binary"
	"time"
)

// A compositeWriter appends a described list and leaves out the null fields at its end, as the standard asks.
type compositeWriter struct {
	dst   []byte
	start int
	count uint32
	// end and used are the length and the count up to the last field that is not null.
	end  int
	used uint32
}

func compose(dst []byte, descriptor uint64) compositeWriter {
	dst = append(dst, codeDescribed, codeSmallUlong, byte(descriptor), codeList32, 0, 0, 0, 0, 0, 0, 0, 0)
	return compositeWriter{dst: dst, start: len(dst) - 9, end: len(dst)}
}

func (w *compositeWriter) null() {
	w.dst = append(w.dst, codeNull)
	w.count++
}

// set marks what has been appended as a field that is not null.
func (w *compositeWriter) set() {
	w.count++
	w.end, w.used = len(w.dst), w.count
}

// set0 marks the fields so far as ones to keep, null or not.
func (w *compositeWriter) set0() { w.end, w.used = len(w.dst), w.count }

func (w *compositeWriter) bool(v bool) {
	if !v {
		w.null() // every boolean of the protocol defaults to false
		return
	}
	w.dst = append(w.dst, codeTrue)
	w.set()
}

func (w *compositeWriter) u8(v uint8) {
	w.dst = append(w.dst, codeUbyte, v)
	w.set()
}

func (w *compositeWriter) u16(v uint16) {
	w.dst = binary.BigEndian.AppendUint16(append(w.dst, codeUshort), v)
	w.set()
}

func (w *compositeWriter) u32(v uint32) {
	w.dst = appendU32(w.dst, v)
	w.set()
}

func appendU32(dst []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(dst, codeUint0)
	case v < 256:
		return append(dst, codeSmallUint, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(dst, codeUint), v)
}

func (w *compositeWriter) u32p(v *uint32) {
	if v == nil {
		w.null()
		return
	}
	w.u32(*v)
}

func (w *compositeWriter) u64(v uint64) {
	w.dst, _ = Append(w.dst, v)
	w.set()
}

func (w *compositeWriter) bytes(v []byte) {
	if v == nil {
		w.null()
		return
	}
	w.dst, _ = Append(w.dst, v)
	w.set()
}

func (w *compositeWriter) text(v string) {
	if v == "" {
		w.null()
		return
	}
	w.dst, _ = Append(w.dst, v)
	w.set()
}

func (w *compositeWriter) symbol(v Symbol) {
	w.dst, _ = Append(w.dst, v)
	w.set()
}

// any appends a value that came from a decoder or was made by this package, so that it can be encoded.
func (w *compositeWriter) any(v any) {
	if v == nil {
		w.null()
		return
	}
	if dst, err := Append(w.dst, v); err == nil {
		w.dst = dst
		w.set()
		return
	}
	w.null()
}

func (w *compositeWriter) fields(m Map) {
	if len(m) == 0 {
		w.null()
		return
	}
	w.any(m)
}

func (w *compositeWriter) ms(d time.Duration) { w.u32(uint32(d / time.Millisecond)) }

// part appends a field that writes itself, or null.
func (w *compositeWriter) part(present bool, f func([]byte) []byte) {
	if !present {
		w.null()
		return
	}
	w.dst = f(w.dst)
	w.set()
}

func (w *compositeWriter) done() []byte {
	dst := w.dst[:w.end]
	if w.used == 0 {
		return append(dst[:w.start], codeList0)
	}
	binary.BigEndian.PutUint32(dst[w.start+1:], uint32(w.end-w.start-5))
	binary.BigEndian.PutUint32(dst[w.start+5:], w.used)
	return shorten(dst, w.start)
}

// A compositeReader reads the fields of a list in order. A field that is null or missing leaves its target as it is.
// The first error sticks.
type compositeReader struct {
	r     Reader
	count int
	err   error
}

// composite opens the list of a described type whose descriptor has been read.
func (r *Reader) composite() compositeReader {
	code, err := r.byte()
	switch {
	case err != nil:
		return compositeReader{err: err}
	case code == codeList0:
		return compositeReader{}
	case code != codeList8 && code != codeList32:
		return compositeReader{err: malformed("constructor %#02x where a list should be", code)}
	}
	items, count, err := r.compoundHeader(code)
	if err == nil && count > len(items.b) {
		err = malformed("list of %d fields in %d bytes", count, len(items.b))
	}
	return compositeReader{r: items, count: count, err: err}
}

// next reports whether there is a field and it is not null.
func (f *compositeReader) next() bool {
	if f.err != nil || f.count == 0 {
		return false
	}
	f.count--
	if len(f.r.b) > 0 && f.r.b[0] == codeNull {
		f.r.b = f.r.b[1:]
		return false
	}
	return true
}

// read reads one field of type T into dst.
func read[T any](f *compositeReader, dst *T) {
	if !f.next() {
		return
	}
	v, err := f.r.Value()
	if err != nil {
		f.err = err
		return
	}
	t, ok := v.(T)
	if !ok {
		f.err = malformed("field is %T, not %T", v, *dst)
		return
	}
	*dst = t
}

func (f *compositeReader) u32(dst *uint32) {
	if !f.next() {
		return
	}
	code, err := f.r.byte()
	if err != nil {
		f.err = err
		return
	}
	var n uint64
	switch code {
	case codeUint0:
	case codeSmallUint:
		n, err = f.r.uint(1)
	case codeUint:
		n, err = f.r.uint(4)
	default:
		err = malformed("constructor %#02x where a uint should be", code)
	}
	f.err = err
	*dst = uint32(n)
}

func (f *compositeReader) u32p(dst **uint32) {
	if f.err != nil || f.count == 0 || len(f.r.b) > 0 && f.r.b[0] == codeNull {
		f.next()
		return
	}
	v := new(uint32)
	f.u32(v)
	*dst = v
}

func (f *compositeReader) bool(dst *bool) { read(f, dst) }

func (f *compositeReader) ms(dst *time.Duration) {
	var n uint32
	f.u32(&n)
	*dst = time.Duration(n) * time.Millisecond
}

// symbols reads a field that may hold one symbol or an array of them.
func (f *compositeReader) symbols(dst *[]Symbol) {
	var v any
	read(f, &v)
	switch v := v.(type) {
	case Symbol:
		*dst = []Symbol{v}
	case Array:
		for _, i := range v.Items {
			if s, ok := i.(Symbol); ok {
				*dst = append(*dst, s)
			}
		}
	}
}

// skip passes over one field of any type, checking that it is well-formed.
func (f *compositeReader) skip() {
	if f.next() {
		_, f.err = f.r.Skip()
	}
}

// described reads a field that is itself a described list.
func (f *compositeReader) described(g func(descriptor uint64, r *Reader) error) {
	if !f.next() {
		return
	}
	d, err := f.r.descriptor()
	if err != nil {
		f.err = err
		return
	}
	f.err = g(d, &f.r)
}

// close passes over fields that are not known, and returns the first error.
func (f *compositeReader) close() error {
	for f.err == nil && f.count > 0 {
		f.skip()
	}
	if f.err == nil && len(f.r.b) > 0 {
		f.err = malformed("%d bytes after the last field of a list", len(f.r.b))
	}
	return f.err
}

// descriptor reads the descriptor of a type of the standard, which is a ulong here and its name elsewhere.
func (r *Reader) descriptor() (uint64, error) {
	code, err := r.byte()
	if err != nil {
		return 0, err
	}
	if code != codeDescribed {
		return 0, malformed("constructor %#02x where a described type should begin", code)
	}
	v, err := r.Value()
	if err != nil {
		return 0, err
	}
	d, ok := v.(uint64)
	if !ok {
		return 0, malformed("descriptor %v is not numeric", v)
	}
	return d, nil
}
