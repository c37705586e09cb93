package servicebus

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIndexAndHeapAgreeWithAModel does random things to an index and a heap, and compares them with a sorted slice.
func TestIndexAndHeapAgreeWithAModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var x index
	h := heap[*message]{less: func(a, b *message) bool { return a.seq < b.seq }, at: func(m *message) *int { return &m.readyIndex }}
	var model []*message
	used := map[int64]bool{}
	for range 20_000 {
		switch {
		case len(model) == 0 || rng.IntN(100) < 52:
			seq := rng.Int64N(1 << 20)
			if used[seq] {
				continue
			}
			used[seq] = true
			m := &message{seq: seq}
			i, _ := slices.BinarySearchFunc(model, seq, func(m *message, s int64) int { return int(m.seq - s) })
			model = slices.Insert(model, i, m)
			x.add(m)
			h.push(m)
		case rng.IntN(2) == 0: // a message that leaves and comes back, as from the queue to its dead letters
			m := model[rng.IntN(len(model))]
			x.remove(m)
			require.Nil(t, x.get(m.seq))
			x.add(m)
		default:
			i := rng.IntN(len(model))
			m := model[i]
			model = slices.Delete(model, i, i+1)
			delete(used, m.seq)
			x.remove(m)
			x.remove(m)
			h.remove(m)
			h.remove(m)
			require.False(t, h.has(m))
		}
		require.Equal(t, len(model), x.live)
		require.Equal(t, len(model), h.len())
		if len(model) > 0 {
			require.Same(t, model[0], h.first())
		}
	}
	var seen []*message
	x.each(0, func(m *message) bool { seen = append(seen, m); return true })
	require.Equal(t, model, seen)
	middle := model[len(model)/2]
	x.each(middle.seq, func(m *message) bool { require.Same(t, middle, m); return false })
	for len(model) > 0 {
		require.Same(t, model[0], h.first())
		h.remove(h.first())
		x.remove(model[0])
		model = model[1:]
	}
	require.LessOrEqual(t, len(x.slots), 128, "what is gone must not be kept")
}

func TestLockTokensTravelInTheByteOrderOfNET(t *testing.T) {
	u := newToken()
	require.Equal(t, byte(4), u[6]>>4, "a random uuid")
	require.Equal(t, u, tokenOf(netToken(u)))
	require.Zero(t, tokenOf([]byte("short")))
	require.Equal(t, []byte{4, 3, 2, 1, 6, 5, 8, 7}, netToken([16]byte{1, 2, 3, 4, 5, 6, 7, 8})[:8])
}

func FuzzVerifySAS(f *testing.F) {
	f.Add("SharedAccessSignature sr=a&sig=b&se=99999999999&skn=k", "amqp://a/q")
	f.Add("SharedAccessSignature sr=%zz&sig=%zz&se=1&skn=k", "")
	f.Fuzz(func(t *testing.T, token, audience string) {
		rights, _, problem := verifySAS(token, audience, []Key{{Name: "k", Secret: "s3cret", Rights: Manage}}, time.Unix(1000, 0))
		require.Zero(t, rights, "nobody guesses a signature")
		require.NotEmpty(t, problem)
		require.NotContains(t, problem, "s3cret")
	})
}
