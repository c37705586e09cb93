package amqp

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	frameAMQP = 0
	frameSASL = 1
	// headerSize is the size of a frame header without an extended header, and of a protocol header.
	headerSize = 8
	// minMaxFrameSize is the smallest max-frame-size that the standard lets a peer ask for.
	minMaxFrameSize = 512
)

// A Frame is one frame. Body is nil in an empty frame, which only keeps a connection alive.
type Frame struct {
	Type    byte
	Channel uint16
	Body    Body
}

// AppendFrame appends the encoding of a frame.
func AppendFrame(dst []byte, f Frame) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, headerSize/4, f.Type)
	dst = binary.BigEndian.AppendUint16(dst, f.Channel)
	if f.Body != nil {
		dst = AppendBody(dst, f.Body)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// A frameReader reads frames from a stream into one buffer that it reuses.
type frameReader struct {
	r   io.Reader
	max uint32
	buf []byte
}

// protocolHeader reads the eight bytes that open a connection and returns the protocol id.
func (f *frameReader) protocolHeader() (byte, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		return 0, err
	}
	if string(h[:4]) != "AMQP" || h[5] != 1 || h[6] != 0 || h[7] != 0 {
		return 0, &ProtocolError{Header: h}
	}
	return h[4], nil
}

// A ProtocolError tells that a peer does not speak AMQP 1.0. It is an [ErrMalformed].
type ProtocolError struct{ Header [headerSize]byte }

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("protocol header % x is not AMQP 1.0", e.Header)
}

// Unwrap returns ErrMalformed.
func (e *ProtocolError) Unwrap() error { return ErrMalformed }

// Speaks names what the peer speaks instead, or returns "" when it is nothing known.
func (e *ProtocolError) Speaks() string {
	switch {
	case e.Header[0] == 0x16 && e.Header[1] == 3:
		return "TLS"
	case string(e.Header[:4]) == "GET ":
		return "HTTP, as for AMQP over WebSockets"
	}
	return ""
}

// next reads one frame. The payload of a transfer is valid until the next call.
func (f *frameReader) next() (Frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(h[:])
	offset := 4 * uint32(h[4])
	if size < headerSize || size > f.max || offset < headerSize || offset > size {
		return Frame{}, malformed("frame of %d bytes with its body at %d; at most %d bytes were agreed on", size, offset, f.max)
	}
	n := int(size - headerSize)
	if cap(f.buf) < n {
		f.buf = make([]byte, max(n, 4096))
	}
	b := f.buf[:n]
	if _, err := io.ReadFull(f.r, b); err != nil {
		return Frame{}, err
	}
	return parseFrame(h[5], binary.BigEndian.Uint16(h[6:]), b[offset-headerSize:])
}

func parseFrame(kind byte, channel uint16, b []byte) (Frame, error) {
	fr := Frame{Type: kind, Channel: channel}
	if kind > frameSASL {
		return Frame{}, malformed("frame of the unknown type %d", kind)
	}
	if len(b) == 0 {
		return fr, nil
	}
	var err error
	fr.Body, err = ParseBody(b)
	return fr, err
}
