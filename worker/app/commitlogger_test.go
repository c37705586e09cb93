package app

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
)

func TestAPersonSeesEachMessageThatEndsWell(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, format, level string
		shown               bool
	}{
		{"a person reads along", "text", "info", true},
		{"a machine reads", "json", "info", false},
		{"a container, nothing set", "", "info", false},
		{"the worker shows them itself", "text", "debug", false},
		{"the person wants only warnings", "text", "warn", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := config{logFormat: tt.format, logLevel: tt.level}
			var out bytes.Buffer
			o := c.commitLogger(slog.New(c.logHandler(&out)))
			require.Equal(t, tt.shown, o != nil)
			if !tt.shown {
				return
			}
			o.Observe(worker.Event{Kind: worker.EventReceived, MessageID: "1042"})
			require.Empty(t, out.String())
			o.Observe(worker.Event{Kind: worker.EventDuplicate, MessageID: "1042", DocumentID: "1042"})
			require.Contains(t, out.String(), `msg="message committed" event=duplicate message_id=1042 document_id=1042`)
		})
	}
}
