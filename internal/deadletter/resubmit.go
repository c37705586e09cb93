package deadletter

import (
	"fmt"
	"strings"
	"time"
)

// maxResubmits is how often a message may be sent again before its coming back is taken for an answer.
const maxResubmits = 5

func offerResubmit(l *DeadLetter, v Verdict, s Settings, c Choice, now time.Time) Offer {
	o := Offer{Action: Resubmit, Label: "Resubmit", Sentence: "Sends the same message to " + s.Queue + " again, byte for byte and with the same MessageId, and removes the dead letter when the broker has taken it. The worker then treats it like any other message."}
	o.Warning, o.Refused = repeatWarning(v), refuseResubmit(l, v, s, c, now)
	return o
}

// refuseResubmit says why a copy would be lost, come straight back or reach somebody else. The order is from what cannot be
// helped to what waiting helps.
func refuseResubmit(l *DeadLetter, v Verdict, s Settings, c Choice, now time.Time) string {
	if why := staysSentence(v, "Sending it again"); why != "" {
		return why
	}
	if v.Kind.processed() {
		return "Sending it again is of no use: it was processed, and the worker would only recognise it. Discard the dead letter."
	}
	if s.Forwarded {
		return "It was forwarded to " + s.Queue + ", and a copy would only be sent there again. Reprocess it in place, or export it and import it into its own queue."
	}
	if topic, _, ok := cutFold(s.Queue, "/subscriptions/"); ok {
		return fmt.Sprintf("It would reach every subscription of the topic %s and not this one alone. Reprocess it in place.", topic)
	}
	if _, has := l.sessionID(); s.RequiresSession && !has {
		return "The queue takes only messages of a session, and this one has none. Reprocess it in place."
	}
	if n, _ := l.resubmitCount(); n >= maxResubmits {
		return fmt.Sprintf("It was resubmitted %d times and came back each time. Find out why, or reprocess it in place.", n)
	}
	if why := refuseExpired(l, c, now); why != "" {
		return why
	}
	return refuseSwallowed(l, s, now)
}

func refuseExpired(l *DeadLetter, c Choice, now time.Time) string {
	if c.NewTTL < 0 || c.NewTTL > longestTTL {
		return fmt.Sprintf("A time to live of %s cannot be sent; the longest is %s.", c.NewTTL, longestTTL)
	}
	at, expires := l.expiresAt()
	if c.NewTTL > 0 || !expires || at.After(now) {
		return ""
	}
	ttl, _ := l.TimeToLive()
	return fmt.Sprintf("Its time to live of %s ended at %s, so a copy could expire before anybody reads it. Give a new time to live, or reprocess it in place.", ttl, stamp(at))
}

func refuseSwallowed(l *DeadLetter, s Settings, now time.Time) string {
	until, dropped := DroppedAsDuplicate(l, s.Duplicates, now)
	switch {
	case !dropped:
		return ""
	case until.IsZero():
		return "Duplicate detection may drop the copy while the send looks like a success, and the age of the message is not known. Reprocess it in place."
	case !s.Duplicates.Known:
		return fmt.Sprintf("It is not known whether the queue detects duplicates. If it does, it may drop the copy until %s while the send looks like a success. Reprocess it in place, or say what the queue's window is.", stamp(until))
	}
	return fmt.Sprintf("Duplicate detection remembers this MessageId until %s and would drop the copy, while the send looks like a success. Reprocess it in place.", stamp(until))
}

// stamp writes a time for people.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// cutFold is [strings.Cut] without regard to case.
func cutFold(s, sep string) (before, after string, found bool) {
	i := strings.Index(strings.ToLower(s), strings.ToLower(sep))
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
