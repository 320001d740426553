package native_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

const nobody = 65534

// A program of an image reaches no process of the host, also not by Exec. The control executes the same program with the same capabilities and
// the host's processes: there it reads a file of root.
func TestImageSeesNoProcessOfTheHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: another user has no rights to lose")
	}
	s, e := open(t)
	program := copyOfTest(t, s.Rootfs)
	p, token := hostsPrey(t, s)

	control := runAttack(t, p, func(args []string, out io.Writer) error {
		args = append([]string{"enter", "--root", "/", "--confine", "--", filepath.Join(s.Rootfs, program)}, args...)
		cmd := exec.CommandContext(t.Context(), s.Probe, args...)
		cmd.Stdout, cmd.Stderr = out, out
		return s.Launcher.Run(t.Context(), cmd)
	})
	for _, want := range []string{
		"read by root: " + token, "read by cwd: " + token, "read by fd: " + token, "open mem of a process of the host",
		"send a signal to a process of the host", "read shared memory: " + token, "get the semaphore of System V", "write /proc/sys/kernel/core_pattern",
	} {
		if !strings.Contains(control, "possible: "+want) {
			t.Errorf("on the host the attack does not %q; this test shows nothing. It prints\n%s", want, control)
		}
	}

	p.Walk = true
	for i, started := range []bool{false, true} {
		sp := spec(s, i, workload.Ready()...)
		sp.Mounts = libraries(t, s.Rootfs)
		c, err := e.Create(t.Context(), sp)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		if started {
			if err := c.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantNothing(t, runAttack(t, p, func(args []string, out io.Writer) error {
			process := engine.Process{Args: append([]string{program}, args...), Stdout: out, Stderr: out}
			_, err := c.(engine.Execer).Exec(t.Context(), process)
			return err
		}))
	}
	wantNothing(t, runAttack(t, p, func(args []string, out io.Writer) error {
		sp := spec(s, 3, append([]string{program}, args...)...)
		sp.Mounts, sp.Process.Stdout, sp.Process.Stderr = libraries(t, s.Rootfs), out, out
		c := enginetest.Running(t, e, sp)
		if _, err := c.Wait(t.Context()); err != nil {
			return err
		}
		return c.Delete(t.Context()) // the output is whole
	}))
}

func wantNothing(t *testing.T, output string) {
	t.Helper()
	if output != "done\n" {
		t.Errorf("the attack prints\n%s", output)
	}
}

// runAttack runs the attack's program with the arguments, and returns its output.
func runAttack(t *testing.T, p prey, run func(args []string, out io.Writer) error) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{attackRole, string(text)}, &out); err != nil {
		t.Errorf("the attack failed: %v\n%s", err, out.String())
	}
	return out.String()
}

// copyOfTest copies this program to a root file system, and returns its path there.
func copyOfTest(t *testing.T, rootfs string) string {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }() // it is only read from
	copied, err := os.OpenFile(filepath.Join(rootfs, "attack"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(copied, self); err != nil {
		t.Fatal(err)
	}
	if err := copied.Close(); err != nil {
		t.Fatal(err)
	}
	return "/attack"
}

// libraries are the directories of libraries, because this program may be linked with them.
func libraries(t *testing.T, rootfs string) (mounts []engine.Mount) {
	t.Helper()
	for _, dir := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"} {
		source, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(rootfs, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		mounts = append(mounts, engine.Mount{Source: source, Target: dir, ReadOnly: true})
	}
	return mounts
}

// hostsPrey makes the prey on the host: a process of another user, a file of root, and IPC with the same token.
func hostsPrey(t *testing.T, s engine.Session) (p prey, token string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	token = rand.Text()
	dir, err := os.MkdirTemp("", "touchstone-prey") //nolint:usetesting // the other user cannot enter the directories of t.TempDir
	check(err)
	t.Cleanup(func() { check(os.RemoveAll(dir)) })
	check(os.Chmod(dir, 0o755))
	p = prey{UID: nobody, Secret: filepath.Join(dir, "secret"), Queue: filepath.Base(dir), Shared: "/dev/shm/" + filepath.Base(dir)}
	check(os.WriteFile(p.Secret, []byte(token), 0o600))

	held, err := os.Open(dir)
	check(err)
	input, end, err := os.Pipe()
	check(err)
	output, ready, err := os.Pipe()
	check(err)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", victimRole)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = dir, input, ready, []*os.File{held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	done, err := s.Launcher.Start(cmd)
	_, _, _ = held.Close(), input.Close(), ready.Close()
	check(err)
	t.Cleanup(func() {
		_, _ = end.Close(), output.Close()
		<-done
	})
	_, err = bufio.NewReader(output).ReadString('\n')
	check(err)
	p.PIDs = []int{cmd.Process.Pid, os.Getpid()}

	var st unix.Stat_t
	check(unix.Stat(s.Probe, &st))
	p.Device, p.Inode = st.Dev, st.Ino
	hostsIPC(t, &p, token)
	return p, token
}

// hostsIPC makes an object of each kind of IPC. The kernel may have no message queues.
func hostsIPC(t *testing.T, p *prey, token string) {
	t.Helper()
	const flags, mode = unix.IPC_CREAT | unix.IPC_EXCL, 0o600
	var random [3]byte
	_, _ = rand.Read(random[:])
	p.Key = int(random[0])<<16 | int(random[1])<<8 | int(random[2]) | 1<<24
	id, err := unix.SysvShmGet(p.Key, 4096, flags|mode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory, token)
	_ = unix.SysvShmDetach(memory)
	if id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(p.Key), flags|mode, 0); errno == 0 {
		t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) })
	}
	if id, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(p.Key), 1, flags|mode); errno == 0 {
		t.Cleanup(func() { _, _, _ = unix.Syscall6(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0, 0, 0) })
	}
	if fd, err := openQueue(p.Queue, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL); err == nil {
		_ = unix.Close(fd)
		name, _ := unix.BytePtrFromString(p.Queue)
		t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0) })
	}
	if err := os.WriteFile(p.Shared, []byte(token), 0o600); err == nil {
		t.Cleanup(func() { _ = os.Remove(p.Shared) })
	}
}

// A program of Exec sees the first process, and its orphans end with the first process.
func TestExecSharesTheProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: another user's Exec has namespaces of its own")
	}
	rootfs, _ := enginetest.Workload(t)
	s, e := open(t)
	sp := spec(s, 1, workload.Ready()...)
	sp.Rootfs = rootfs
	c := enginetest.Running(t, e, sp)
	var out bytes.Buffer
	script := "/bin/busybox sleep 1000 >/dev/null 2>&1 & /bin/busybox readlink /proc/1/exe"
	exit, err := c.(engine.Execer).Exec(t.Context(), engine.Process{Args: []string{"/bin/busybox", "sh", "-c", script}, Stdout: &out})
	if err != nil || !exit.OK() || out.String() != workload.Probe+"\n" {
		t.Errorf("the first process is %q, %v, %v; want %s", out.String(), exit, err, workload.Probe)
	}
	g, err := s.Cgroups.Open("/" + engine.Prefix + s.RunID + "/" + c.ID())
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := g.Procs(); err != nil || len(pids) != 2 {
		t.Errorf("the processes are %v, %v; want the first one and the orphan", pids, err)
	}
	if err := c.Kill(t.Context(), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if _, err := c.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if pids, err := g.Procs(); err != nil || len(pids) > 0 {
		t.Errorf("after the exit of the first process the processes are %v, %v; want none", pids, err)
	}
}
