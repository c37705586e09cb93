package app

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker/admission"
)

// eventAssigned is the event of the warning about ids that look assigned by the broker.
const eventAssigned = "assigned_message_ids"

// assignedFix says what protects from a sender without ids.
const assignedFix = "A sender that leaves the MessageId out gets a new one with each send, so that a repeat is a new message. " +
	"Let the sender set a MessageId that stays the same, or name another key with WORKER_KEY before the first message"

func assignedText(n int) string {
	return fmt.Sprintf("%d message(s) have a MessageId that looks assigned by the broker", n)
}

// assignedByBroker reports whether an id has the form that Service Bus gives to a message that is sent without one: a GUID as 32
// lower-case hexadecimal digits. A sender may choose ids of that form too.
func assignedByBroker(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}

// keyIsMessageID reports whether messages are told apart by their MessageId.
func (c config) keyIsMessageID() bool { return c.worker.Admission.KeySource == admission.KeySource{} }

// aboutIDs is what the ids of waiting messages say of their senders.
func (c config) aboutIDs(messages []*azservicebus.ReceivedMessage) []finding {
	n := 0
	for _, m := range messages {
		if assignedByBroker(m.MessageID) {
			n++
		}
	}
	if n == 0 || !c.keyIsMessageID() {
		return nil
	}
	return []finding{{severityWarning, "message ids", fmt.Sprintf("%s, of %d looked at", assignedText(n), len(messages)), assignedFix + "."}}
}
