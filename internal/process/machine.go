package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/thread"
)

// machineNamespaces are the namespaces that StartOnMachine enters, with their links in /proc/PID/ns. The mount namespace is the last one: it changes
// the files. A process enters a PID namespace only by its children, so the container must share the PID namespace of the machine.
var machineNamespaces = []struct {
	kind int
	link string
}{{unix.CLONE_NEWCGROUP, "cgroup"}, {unix.CLONE_NEWIPC, "ipc"}, {unix.CLONE_NEWUTS, "uts"}, {unix.CLONE_NEWNET, "net"}, {unix.CLONE_NEWNS, "mnt"}}

// errOwnProcesses is the error of StartOnMachine in a container whose process 1 is its own.
var errOwnProcesses = errors.New("the container does not share the processes of its machine: its pod needs hostPID, and the cluster must permit it")

// Delegate is this program, started once more on the machine of its container.
type Delegate struct {
	// Input is the standard input of the delegate.
	Input    io.WriteCloser
	cmd      *exec.Cmd
	messages tail
}

// StartOnMachine starts this program with arguments in the namespaces of process 1: a privileged container that shares the processes of its machine
// leaves itself by it. The delegate has the files of the machine, and needs none there for itself: the kernel keeps the program of the container for it.
// It stays in the cgroups of the container. Its environment has PATH and the given variables.
//
// The caller has no launcher, which would take the delegate for an orphan.
func StartOnMachine(stdout io.Writer, env []string, args ...string) (*Delegate, error) {
	d := &Delegate{cmd: exec.Command("/proc/self/exe", args...)} //nolint:noctx // the end of its input ends it
	d.cmd.Env, d.cmd.Dir = append([]string{"PATH=" + usualPath}, env...), "/"
	d.cmd.Stdout, d.cmd.Stderr = stdout, &d.messages
	d.cmd.WaitDelay = outputGrace
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if d.Input, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	starts := make(chan error, 1)
	thread.Go(func() {
		err := enterMachine("/proc/1/ns/", "/proc/thread-self/ns/")
		if err == nil {
			err = d.cmd.Start()
		}
		starts <- err
	})
	if err := <-starts; err != nil {
		return nil, fmt.Errorf("leave the container for its machine: %w", err)
	}
	return d, nil
}

// Wait waits for the end of the delegate. The error has the last lines of its messages.
func (d *Delegate) Wait() error {
	err := d.cmd.Wait()
	if text := d.messages.String(); err != nil && text != "" {
		return fmt.Errorf("%s (%w)", text, err)
	}
	return err
}

// Kill kills the delegate. Its children stay.
func (d *Delegate) Kill() error { return d.cmd.Process.Kill() }

// enterMachine moves the calling thread into the namespaces of a process.
func enterMachine(process, self string) error {
	var files []*os.File
	defer func() { closeAll(files) }()
	for _, n := range machineNamespaces {
		f, err := os.Open(process + n.link)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	first, err := os.Stat(process + "mnt")
	if err != nil {
		return err
	}
	second, err := os.Stat(self + "mnt")
	if err != nil {
		return err
	}
	if os.SameFile(first, second) {
		return errOwnProcesses
	}
	// A thread enters a mount namespace only with a root and a working directory of its own.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("separate the working directory: %w", err)
	}
	for i, f := range files {
		if err := unix.Setns(int(f.Fd()), machineNamespaces[i].kind); err != nil {
			return fmt.Errorf("enter the namespace %s: %w", f.Name(), err)
		}
	}
	return nil
}

// ResetOOMScore gives this program the usual OOM score, in place of the score of its container.
func ResetOOMScore() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("0"), 0); err != nil {
		return fmt.Errorf("set the OOM score to 0: %w", err)
	}
	return nil
}
