package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// A Conn is the client's end of a connection over which every message that arrives can be decoded by the client library: see
// [MakeDecodable]. Without it one message with a decimal in a property ends the link, and every message that came along stays
// locked until its lock ends. It holds the frames of a message back until all of them are here. What it does not know it
// passes on as it is.
//
// It is as safe for concurrent use as the connection below it, except that one goroutine at a time may read.
type Conn struct {
	net.Conn
	in *bufio.Reader
	// ready is what Read returns next, and err what it returns after that.
	ready []byte
	err   error
	// held are frames that wait for the messages in open to be whole, and size how many bytes they have.
	held []byte
	open map[link]*delivery
	// raw tells that something came that is not made of frames.
	raw bool
}

// link names a link by the channel and the handle that the broker uses for it.
type link struct {
	channel uint16
	handle  uint32
}

// delivery is a message that is not whole yet: the bounds of its parts in the held frames.
type delivery struct{ parts [][2]int }

// The bounds of what is held back: a frame, and all frames that wait for a message to be whole. The largest message of the
// service has 100 MB.
const (
	maxFrame = 16 << 20
	maxHeld  = 128 << 20
)

// NewConn returns a connection over c.
func NewConn(c net.Conn) *Conn {
	return &Conn{Conn: c, in: bufio.NewReaderSize(c, 64<<10), open: map[link]*delivery{}}
}

// Read implements [net.Conn].
func (c *Conn) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		switch {
		case c.raw:
			return c.in.Read(p)
		case c.err != nil:
			return 0, c.err
		}
		if c.err = c.next(); c.err != nil {
			c.flush()
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// flush passes on what is held.
func (c *Conn) flush() {
	c.ready, c.held = c.held, nil
	clear(c.open)
}

// frameHeader is the size of a frame's header, and of the header with which a protocol begins.
const frameHeader = 8

// next reads a frame.
func (c *Conn) next() error {
	header, err := c.in.Peek(frameHeader)
	if err != nil {
		c.held = append(c.held, header...)
		return err
	}
	size := int(binary.BigEndian.Uint32(header))
	switch {
	case string(header[:4]) == "AMQP":
		size = frameHeader
	case size < frameHeader || size > maxFrame:
		c.raw = true
		c.flush()
		return nil
	}
	at := len(c.held)
	c.held = append(c.held, make([]byte, size)...)
	if n, err := io.ReadFull(c.in, c.held[at:]); err != nil {
		c.held = c.held[:at+n]
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		return err
	}
	c.meet(at)
	if len(c.open) == 0 || len(c.held) > maxHeld {
		c.flush()
	}
	return nil
}

// meet looks at the frame that begins at a place in what is held.
func (c *Conn) meet(at int) {
	frame := c.held[at:]
	head := 4 * int(frame[4])
	if string(frame[:4]) == "AMQP" || frame[5] != 0 || head < frameHeader || head > len(frame) {
		return
	}
	t, ok := readTransfer(frame[head:])
	if !ok {
		return
	}
	l := link{channel: binary.BigEndian.Uint16(frame[6:]), handle: t.handle}
	d := c.open[l]
	if d == nil {
		d = &delivery{}
	}
	d.parts = append(d.parts, [2]int{at + head + t.size, len(c.held)})
	switch {
	case t.more && !t.aborted:
		c.open[l] = d
		return
	case !t.aborted:
		c.whole(d)
	}
	delete(c.open, l)
}

// whole makes a message decodable that is whole now.
func (c *Conn) whole(d *delivery) {
	if len(d.parts) == 1 {
		MakeDecodable(c.held[d.parts[0][0]:d.parts[0][1]])
		return
	}
	var message []byte
	for _, p := range d.parts {
		message = append(message, c.held[p[0]:p[1]]...)
	}
	if !MakeDecodable(message) {
		return
	}
	for _, p := range d.parts {
		message = message[copy(c.held[p[0]:p[1]], message):]
	}
}

// transfer is what counts of the performative that carries a part of a message.
type transfer struct {
	handle        uint32
	more, aborted bool
	size          int // of the performative
}

// readTransfer reads the performative at the start of a frame's body, if it is a transfer (AMQP 1.0, part 2, 2.7.5).
func readTransfer(b []byte) (t transfer, ok bool) {
	const transferCode = 0x14
	code, head := descriptor(b)
	if code != transferCode {
		return t, false
	}
	size, err := valueSize(b[head:], 0)
	if err != nil {
		return t, false
	}
	fields, _ := listItems(b[head:])
	field := func(i int) []byte {
		if i < len(fields) {
			return fields[i]
		}
		return []byte{0x40}
	}
	t.handle, ok = uintOf(field(0))
	t.more, t.aborted, t.size = isTrue(field(5)), isTrue(field(9)), head+size
	return t, ok
}

func uintOf(b []byte) (uint32, bool) {
	switch b[0] {
	case 0x43:
		return 0, true
	case 0x52:
		return uint32(b[1]), true
	case 0x70:
		return binary.BigEndian.Uint32(b[1:]), true
	}
	return 0, false
}

func isTrue(b []byte) bool { return b[0] == 0x41 || b[0] == 0x56 && b[1] == 1 }
