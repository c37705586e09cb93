//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart starts a process in a group of its own, so that Ctrl-C on the terminal reaches this program alone, which then asks the
// worker to end. The worker would take a second signal for the wish to end at once.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
