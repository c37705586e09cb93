package deadletter

// queues let those of one key go one after the other. It is used by one goroutine; the turns it hands out by any.
type queues map[string]turn

// A turn is a place in a queue: it comes when the one before has left.
type turn struct {
	before, mine chan bool
}

// join takes the last place in the queue of a key. Without a key there is nobody to wait for.
func (q queues) join(key string) turn {
	t := turn{mine: make(chan bool, 1)}
	if key != "" {
		t.before = q[key].mine
		q[key] = t
	}
	return t
}

// wait returns when the turn has come, and reports whether it can be used: the one before has done what it had to do.
func (t turn) wait() bool { return t.before == nil || <-t.before }

// leave lets the next one have its turn. Done says whether there is nothing left to do here.
func (t turn) leave(done bool) { t.mine <- done }
