package cosmosdb

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// applyFault carries out what the fault plan has for this moment. It returns nil when the request goes on.
func (a *Account) applyFault(ctx context.Context, q *request, phase fault.Phase, activity string, r reply) *outcome {
	act := a.opts.Faults.At(fault.Point{Op: q.op, Key: q.key, Phase: phase})
	if !a.wait(act.Delay) {
		return &outcome{ending: ended}
	}
	if act.Do != nil {
		act.Do()
	}
	o := outcome{activity: activity}
	switch act.Kind {
	case fault.None:
		return nil
	case fault.Refuse, fault.Garble:
		o.reply = a.falseReply(q, act, phase, r)
	case fault.Lag:
		if phase == fault.Before && q.lags() {
			q.lagged = true
			return nil
		}
		o.reply = a.refuseFault(q, "a lagging replica at this point")
	case fault.Drop:
		o.ending, o.condition = cut, act.Condition
		if phase == fault.After && o.condition == ConnectionRefused {
			o.condition = "" // the request did arrive
		}
	case fault.Silence:
		o.ending = silent
	default:
		o.reply = a.refuseFault(q, fmt.Sprintf("the fault kind %d", act.Kind))
	}
	a.recordFault(q, phase, act.Kind, o)
	if o.ending == silent {
		a.silence(ctx)
	}
	return &o
}

// lags reports whether a lagging replica could serve the request.
func (q *request) lags() bool {
	return q.op == history.ReadDocument || q.op == history.QueryDocuments
}

// wait lets d pass, and reports false when the account is closed before that.
func (a *Account) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.closed:
		return false
	}
}

func (a *Account) silence(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-a.closed:
	}
}

// falseReply makes the reply of a Refuse or a Garble. A Refuse needs a status that HTTP knows.
func (a *Account) falseReply(q *request, act fault.Action, phase fault.Phase, real reply) reply {
	switch {
	case act.Status != 0 && (act.Status < 200 || act.Status > 599), act.Status == 0 && act.Kind == fault.Refuse:
		return a.refuseFault(q, fmt.Sprintf("a fault with the status %d", act.Status))
	case act.Kind == fault.Refuse:
		return refusedBy(act, real)
	default:
		return garbled(act, phase, real)
	}
}

// refusedBy makes the reply of a Refuse. The session token of the real reply, where there is one, stays.
func refusedBy(act fault.Action, real reply) reply {
	r := refuse(act.Status, act.Substatus, "refused by the fault plan")
	r.session, r.charge = real.session, 0
	if act.Body != "" {
		r.body = []byte(act.Body)
		if strings.HasPrefix(act.Body, "<") {
			r.mediaType = "text/html"
		}
	}
	if act.RetryHint {
		r = r.with("x-ms-retry-after-ms", strconv.FormatInt(act.RetryAfter.Milliseconds(), 10))
	}
	return r
}

// garbled makes a reply that is not what the client expects.
func garbled(act fault.Action, phase fault.Phase, real reply) reply {
	r := real
	r.message = "garbled by the fault plan"
	if act.Status != 0 {
		r.status = act.Status
	}
	if r.status == 0 || r.status == http.StatusBadRequest && phase == fault.Before {
		r = htmlBadRequest()
	} else {
		r.body, r.mediaType = []byte(`{"id":"`), "application/json"
	}
	if act.Body != "" {
		r.body = []byte(act.Body)
	}
	return r
}

func (a *Account) refuseFault(q *request, what string) reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refuseLocked(q, what)
}

var faultNames = map[fault.Kind]string{
	fault.Drop: "drop", fault.Silence: "silence", fault.Refuse: "refuse", fault.Garble: "garble",
}

// recordFault tells the history about a fault that took the place of the reply.
func (a *Account) recordFault(q *request, phase fault.Phase, kind fault.Kind, o outcome) {
	note := faultNames[kind]
	if note == "" {
		return
	}
	when := "fault before the effect: "
	if phase == fault.After {
		when = "fault after the effect: "
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opts.History.Add(history.Event{
		Op: q.op, Entity: q.entity(), Key: q.key, Status: o.reply.status, Substatus: o.reply.substatus,
		Error: o.reply.message, Activity: o.activity, Note: when + note,
	})
}
