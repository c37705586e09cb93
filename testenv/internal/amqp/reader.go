package amqp

import (
	"errors"
	"strings"
	"time"
)

const (
	protocolAMQP = 0
	protocolSASL = 3
)

// read shakes hands and then handles frames until the connection ends.
func (c *Conn) read() error {
	if err := c.negotiateSASL(); err != nil {
		return err
	}
	if err := c.expectProtocol(protocolAMQP); err != nil {
		return err
	}
	for {
		fr, err := c.in.next()
		if errors.Is(err, ErrMalformed) {
			return Errorf(FramingError, "%v", err)
		}
		if err != nil {
			return err
		}
		c.lastRead.Store(time.Now().UnixNano())
		if fr.Body == nil {
			continue
		}
		if err := c.handle(fr); err != nil {
			return err
		}
	}
}

// drain reads and forgets what the peer still sends, until it closes or the grace period ends, so that closing the
// socket does not take the Close frame away from it.
func (c *Conn) drain() {
	for {
		fr, err := c.in.next()
		if err != nil && !errors.Is(err, ErrMalformed) {
			return
		}
		if _, ok := fr.Body.(*Close); ok {
			return
		}
	}
}

func (c *Conn) expectProtocol(id byte) error {
	got, err := c.in.protocolHeader()
	if err != nil {
		return err
	}
	c.SendRaw([]byte{'A', 'M', 'Q', 'P', id, 1, 0, 0})
	if got != id {
		// The standard's answer to a wrong header is the right one, and then the end.
		c.end()
		return malformed("protocol id %d where %d was expected", got, id)
	}
	return nil
}

// The mechanisms of Service Bus. With ANONYMOUS and MSSBCBS a client proves itself at $cbs, with PLAIN by the name and the
// secret of a key. .NET chooses MSSBCBS, Java and Proton what they are told.
const (
	saslAnonymous Symbol = "ANONYMOUS"
	saslCBS       Symbol = "MSSBCBS"
	saslPlain     Symbol = "PLAIN"
)

// negotiateSASL lets the peer in by any of the mechanisms. What it may do is decided when it attaches links.
func (c *Conn) negotiateSASL() error {
	if err := c.expectProtocol(protocolSASL); err != nil {
		return err
	}
	c.SendRaw(AppendFrame(nil, Frame{Type: frameSASL, Body: &SASLMechanisms{Mechanisms: []Symbol{saslCBS, saslPlain, saslAnonymous}}}))
	fr, err := c.in.next()
	if err != nil {
		return err
	}
	init, ok := fr.Body.(*SASLInit)
	if !ok || fr.Type != frameSASL {
		return malformed("%T where a sasl-init was expected", fr.Body)
	}
	outcome := &SASLOutcome{}
	switch init.Mechanism {
	case saslAnonymous, saslCBS:
	case saslPlain:
		c.user, c.secret = plainCredentials(init.InitialResponse)
	default:
		outcome.Code = 1
	}
	c.SendRaw(AppendFrame(nil, Frame{Type: frameSASL, Body: outcome}))
	if outcome.Code != 0 {
		c.end()
		return malformed("SASL mechanism %q is not offered", init.Mechanism)
	}
	return nil
}

// plainCredentials reads the response of PLAIN (RFC 4616): an identity to act for, the user and the secret, with a zero byte
// between them.
func plainCredentials(response []byte) (user, secret string) {
	parts := strings.SplitN(string(response), "\x00", 3)
	if len(parts) < 3 {
		return "", ""
	}
	return parts[1], parts[2]
}

// Credentials returns the name and the secret of the key that the peer showed by SASL PLAIN, or nothing.
func (c *Conn) Credentials() (user, secret string) { return c.user, c.secret }

// handle dispatches one frame.
func (c *Conn) handle(fr Frame) error {
	if fr.Type == frameSASL {
		return Errorf(NotAllowed, "a SASL frame after the SASL exchange")
	}
	c.mu.Lock()
	closing := c.closing
	s := c.sessions[fr.Channel]
	c.mu.Unlock()
	switch b := fr.Body.(type) {
	case *Close:
		c.Close(nil)
		return errClosed
	case *Open:
		return c.onOpen(b)
	case *Begin:
		return c.onBegin(fr.Channel, b)
	case *End:
		return c.onEnd(fr.Channel, s)
	default:
		if closing || s == nil {
			return c.stray(fr, closing)
		}
		return s.handle(b)
	}
}

// stray bears frames for a session that we ended and whose End the peer has not seen yet.
func (c *Conn) stray(fr Frame, closing bool) error {
	c.mu.Lock()
	due := c.endsDue[fr.Channel]
	c.mu.Unlock()
	if closing || due > 0 {
		return nil
	}
	return Errorf(FramingError, "%T on channel %d, which has no session", fr.Body, fr.Channel)
}

func (c *Conn) onOpen(o *Open) error {
	c.mu.Lock()
	if c.opened {
		c.mu.Unlock()
		return Errorf(NotAllowed, "the connection is open already")
	}
	c.opened = true
	c.peerMaxFrame = max(minMaxFrameSize, min(pickMax(o.MaxFrameSize), 1<<20))
	c.sendLocked(0, &Open{
		ContainerID: c.cfg.ContainerID, MaxFrameSize: c.cfg.MaxFrameSize, ChannelMax: channelMax, IdleTimeout: c.cfg.IdleTimeout,
	})
	c.mu.Unlock()
	if o.IdleTimeout > 0 {
		c.tick <- max(o.IdleTimeout/2, time.Millisecond)
	}
	c.cfg.Handler.Opened(c)
	return nil
}

// pickMax reads the absent max-frame-size as the default, which has no bound.
func pickMax(n uint32) uint32 {
	if n == 0 {
		return 1 << 31
	}
	return n
}

func (c *Conn) onBegin(channel uint16, b *Begin) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opened {
		return Errorf(NotAllowed, "begin before open")
	}
	if channel > channelMax {
		return Errorf(NotAllowed, "channel %d is above the agreed maximum %d", channel, channelMax)
	}
	if c.sessions[channel] != nil {
		return Errorf(NotAllowed, "channel %d has a session already", channel)
	}
	c.sessions[channel] = newSession(c, channel, b)
	c.sendLocked(channel, &Begin{
		RemoteChannel: &channel, IncomingWindow: c.cfg.Window, OutgoingWindow: c.cfg.Window, HandleMax: handleMax,
	})
	return nil
}

func (c *Conn) onEnd(channel uint16, s *Session) error {
	c.mu.Lock()
	if c.endsDue[channel] > 0 {
		if c.endsDue[channel]--; c.endsDue[channel] == 0 {
			delete(c.endsDue, channel)
		}
		c.mu.Unlock()
		return nil
	}
	if s == nil {
		c.mu.Unlock()
		return Errorf(FramingError, "end on channel %d, which has no session", channel)
	}
	links := s.closeLocked()
	delete(c.sessions, channel)
	c.sendLocked(channel, &End{})
	c.mu.Unlock()
	for _, l := range links {
		c.cfg.Handler.Detached(l)
	}
	return nil
}
