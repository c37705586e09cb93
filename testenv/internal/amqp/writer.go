package amqp

import "time"

// keepaliveDefault is how often an empty frame is sent to a peer that names no idle time-out.
const keepaliveDefault = 30 * time.Second

// write sends what is queued until the connection ends, sends the rest, and closes the net.Conn.
func (c *Conn) write() {
	ticker := time.NewTicker(keepaliveDefault)
	defer ticker.Stop()
	var buf []byte
	idle := true // nothing was sent since the last tick
	for {
		var err error
		select {
		case <-c.wake:
			if buf = c.takeOut(buf); len(buf) > 0 {
				idle = false
				_, err = c.nc.Write(buf)
				c.feed()
			}
		case d := <-c.tick:
			ticker.Reset(d)
		case <-ticker.C:
			c.checkIdle()
			if idle {
				err = c.keepAlive()
			}
			idle = true
		case <-c.done:
			c.flush(buf)
			return
		}
		if err != nil {
			c.end()
		}
	}
}

// takeOut exchanges the queue for an empty buffer.
func (c *Conn) takeOut(empty []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mute != Speaking {
		return empty[:0]
	}
	if cap(empty) > 1<<20 {
		empty = nil // one large burst must not stay for ever
	}
	out := c.out
	c.out = empty[:0]
	return out
}

// flush sends what is left within the grace period and closes the net.Conn, which also ends the reader.
func (c *Conn) flush(buf []byte) {
	if buf = c.takeOut(buf); len(buf) > 0 {
		_ = c.nc.SetWriteDeadline(time.Now().Add(closeGrace))
		_, _ = c.nc.Write(buf) // the connection ends anyway
	}
	_ = c.nc.Close()
}

func (c *Conn) keepAlive() error {
	c.mu.Lock()
	skip := !c.opened || c.mute == MuteAll
	c.mu.Unlock()
	if skip {
		return nil
	}
	_, err := c.nc.Write(AppendFrame(nil, Frame{}))
	return err
}

// checkIdle closes a connection whose peer has been silent for longer than was agreed.
func (c *Conn) checkIdle() {
	silent := time.Duration(time.Now().UnixNano() - c.lastRead.Load())
	if silent > c.cfg.IdleTimeout {
		c.Close(Errorf(ConnectionForced, "the connection was inactive for more than %v", c.cfg.IdleTimeout))
	}
}
