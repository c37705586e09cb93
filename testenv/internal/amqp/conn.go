package amqp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Handler is what is behind the links of a connection. The connection's reader calls it, one frame at a time and
// with no lock held, so that it may call every method of [Conn], [Session] and [Link]. What takes time it must do in a
// goroutine of its own, or the connection stands still; only Opened may block.
type Handler interface {
	// Opened tells that the connection is open.
	Opened(c *Conn)
	// Attach asks for a decision on a new link: the handler calls [Link.Accept] or [Link.Refuse], at once or later.
	Attach(l *Link)
	// Credit tells that the peer is ready for messages on a link whose receiver it is.
	Credit(l *Link)
	// Message hands over a message that arrived. Unless m.Settled, [Link.Settle] with its ID must follow once.
	Message(l *Link, m Incoming)
	// Decided hands over what the peer decided about a delivery.
	Decided(s *Session, d Decision)
	// Detached tells that a link that was accepted is gone, for whatever reason. It is called once for each link.
	Detached(l *Link)
}

// Config configures a connection. Zero fields have defaults.
type Config struct {
	Handler Handler
	// ContainerID names the server. Defaults to "embedded-servicebus".
	ContainerID string
	// MaxFrameSize is the largest frame that is accepted, in bytes. Defaults to 65536.
	MaxFrameSize uint32
	// IdleTimeout closes the connection when the peer sends nothing for so long. Defaults to 4 minutes.
	IdleTimeout time.Duration
	// Window is the incoming window of each session, in frames. Defaults to 5000.
	Window uint32
}

// channelMax is the highest channel number that is accepted.
const channelMax = 4999

// closeGrace bounds how long a closed connection waits for the peer to close as well, so that the peer reads the reason.
const closeGrace = time.Second

// Conn is the server's end of one AMQP connection. Its methods are safe for concurrent use.
type Conn struct {
	// Data belongs to the handler, which sets it before Serve.
	Data any

	cfg  Config
	nc   net.Conn
	in   frameReader
	wake chan struct{} // tells the writer that out is not empty
	tick chan time.Duration
	done chan struct{} // closed when the connection ends

	user, secret string // of SASL PLAIN; set before Opened

	lastRead atomic.Int64 // time of the last frame, in Unix nanoseconds

	mu           sync.Mutex
	out          []byte              // guarded by mu; what the writer has not taken yet
	sessions     map[uint16]*Session // guarded by mu
	endsDue      map[uint16]int      // guarded by mu; End frames that the peer still owes for sessions that we ended
	peerMaxFrame uint32              // guarded by mu
	opened       bool                // guarded by mu
	closing      bool                // guarded by mu; a Close frame has been queued
	ended        bool                // guarded by mu; done is closed
	mute         Mute                // guarded by mu
	starved      map[*Link]struct{}  // guarded by mu; links that were refused credit because too much is queued
}

// highWater is how many bytes may be queued before links get no more messages to send. Messages that wait here would be
// locked and age, and use memory twice.
const highWater = 1 << 20

// Mute tells what a connection keeps back.
type Mute int

// The kinds of muteness.
const (
	// Speaking is the normal state.
	Speaking Mute = iota
	// MuteFrames keeps back every frame but the empty ones that keep the connection alive.
	MuteFrames
	// MuteAll keeps back everything.
	MuteAll
)

// NewConn returns a connection over nc, which it owns from now on.
func NewConn(nc net.Conn, cfg Config) *Conn {
	if cfg.ContainerID == "" {
		cfg.ContainerID = "embedded-servicebus"
	}
	if cfg.MaxFrameSize == 0 {
		cfg.MaxFrameSize = 65536
	}
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = 4 * time.Minute
	}
	if cfg.Window == 0 {
		cfg.Window = 5000
	}
	c := &Conn{
		cfg: cfg, nc: nc, in: frameReader{r: bufio.NewReaderSize(nc, 16<<10), max: cfg.MaxFrameSize},
		wake: make(chan struct{}, 1), tick: make(chan time.Duration, 1), done: make(chan struct{}),
		sessions: map[uint16]*Session{}, endsDue: map[uint16]int{}, peerMaxFrame: minMaxFrameSize,
		starved: map[*Link]struct{}{},
	}
	c.lastRead.Store(time.Now().UnixNano())
	return c
}

// Serve runs the connection until it ends, and returns when all its goroutines have. The error tells why it ended; it is
// nil when one of the two peers closed it.
func (c *Conn) Serve() error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	err := c.read()
	if violation, ok := errors.AsType[*Error](err); ok {
		c.Close(violation)
		c.drain()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errClosed) {
		err = nil
	}
	c.end()
	<-written
	for _, l := range c.takeLinks() {
		c.cfg.Handler.Detached(l)
	}
	return err
}

// errClosed ends the reader after a Close frame of the peer.
var errClosed = errors.New("amqp: connection closed")

// Close closes the connection with an error, or without one, after everything queued before has been sent.
func (c *Conn) Close(e *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || c.ended {
		return
	}
	if !c.opened { // the standard wants an Open before a Close
		c.opened = true
		c.sendLocked(0, &Open{ContainerID: c.cfg.ContainerID})
	}
	c.sendLocked(0, &Close{Error: e})
	c.closing = true
	time.AfterFunc(closeGrace, c.end)
}

// Drop cuts the connection at once. Over TCP the peer sees a reset.
func (c *Conn) Drop() {
	if t, ok := c.nc.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // a failure only makes the cut less rude
	}
	_ = c.nc.Close()
	c.end()
}

// SetMute keeps frames back, or lets them go again.
func (c *Conn) SetMute(m Mute) {
	c.mu.Lock()
	c.mute = m
	c.mu.Unlock()
	c.signal()
}

// SendRaw sends bytes as they are, for tests of how a peer bears garbage.
func (c *Conn) SendRaw(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out, b...)
	c.signal()
}

func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended = true
		close(c.done)
		_ = c.nc.SetWriteDeadline(time.Now().Add(closeGrace)) // a peer that does not read must not hold the writer
	}
}

func (c *Conn) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// takeLinks removes every session and returns the links that had been accepted.
func (c *Conn) takeLinks() []*Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	var links []*Link
	for ch, s := range c.sessions {
		links = append(links, s.closeLocked()...)
		delete(c.sessions, ch)
	}
	return links
}

// feed asks the handler for the messages that links had to wait for.
func (c *Conn) feed() {
	c.mu.Lock()
	var hungry []*Link
	if len(c.starved) > 0 && len(c.out) < highWater {
		for l := range c.starved {
			if len(l.session.waiting) == 0 {
				delete(c.starved, l)
				hungry = append(hungry, l)
			}
		}
	}
	c.mu.Unlock()
	for _, l := range hungry {
		c.cfg.Handler.Credit(l)
	}
}

func (c *Conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sendLocked queues a frame. After Close nothing more may be sent.
func (c *Conn) sendLocked(channel uint16, b Body) {
	if c.closing || c.ended {
		return
	}
	c.out = AppendFrame(c.out, Frame{Channel: channel, Body: b})
	c.signal()
}
