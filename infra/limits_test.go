package infra_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBothSpellingsOfADurationAreEqual(t *testing.T) {
	l := limits(t)
	for name, d := range map[string]duration{
		"queue.lockDuration":                l.Queue.LockDuration,
		"queue.messageTimeToLive":           l.Queue.MessageTimeToLive,
		"queue.duplicateDetectionWindow":    l.Queue.DuplicateDetectionWindow,
		"store.inboxRecordRetention":        l.Store.InboxRecordRetention,
		"store.reviewWindow":                l.Store.ReviewWindow,
		"emulator.messageTimeToLive":        l.Emulator.MessageTimeToLive,
		"emulator.duplicateDetectionWindow": l.Emulator.DuplicateDetectionWindow,
	} {
		require.Equal(t, parseISO(t, d.ISO8601), d.Value(), name)
		require.Positive(t, d.Value(), name)
	}
}

func TestLimitsAgreeWithEachOther(t *testing.T) {
	l := limits(t)
	lock, ttl := l.Queue.LockDuration.Value(), l.Queue.MessageTimeToLive.Value()
	drain := time.Duration(l.Worker.DrainTimeoutSeconds) * time.Second
	grace := time.Duration(l.Worker.TerminationGraceSeconds) * time.Second

	require.Less(t, drain+5*time.Second, grace, "a replica that drains to the end must still have time to abandon the rest and close")
	require.Less(t, drain, lock, "what is in work when a drain begins must not outlive its lock")
	require.LessOrEqual(t, lock, 5*time.Minute, "the longest lock that Service Bus allows")
	require.Less(t, time.Duration(l.Queue.MaxDeliveryCount)*lock, ttl, "deliveries end long before the message does")
	require.LessOrEqual(t, l.Queue.DuplicateDetectionWindow.Value(), 7*24*time.Hour, "the longest window that Service Bus allows")

	remembered := time.Duration(l.Queue.MaxDeliveryCount)*lock + ttl + l.Store.ReviewWindow.Value() + l.Queue.DuplicateDetectionWindow.Value()
	require.Greater(t, l.Store.InboxRecordRetention.Value(), remembered,
		"an inbox record must outlive every way in which its message can come back: deliveries, time to live, review, a sender's retry")
	require.Equal(t, -1, l.Store.DefaultTimeToLiveSeconds, "orders are business data: only an item's own time to live counts")
	require.Equal(t, 2, l.Store.PartitionKeyVersion, "version 1 hashes 101 bytes of a key only")

	require.Less(t, l.Scale.MinReplicas, l.Scale.MaxReplicas)
	require.Greater(t, l.Scale.MessagesPerReplica, l.Worker.Concurrency, "a replica that cannot fill its slots is one too many")
}

func TestGoMemoryLimitLeavesAFifthOfTheMemory(t *testing.T) {
	for name, size := range limits(t).Sizes {
		share := megabytes(t, size.GoMemoryLimit) / megabytes(t, size.Memory)
		require.InDelta(t, 0.8, share, 0.05, name)
		cpu, err := strconv.ParseFloat(size.CPU, 64)
		require.NoError(t, err, name)
		require.InDelta(t, cpu*2*1024, megabytes(t, size.Memory), 0.1, "%s: Container Apps takes 2 GiB for each core", name)
	}
}

// parseISO reads the ISO 8601 durations that Azure takes: days, hours, minutes and seconds.
func parseISO(t *testing.T, text string) time.Duration {
	t.Helper()
	m := regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$`).FindStringSubmatch(text)
	require.NotNil(t, m, "%q is not a duration", text)
	var total time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		require.NoError(t, err)
		total += time.Duration(n) * unit
	}
	return total
}

func megabytes(t *testing.T, text string) float64 {
	t.Helper()
	for suffix, factor := range map[string]float64{"MiB": 1, "Gi": 1024} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err)
			return n * factor
		}
	}
	require.Fail(t, "no unit", "%q", text)
	return 0
}
