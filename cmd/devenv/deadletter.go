package main

// description is what a dead letter says for the person who reads it, or nothing when the message is not one.
func (d *demo) description(sequence int64) string {
	messages, err := d.env.Broker.Messages(d.env.Queue.Name + "/$DeadLetterQueue")
	if err != nil {
		return err.Error()
	}
	for _, m := range messages {
		if m.Sequence == sequence {
			return m.DeadLetterErrorDescription
		}
	}
	return ""
}
