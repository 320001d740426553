package locality

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The file that a container writes, and the directory of its mount.
const (
	sharedFile = "shared"
	mountPoint = "/data"
)

// bind lets a container write a file into a new directory below parent. It returns the reason why that is not possible, or why the file is not here.
func (c *check) bind(ctx context.Context, parent string) (reason string, err error) {
	dir, err := os.MkdirTemp(parent, "place-")
	if err != nil {
		return "", fmt.Errorf("check the directories of %s: %w", c.Daemon, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	watch, err := watchDir(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unix.Close(watch)) }()
	var output excerpt
	exit, refusal, err := c.runTwice(ctx, func() engine.Spec {
		spec := c.spec(engine.NoNetwork, probe.Write(filepath.Join(mountPoint, sharedFile))...)
		spec.Mounts = []engine.Mount{{Source: dir, Target: mountPoint}}
		spec.Process.Stderr = &output
		return spec
	})
	if err != nil {
		return "", err
	}
	_, missing := os.Lstat(filepath.Join(dir, sharedFile))
	switch {
	case refusal != nil && strings.Contains(refusal.Error(), "ermission denied") && c.isOther():
		return c.denied(parent, refusal.Error()), nil
	case refusal != nil:
		return fmt.Sprintf("%s cannot mount %s of this host: %v; %s", c.Daemon, parent, refusal, c.mountAdvice(parent)), nil
	case !exit.OK():
		return c.denied(parent, fmt.Sprintf("%v: %s", exit, output.String())), nil
	case errors.Is(missing, fs.ErrNotExist):
		return fmt.Sprintf("%s has another file system: a file that its container writes to %s does not appear here; %s", c.Daemon, parent, c.mountAdvice(parent)), nil
	case missing != nil:
		return "", fmt.Errorf("check the directories of %s: %w", c.Daemon, missing)
	}
	if !reported(watch) {
		c.foreign = fmt.Sprintf("a file of its container appears in %s without an event, so another kernel has written it", parent)
	}
	return "", nil
}

func (c *check) mountAdvice(parent string) string {
	return c.inContainer(fmt.Sprintf("-v %s:%[1]s", filepath.Dir(parent)), "use --managed for a private daemon, or a daemon that sees all files of this host (no Snap, no virtual machine, no PrivateTmp)")
}

// isOther reports whether root in a container is another user here than this program.
func (c *check) isOther() bool { return c.Users != "" || c.known && c.uid != os.Geteuid() }

// denied explains why a container's program could not write to a directory. proof is the error or the output of the program.
func (c *check) denied(parent, proof string) string {
	what := fmt.Sprintf("root in a container of %s may not write to %s of this host (%s): ", c.Daemon, parent, proof)
	switch uid := os.Geteuid(); {
	case c.Users != "":
		return what + c.Users + "; use --managed for a private daemon, or a daemon without it"
	case c.known && c.uid != uid:
		return what + fmt.Sprintf("it is user %d here, and the directory belongs to user %d; use --managed for a private daemon, or run as that user", c.uid, uid)
	case hasSELinux(c.selinux):
		return what + "SELinux may refuse it; allow containers of the type spc_t, look at ausearch -m avc, or use --managed for a private daemon"
	}
	return what + "look at the daemon's log, or use --managed for a private daemon"
}

// watchDir returns an inotify descriptor that reports new files in a directory.
func watchDir(dir string) (int, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return 0, fmt.Errorf("watch a directory: %w", os.NewSyscallError("inotify_init1", err))
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE); err != nil {
		return 0, errors.Join(fmt.Errorf("watch %s: %w", dir, os.NewSyscallError("inotify_add_watch", err)), unix.Close(fd))
	}
	return fd, nil
}

// reported reports whether the kernel has queued an event. It queues the event before the call that makes the file returns.
func reported(watch int) bool {
	var buffer [unix.SizeofInotifyEvent + unix.NAME_MAX + 1]byte
	n, err := unix.Read(watch, buffer[:])
	return err == nil && n > 0
}

// selinuxDir is the mount point of SELinux's file system, which exists while SELinux is on.
const selinuxDir = "/sys/fs/selinux"

// HasSELinux reports whether SELinux is on here.
func HasSELinux() bool { return hasSELinux(selinuxDir) }

func hasSELinux(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "enforce"))
	return err == nil
}

// longestOutput bounds the kept output of a program, in bytes.
const longestOutput = 300

// excerpt keeps the first bytes of an output, as one line.
type excerpt struct {
	mu   sync.Mutex
	text []byte
}

func (o *excerpt) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p[:min(len(p), longestOutput-len(o.text))]...)
	return len(p), nil
}

func (o *excerpt) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(o.text), "")), " ")
}
