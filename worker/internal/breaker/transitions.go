package breaker

import "time"

// countLocked draws the consequences of an answer to a commit.
func (b *Breaker) countLocked(p Permit, r Report) Change {
	switch {
	case r.failed():
		return b.failedLocked(p, r)
	case r.Answer == Answered, r.Answer == Wrote:
		return b.provedLocked()
	}
	return Change{}
}

func (b *Breaker) failedLocked(p Permit, r Report) Change {
	calm := b.state == Closed || b.state == Trial && !b.incidentLocked()
	if b.blame.failed(p.message, b.state == Trial && !calm, b.heard) && b.state != Trial {
		return Change{} // others are committed meanwhile
	}
	b.failures++
	if r.Answer == Misconfigured || !calm || b.failures >= b.config.Failures {
		return b.openLocked(r)
	}
	b.cause = r.Err
	return Change{}
}

// provedLocked records an answer of a store that works.
func (b *Breaker) provedLocked() Change {
	b.failures, b.proven, b.unwritten = 0, true, 0
	if b.state == Ramp {
		b.limit++
	}
	switch {
	case b.state == Trial && b.incidentLocked():
		return b.rampLocked()
	case b.state == Trial, b.state == Ramp && b.limit >= b.config.Capacity: // a fresh process has nothing to recover from
		b.closeLocked()
	}
	return Change{}
}

func (b *Breaker) closeLocked() {
	b.state, b.probes, b.cause = Closed, 0, nil
	b.broadcastLocked()
}

func (b *Breaker) rampLocked() Change {
	change := b.overLocked()
	b.state, b.limit = Ramp, 1
	b.broadcastLocked()
	return change
}

// incidentLocked reports whether the breaker opened and has not been told to be closed since.
func (b *Breaker) incidentLocked() bool { return !b.since.IsZero() }

// overLocked ends the incident.
func (b *Breaker) overLocked() Change {
	if !b.incidentLocked() {
		return Change{}
	}
	change := Change{Closed: true, Misconfigured: b.fatal, Cause: b.cause, Lasted: time.Since(b.since)}
	b.since, b.fatal = time.Time{}, false
	return change
}

// openLocked opens the breaker, or keeps it open with another cause.
func (b *Breaker) openLocked(r Report) Change {
	fresh, fatal := !b.incidentLocked(), r.Answer == Misconfigured
	if b.state == Closed || b.state == Starting {
		b.probes = 0
	}
	b.cause = r.Err
	b.state, b.failures, b.active = Open, 0, 0
	b.epoch++
	if r.RetryAfter > 0 {
		b.hint = time.Now().Add(min(r.RetryAfter, MaxHint))
	}
	worse := fatal && !b.fatal
	b.fatal = fatal
	if fresh {
		b.since = time.Now()
	}
	b.broadcastLocked()
	if !fresh && !worse {
		return Change{}
	}
	return Change{Opened: true, Misconfigured: fatal, Cause: r.Err}
}
