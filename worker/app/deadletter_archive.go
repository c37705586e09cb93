package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// archiveFlags say where discarded messages are kept.
type archiveFlags struct {
	file string
	none bool
}

func (f *archiveFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "archive", "", "append what is discarded to this file, in the form of export, one run at a time; by default a new file here, whose name is printed")
	flags.BoolVar(&f.none, "no-archive", false, "do not keep what is discarded")
}

// archiving runs do with a command that archives what it discards, and says where it is kept.
func (r *review) archiving(sys system, f archiveFlags, c *deadletter.Command, do func() error) error {
	if f.none || c.Action != "" && c.Action != deadletter.Discard {
		return do()
	}
	kept := &archive{name: f.file}
	if kept.name == "" {
		kept.name = fmt.Sprintf("discarded-%s-%s.jsonl", r.config.program.Name, time.Now().UTC().Format("20060102T150405.000"))
	}
	c.Archive = kept
	err := do()
	n, closeErr := kept.close()
	if n > 0 {
		fmt.Fprintf(sys.stderr, "%d discarded dead letter(s) are kept in %s. To bring them back:  %s deadletter import %s\n", n, kept.name, r.config.program.Name, kept.name)
	}
	return errors.Join(err, closeErr)
}

// archive is a file to which discarded messages are appended. The file is made when the first one comes.
type archive struct {
	name string

	mu    sync.Mutex
	file  *os.File       // guarded by mu
	begin int64          // guarded by mu; the size of the file before
	end   int64          // guarded by mu; of the last whole line
	lines []archivedLine // guarded by mu
	place map[int64]int  // guarded by mu; of a sequence number in lines
}

// archivedLine is where a message ends in the file.
type archivedLine struct {
	end     int64
	dropped bool
}

var _ deadletter.Archive = (*archive)(nil)

// Keep implements [deadletter.Archive]. It returns when the message is on the disk.
func (a *archive) Keep(l *deadletter.DeadLetter) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, again := a.place[l.Sequence]; again {
		a.lines[at].dropped = false
		return nil
	}
	if a.file == nil {
		f, err := os.OpenFile(a.name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("%w. Give another file with --archive, or keep nothing with --no-archive", err)
		}
		if a.begin, err = f.Seek(0, io.SeekEnd); err != nil {
			return errors.Join(err, f.Close())
		}
		a.file, a.end, a.place = f, a.begin, map[int64]int{}
	}
	end, err := a.append(l)
	if err != nil {
		// What is there of the line would spoil the next one.
		return errors.Join(err, a.file.Truncate(a.end))
	}
	a.end, a.place[l.Sequence] = end, len(a.lines)
	a.lines = append(a.lines, archivedLine{end: end})
	return nil
}

// append writes a line to the disk, and returns where it ends.
func (a *archive) append(l *deadletter.DeadLetter) (end int64, err error) {
	if err := exportLine(a.file, l); err != nil {
		return 0, err
	}
	if err := a.file.Sync(); err != nil {
		return 0, err
	}
	return a.file.Seek(0, io.SeekEnd)
}

// Drop implements [deadletter.Archive]. The line goes when the archive is closed.
func (a *archive) Drop(sequence int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, kept := a.place[sequence]; kept {
		a.lines[at].dropped = true
	}
}

// close takes out what was dropped, and returns how many messages are kept.
func (a *archive) close() (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return 0, nil
	}
	kept := 0
	for _, l := range a.lines {
		if !l.dropped {
			kept++
		}
	}
	var err error
	switch {
	case kept == 0 && a.begin == 0:
		err = os.Remove(a.name)
	case kept < len(a.lines):
		err = a.rewrite()
	}
	return kept, errors.Join(err, a.file.Close())
}

// rewrite replaces the file by one without what was dropped.
func (a *archive) rewrite() error {
	f, err := os.CreateTemp(filepath.Dir(a.name), ".archive-*") // mode 0600
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	_, err = io.Copy(out, io.NewSectionReader(a.file, 0, a.begin))
	from := a.begin
	for _, l := range a.lines {
		if !l.dropped && err == nil {
			_, err = io.Copy(out, io.NewSectionReader(a.file, from, l.end-from))
		}
		from = l.end
	}
	if err = errors.Join(err, out.Flush(), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), a.name)
}
