package history

import (
	"fmt"
	"os"
)

// Verify is [Check] of a whole log that keeps the evidence: when a promise is broken, the history is written to a new file
// in dir (the system's folder for temporary files when empty), and the error names that file and the seed.
func Verify(l *Log, expect Expect, seed uint64, dir string) error {
	err := Check(l.Events(), expect)
	if err == nil {
		return nil
	}
	name, saveErr := Save(l, dir)
	if saveErr != nil {
		return fmt.Errorf("%w\nseed %d; the history could not be saved: %w", err, seed, saveErr)
	}
	return fmt.Errorf("%w\nseed %d; the history is in %s", err, seed, name)
}

// Save writes the log as JSON lines to a new file in dir and returns its name. An empty dir stands for the system's folder
// for temporary files.
func Save(l *Log, dir string) (name string, err error) {
	f, err := os.CreateTemp(dir, "history-*.jsonl")
	if err != nil {
		return "", err
	}
	_, err = l.WriteTo(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return f.Name(), err
}
