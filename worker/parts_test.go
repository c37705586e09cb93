package worker

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

func FuzzClip(f *testing.F) {
	for _, s := range []string{"", "plain", "line\nfeed", "\x00\x1b[31m", "ü日😀", "\xff\xfe", strings.Repeat("😀", 100), strings.Repeat("\xf0\x9f", 100)} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 3 + abs(limit)%5000
		got := clip(s, limit)
		require.LessOrEqual(t, len(got), limit)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, got, clip(got, limit), "a clean text stays as it is")
		for _, c := range got {
			require.True(t, c == '\n' || c >= ' ' && c != 0x7f, "%q", got)
		}
		if len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0) }) {
			require.Equal(t, s, got)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func TestANoteIsBoundedInTotal(t *testing.T) {
	long := strings.Repeat("日", 100_000)
	r := Result{
		Cause: CauseConflict, Reason: long, Detail: long, Admitted: true, Commit: Commit{DocumentID: long},
		Outcome: Outcome{Existing: &Record{Fingerprint: &fingerprint.Fingerprint{Hash: long}}}, ArrivedHash: long,
	}
	for range maxDifferences {
		r.Differences = append(r.Differences, fingerprint.Difference{Path: long})
	}
	n := noteOf(r, "", long)
	total := len(n.reason) + len(n.description)
	for name, value := range n.properties {
		total += len(name) + len(value.(string))
	}
	require.LessOrEqual(t, total, 12_000, "the broker takes 64 KiB together with what the sender set")
	require.Len(t, n.properties, 6)
	require.Empty(t, n.bare().properties)
	require.Empty(t, n.bare().description)
	require.Equal(t, n.reason, n.bare().reason)
}

func TestEveryJudgementAgainstAMessageIsDescribed(t *testing.T) {
	r := Result{
		Admitted: true, Commit: Commit{Key: identity.Text("1042"), DocumentID: "1042"},
		Outcome: Outcome{Blocking: "line-7", Existing: &Record{Key: "77", Unknown: "version 2", MissingParts: []string{"line-3"}, Fingerprint: &fingerprint.Fingerprint{Hash: "aa"}}},
	}
	for j, want := range map[Judgement]string{
		Conflict: "aa", HashMissing: "no request hash", OtherKey: "77", Blocked: "line-7", Incomplete: "line-3", UnknownRecord: "version 2",
	} {
		r.Judgement = j
		text := describe(r)
		require.Contains(t, text, want)
		require.Contains(t, text, "1042")
		require.NotEmpty(t, reasonOf(j))
	}
}

func TestALock(t *testing.T) {
	const d = time.Minute
	wall := func(in time.Duration) *time.Time { u := time.Now().Round(0).Add(in); return &u }
	tests := []struct {
		name        string
		lockedUntil time.Duration
		unknown     bool
		left, renew time.Duration
		fresh       bool
	}{
		{name: "as configured", lockedUntil: d, left: d, renew: d / 2, fresh: true},
		{name: "nothing stated", unknown: true, left: d, renew: d / 2, fresh: true},
		{name: "a longer one is not believed", lockedUntil: 5 * d, left: d, renew: d / 2, fresh: true},
		{name: "a shorter one is", lockedUntil: d / 3, left: d / 3, renew: d / 6, fresh: true},
		{name: "nearly ended", lockedUntil: 4 * time.Second, left: 4 * time.Second, renew: 1500 * time.Millisecond},
		{name: "ended", lockedUntil: -7 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until := wall(tt.lockedUntil)
				if tt.unknown {
					until = nil
				}
				l := newLock([16]byte{}, d, until)
				require.Equal(t, tt.left, l.left())
				require.Equal(t, tt.renew, l.untilRenewal())
				require.Equal(t, tt.fresh, l.fresh())
				l.renewed(time.Now(), wall(5*d))
				require.Equal(t, d, l.left(), "a longer lock than configured is not believed")
				require.True(t, l.covers(10*time.Second))
				time.Sleep(55 * time.Second)
				require.False(t, l.covers(10*time.Second))
				require.True(t, l.covers(5*time.Second))
				l.renewed(time.Now().Add(-time.Second), wall(-10*d))
				require.Equal(t, 5*time.Second, l.left(), "an older time never shortens a lock")
				l.lose()
				require.Zero(t, l.left())
				require.False(t, l.covers(0))
			})
		})
	}
}

func TestConflictsAreForgottenInTimeAndBounded(t *testing.T) {
	c, now := newConflicts(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.Equal(t, 1, c.count("a", now))
	require.Equal(t, 2, c.count("a", now.Add(59*time.Minute)))
	require.Equal(t, 1, c.count("a", now.Add(3*time.Hour)))
	for i := range 3 * maxConflicts {
		c.count(fmt.Sprint(i), now.Add(4*time.Hour+time.Duration(i)))
	}
	require.LessOrEqual(t, len(c.runs), maxConflicts)
}
