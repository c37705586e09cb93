package receiver

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// weigh tells the intake what a receive call brought, and withdraws the credit when some of what is still to come would arrive with
// dead locks. It comes before the work on the messages, which then uses the new connection from the start.
func (r *Receiver) weigh(messages []*azservicebus.ReceivedMessage, l *Link) {
	if len(messages) == 0 {
		return
	}
	now := time.Now()
	b := batch{arrival: arrival{at: now, count: len(messages)}, left: r.config.LockDuration, asked: l.asked, out: l.credit}
	for _, m := range messages {
		b.size += sizeOf(m)
		if m.LockedUntil != nil {
			b.left = min(b.left, WallUntil(*m.LockedUntil, now))
		}
	}
	t := r.intake.arrived(b)
	if t.news {
		r.config.Notify(Notice{Kind: ThinLine, Detail: t.String()})
	}
	if t.withdraw {
		l.flooded = true
		r.withdrawCredit()
	}
}

// sizeOf is about how many bytes a message takes on the line.
func sizeOf(m *azservicebus.ReceivedMessage) int {
	const envelope = 300 // properties and annotations
	size := envelope + len(m.Body)
	if m.RawAMQPMessage != nil {
		for n, data := range m.RawAMQPMessage.Body.Data {
			if n > 0 || len(m.Body) == 0 { // the first is Body
				size += len(data)
			}
		}
		if text, ok := m.RawAMQPMessage.Body.Value.(string); ok {
			size += len(text)
		}
	}
	return size
}
