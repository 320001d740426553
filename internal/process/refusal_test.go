package process_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// A filter may refuse clone3 with any error, and an old kernel has its own ones.
//
// Invariant refused-calls: A system call that a filter refuses is replaced like one that the kernel lacks, or named with cause and remedy; root
// is never told to become root.
func TestCloneRefusal(t *testing.T) {
	for errno, want := range map[unix.Errno]bool{
		unix.EPERM: true, unix.ENOSYS: true, unix.EACCES: true, unix.E2BIG: true, unix.EINVAL: true,
		unix.EBADF: false, unix.EAGAIN: false, unix.ENOMEM: false, 0: false,
	} {
		r := process.CloneRefusal(errno)
		if (r != nil) != want {
			t.Errorf("clone3 with %v is %v", errno, r)
		}
		if want && (!strings.Contains(r.Error(), "clone3") || r.Remedy == "") {
			t.Errorf("%v: %v", errno, r)
		}
	}
}

// Without clone3 the children of a hybrid host start in the cgroups of v1. A host with v2 alone has no other way, and the error names clone3.
//
// Invariant refused-calls.
func TestSetCgroupWithoutClone(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS, unix.EACCES} {
		l, err := process.New(process.Options{})
		must.Do(t, err)
		process.RefuseClone(l, errno)
		tasks := filepath.Join(t.TempDir(), "tasks")
		open := func() *os.File {
			dir, err := os.Open(filepath.Dir(tasks))
			must.Do(t, err)
			return dir
		}
		must.Do(t, os.WriteFile(tasks, nil, 0o600))
		if err := l.SetCgroup([]string{tasks}, open()); err != nil {
			t.Errorf("%v on a hybrid host: %v", errno, err)
		}
		if text, err := os.ReadFile(tasks); err != nil || string(text) != "0" {
			t.Errorf("%v on a hybrid host: the thread wrote %q, %v", errno, text, err)
		}
		if err := l.Run(t.Context(), exec.CommandContext(t.Context(), "true")); err != nil {
			t.Errorf("%v on a hybrid host: a child does not start: %v", errno, err)
		}
		err = l.SetCgroup(nil, open())
		if r, ok := errors.AsType[*refusal.Error](err); !ok || r.What != "clone3" || !errors.Is(err, errno) {
			t.Errorf("%v on v2: %v", errno, err)
		}
		if got := l.Refusals(); len(got) == 0 || got[len(got)-1].What != "clone3" {
			t.Errorf("%v: the refused calls are %v", errno, got)
		}
		must.Do(t, l.Close())
	}
}

// Without pidfds, for any reason, the launcher waits by SIGCHLD.
//
// Invariant refused-calls.
func TestWithoutPidfds(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS, unix.EACCES} {
		l, err := process.New(process.Options{})
		must.Do(t, err)
		process.RefusePidfds(l, errno)
		if err := l.Run(t.Context(), exec.CommandContext(t.Context(), "true")); err != nil {
			t.Errorf("%v: %v", errno, err)
		}
		if got := l.Refusals(); len(got) == 0 || got[0].What != "pidfd_open" {
			t.Errorf("%v: the refused calls are %v", errno, got)
		}
		must.Do(t, l.Close())
	}
}

func TestOpenPidfd(t *testing.T) {
	const unusedPID = 1 << 22 // above the kernel's highest
	if _, err := process.OpenPidfd(unusedPID); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that was reaped: %v", err)
	}
}

// EINVAL of a cgroup has this cause for each real-time policy, and for no other one.
//
// Invariant refused-calls.
func TestRealTimeRefusal(t *testing.T) {
	for _, policy := range []uint32{unix.SCHED_FIFO, unix.SCHED_RR, unix.SCHED_DEADLINE} {
		err := process.RealTimeRefusal(&os.PathError{Op: "write", Path: "tasks", Err: unix.EINVAL}, policy)
		if err == nil || !strings.Contains(err.Error(), "SCHED_") || !strings.Contains(err.Error(), "CONFIG_RT_GROUP_SCHED") || !strings.Contains(err.Error(), "chrt") {
			t.Errorf("policy %d: %v", policy, err)
		}
	}
	for _, policy := range []uint32{unix.SCHED_NORMAL, unix.SCHED_BATCH, unix.SCHED_IDLE} {
		if err := process.RealTimeRefusal(unix.EINVAL, policy); err != nil {
			t.Errorf("policy %d: %v", policy, err)
		}
	}
	for _, err := range []error{unix.ENOENT, unix.EBUSY, unix.EPERM, nil} {
		if got := process.RealTimeRefusal(err, unix.SCHED_FIFO); got != nil {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// A launcher whose thread is a real-time process is refused by a real cgroup of a kernel with CONFIG_RT_GROUP_SCHED, with this cause.
func TestRealTimeInRealCgroup(t *testing.T) {
	h, top := groups(t)
	cpu, ok := h.Controller("cpu")
	if _, err := os.Stat(filepath.Join(cpu.Dir, "cpu.rt_runtime_us")); !ok || err != nil {
		t.Skip("needs cgroup v1 of a kernel with CONFIG_RT_GROUP_SCHED")
	}
	g, err := h.Create(top + "/host")
	must.Do(t, err)
	l := launcher(t, process.Options{})
	if err := l.InNamespace(func() error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
	}); err != nil {
		t.Skip("needs the right to be a real-time process: ", err)
	}
	err = l.SetCgroup(slices.DeleteFunc(g.ThreadFiles(), func(file string) bool { return !strings.HasPrefix(file, cpu.Dir+"/") }), nil)
	if r, ok := errors.AsType[*refusal.Error](err); !ok || !strings.Contains(r.Cause, "SCHED_RR") {
		t.Errorf("a real-time process: %v", err)
	}
}
