package servicebus

// A heap is a priority queue of things, most of them messages, from which any can be removed. less orders it, and at tells where a
// thing keeps its index in this heap, plus one, so that zero means that it is not in it.
type heap[T any] struct {
	less func(a, b T) bool
	at   func(T) *int
	ms   []T
}

func (h *heap[T]) len() int { return len(h.ms) }

func (h *heap[T]) first() T { return h.ms[0] }

func (h *heap[T]) has(m T) bool { return *h.at(m) > 0 }

func (h *heap[T]) push(m T) {
	h.ms = append(h.ms, m)
	*h.at(m) = len(h.ms)
	h.up(len(h.ms) - 1)
}

// remove takes m out, if it is in.
func (h *heap[T]) remove(m T) {
	i := *h.at(m) - 1
	if i < 0 {
		return
	}
	last := len(h.ms) - 1
	h.swap(i, last)
	var none T
	h.ms[last] = none
	h.ms = h.ms[:last]
	*h.at(m) = 0
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h *heap[T]) swap(i, j int) {
	h.ms[i], h.ms[j] = h.ms[j], h.ms[i]
	*h.at(h.ms[i]), *h.at(h.ms[j]) = i+1, j+1
}

func (h *heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.ms[i], h.ms[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.ms) {
			return
		}
		if r := child + 1; r < len(h.ms) && h.less(h.ms[r], h.ms[child]) {
			child = r
		}
		if !h.less(h.ms[child], h.ms[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
