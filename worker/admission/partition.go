package admission

import (
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// partition finds the partition of a message. The content is needed only by the source that looks into it. A number of the body
// is the text of its digits: 913 and "913" are one partition, since the key and not the partition tells messages apart.
func (a *Admitter) partition(m *azservicebus.ReceivedMessage, key identity.Key, content []byte) (string, *reason.Refusal) {
	s := a.cfg.Partition
	var value, problem string
	switch s.form {
	case formProperty:
		value, problem = propertyText(m, s.name)
	case formBody:
		value, _, problem = pointerText(content, s.name)
	case formSession:
		value = text(m.SessionID)
	case formPartitionKey:
		value = text(m.PartitionKey)
	default:
		return key.DocumentID(), nil
	}
	if problem == "" {
		_, problem = unusable(value, a.cfg.MaxKeyBytes)
	}
	if problem != "" {
		return "", reason.Refuse(reason.MissingPartition, "The partition of the message is its %s, and %s. The sender must set it: it says where "+
			"the record of this message is kept.", s.describe(), problem)
	}
	return identity.Text(value).DocumentID(), nil
}
