package oci

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	runc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// monitor starts the processes of go-runc with our launcher, which alone may wait
// for children.
type monitor struct {
	launcher *process.Launcher
	calls    sync.Map // from *exec.Cmd to call, between Start and Wait
}

type call struct {
	child   *process.Child
	printed printout
}

// Start starts a command. The channel carries nothing: go-runc gives it back to Wait, which
// waits for the child itself rather than for a goroutine that does.
func (m *monitor) Start(cmd *exec.Cmd) (chan runc.Exit, error) {
	printed, err := capture(cmd)
	if err != nil {
		return nil, err
	}
	child, err := m.launcher.Spawn(cmd)
	if err != nil {
		printed.discard()
		return nil, err
	}
	m.calls.Store(cmd, call{child, printed})
	return nil, nil
}

// StartLocked is Start: all commands are started by one locked thread anyway.
func (m *monitor) StartLocked(cmd *exec.Cmd) (chan runc.Exit, error) { return m.Start(cmd) }

// Wait gives the exit status, 128 + n after signal n.
func (m *monitor) Wait(cmd *exec.Cmd, _ chan runc.Exit) (int, error) {
	found, ok := m.calls.LoadAndDelete(cmd)
	if !ok {
		return 0, fmt.Errorf("wait for %s: it was not started, or has been waited for", cmd.Path)
	}
	c := found.(call)
	status := c.child.Wait().Status
	c.printed.deliver()
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

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
	file, err := blank()
	if err != nil {
		return printout{}, fmt.Errorf("make a file for what %s prints: %w", cmd.Path, err)
	}
	cmd.Stdout = file
	if cmd.Stderr != nil {
		cmd.Stderr = file
	}
	return printout{file, buffer}, nil
}

// blanks are files in memory that nothing was printed into, as is the rule: they serve again.
var blanks sync.Pool

func blank() (*os.File, error) {
	if file, ok := blanks.Get().(*os.File); ok {
		return file, nil
	}
	fd, err := unix.MemfdCreate("printed", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "printed"), nil
}

// deliver copies what was printed to the buffer.
func (p printout) deliver() {
	if p.file == nil {
		return
	}
	if n, _ := p.file.ReadAt(make([]byte, 1), 0); n == 0 {
		blanks.Put(p.file)
		return
	}
	// What cannot be read is missing from a message, no more.
	if _, err := p.file.Seek(0, io.SeekStart); err == nil {
		_, _ = p.buffer.ReadFrom(p.file)
	}
	p.discard()
}

func (p printout) discard() {
	if p.file != nil {
		_ = p.file.Close()
	}
}
