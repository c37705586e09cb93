package app

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// meter shows how far something is: over and over on one line of a terminal, and now and then a line elsewhere. It is safe
// for concurrent use.
type meter struct {
	out      io.Writer
	terminal bool
	// width is how wide the terminal is now, zero when nobody knows.
	width func() int
	every time.Duration

	mu    sync.Mutex
	last  time.Time
	dirty bool
	text  string
}

func newMeter(out io.Writer) *meter {
	m := &meter{out: out, every: 5 * time.Second, last: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		m.terminal, m.every = true, 200*time.Millisecond
		m.width = func() int { width, _, _ := term.GetSize(int(f.Fd())); return width }
	}
	return m
}

// show takes the newest state, and writes it when it is time.
func (m *meter) show(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = text
	if time.Since(m.last) < m.every {
		return
	}
	m.last = time.Now()
	m.writeLocked()
}

func (m *meter) writeLocked() {
	if m.terminal {
		text := m.text
		if width := m.width(); width > 1 {
			text = deadletter.Clip(text, width-1) // what wraps could not be cleared
		}
		fmt.Fprintf(m.out, "\r\x1b[K%s", text)
		m.dirty = true
		return
	}
	fmt.Fprintln(m.out, m.text)
}

// pause shows why nothing goes on, when that is so. For a few messages their outcomes say the rest.
func (m *meter) pause(why string) {
	if why != "" {
		m.show(why)
	}
}

// clear makes room for a line of something else.
func (m *meter) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirty {
		fmt.Fprint(m.out, "\r\x1b[K")
		m.dirty = false
	}
}
