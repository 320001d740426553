package oci

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"

	runc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// monitor starts the processes of go-runc with our launcher, which alone may wait
// for children.
type monitor struct{ launcher *process.Launcher }

// Start starts a command; the exit's timestamp is left out, as nothing here keeps time.
func (m monitor) Start(cmd *exec.Cmd) (chan runc.Exit, error) {
	printed, err := capture(cmd)
	if err != nil {
		return nil, err
	}
	done, err := m.launcher.Start(cmd)
	if err != nil {
		printed.discard()
		return nil, err
	}
	ended := make(chan runc.Exit, 1)
	go func() {
		status := (<-done).Status
		code := status.ExitStatus()
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
		printed.deliver()
		ended <- runc.Exit{Pid: cmd.Process.Pid, Status: code}
	}()
	return ended, nil
}

// StartLocked is Start: all commands are started by one locked thread anyway.
func (m monitor) StartLocked(cmd *exec.Cmd) (chan runc.Exit, error) { return m.Start(cmd) }

// Wait gives the exit status, 128 + n after signal n.
func (m monitor) Wait(_ *exec.Cmd, ended chan runc.Exit) (int, error) { return (<-ended).Status, nil }

// printout holds what a command prints until go-runc's buffer gets it.
type printout struct {
	file   *os.File // nil if the output goes elsewhere
	buffer *bytes.Buffer
}

// capture lets cmd print into a file in memory where go-runc set a buffer. package exec
// would make a pipe for a buffer and copy beside the command: within a timed region
// that is two threads more to wake, several per cent of what a fast runtime takes.
func capture(cmd *exec.Cmd) (printout, error) {
	buffer, ok := cmd.Stdout.(*bytes.Buffer)
	if !ok {
		return printout{}, nil
	}
	fd, err := unix.MemfdCreate("printed", unix.MFD_CLOEXEC)
	if err != nil {
		return printout{}, fmt.Errorf("make a file for what %s prints: %w", cmd.Path, err)
	}
	p := printout{os.NewFile(uintptr(fd), "printed"), buffer}
	cmd.Stdout = p.file
	if cmd.Stderr != nil {
		cmd.Stderr = p.file
	}
	return p, nil
}

// deliver copies what was printed to the buffer.
func (p printout) deliver() {
	if p.file == nil {
		return
	}
	// What cannot be read is missing from a message, no more.
	if _, err := p.file.Seek(0, 0); err == nil {
		_, _ = p.buffer.ReadFrom(p.file)
	}
	p.discard()
}

func (p printout) discard() {
	if p.file != nil {
		_ = p.file.Close()
	}
}
