package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// A Conn is the client's end of a connection over which every message arrives as it was encoded: each frame's part of it becomes
// one data section, and [Unwrap] joins them again. Without it, one message with a decimal in a property ends the link, and every
// message that came along stays locked until its lock ends. What is no transfer passes as it is.
//
// It is as safe for concurrent use as the connection below it, except that one goroutine at a time may read.
type Conn struct {
	net.Conn
	in    *bufio.Reader
	ready []byte // what Read returns next
	err   error  // what it returns after that
	raw   bool   // something came that is not made of frames
}

// NewConn returns a connection over c.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c, in: bufio.NewReaderSize(c, 64<<10)} }

// Unwrap joins the parts of a message that came over a [Conn].
func Unwrap(parts [][]byte) []byte { return bytes.Join(parts, nil) }

// Read implements [net.Conn].
func (c *Conn) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		switch {
		case c.raw:
			return c.in.Read(p)
		case c.err != nil:
			return 0, c.err
		}
		c.ready, c.err = c.next()
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

const (
	// frameHeader is the size of a frame's header, and of the header with which a protocol begins.
	frameHeader = 8
	// maxFrame bounds what is taken for a frame. The client library asks for frames of 64 KiB.
	maxFrame = 16 << 20
	// typeAMQP is the type of a frame that is none of SASL.
	typeAMQP = 0
)

// next reads a frame, or what there is of it.
func (c *Conn) next() ([]byte, error) {
	header, err := c.in.Peek(frameHeader)
	if err != nil {
		return bytes.Clone(header), err
	}
	isFrame, size := string(header[:4]) != "AMQP", frameHeader
	if isFrame {
		size = int(binary.BigEndian.Uint32(header))
	}
	if size < frameHeader || size > maxFrame {
		c.raw = true
		return nil, nil
	}
	frame := make([]byte, size)
	n, err := io.ReadFull(c.in, frame)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	body := 4 * int(frame[4])
	if err != nil || !isFrame || frame[5] != typeAMQP || body < frameHeader || body > size {
		return frame[:n], err
	}
	return wrapped(frame, body), nil
}

// The performatives that are changed (AMQP 1.0, part 2, 2.7.3 and 2.7.5), and the fields of an attach by their place.
const (
	codeAttach     = 0x12
	codeTransfer   = 0x14
	roleField      = 2
	maxMessageSize = 10
)

// wrapped returns a frame whose body begins at a place, with its part of a message as a data section. An attach of a sender
// loses its bound of messages, because the data sections are a little larger than the message that it is meant for.
func wrapped(frame []byte, body int) []byte {
	code, head := descriptor(frame[body:])
	fields, whole := listItems(frame[body+head:])
	switch {
	case head == 0 || !whole:
	case code == codeAttach && len(fields) > maxMessageSize && isFalse(fields[roleField]):
		clear(fields[maxMessageSize][1:])
	case code == codeTransfer:
		size, _ := valueSize(frame[body+head:], 0)
		part := frame[body+head+size:]
		out := append(frame[:len(frame)-len(part):len(frame)-len(part)], 0, 0x53, byte(Data), 0xB0)
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(part))), part...)
		binary.BigEndian.PutUint32(out, uint32(len(out)))
		return out
	}
	return frame
}

func isFalse(b []byte) bool { return b[0] == 0x42 || b[0] == 0x56 && b[1] == 0 }
