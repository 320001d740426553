package enginetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// The roles of a test's program besides the tests. Machines of the lab have no other program for them. TestMain must call Main.
const (
	attackRole = "attack"
	victimRole = "victim"
)

// victimUser owns the victim.
const victimUser = 65534

// play plays a role, and reports whether the arguments of this process name one.
func play(args []string) bool {
	if len(args) < 2 {
		return false
	}
	switch args[1] {
	case attackRole:
		attack(args[2])
	case victimRole:
		say("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // the end of the input is the end of the test
	default:
		return false
	}
	return true
}

// say prints a line.
func say(words ...string) { _, _ = io.WriteString(os.Stdout, strings.Join(words, " ")+"\n") }

// Prey lists the objects on the host that a program of an image tries to reach.
type Prey struct {
	PIDs   []int  // processes of the host
	UID    int    // the user of the victim, which is one of them
	Secret string // a file of root with mode 0600, which only root can read
	Key    int    // of System V IPC
	Queue  string // a message queue
	Shared string // shared memory of POSIX
	Device uint64 // with Inode the probe's file on the host
	Inode  uint64
	Walk   bool // open every file of /proc and /sys for writing
}

// attack prints a line for everything that it reaches.
func attack(text string) {
	var p Prey
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	runtime.LockOSThread() // its user is changed
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			p.PIDs = append(p.PIDs, pid)
		}
	}
	for _, pid := range p.PIDs {
		p.attackProcess(pid)
	}
	p.attackIPC()
	for _, file := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity",
		"/proc/acpi/wakeup", "/proc/scsi/scsi", "/proc/mtrr", "/sys/kernel/uevent_helper", "/sys/kernel/profiling", "/sys/power/state",
	} {
		try("write "+file, openAndClose(file, unix.O_WRONLY))
	}
	for _, file := range []string{"/proc/kcore", "/proc/kmsg"} {
		try("read "+file, openAndClose(file, unix.O_RDONLY))
	}
	if p.Walk {
		walk("/proc")
		walk("/sys")
	}
	say("done")
}

func try(what string, err error) {
	if err == nil {
		say("possible:", what)
	}
}

func openAndClose(name string, mode int) error {
	fd, err := unix.Open(name, mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// become sets the user of this thread's access to files, and keeps the way back.
func become(user int) {
	_, _ = unix.SetfsuidRetUid(user)
	_, _ = unix.SetfsgidRetGid(user)
}

// attackProcess attacks a process by its files in /proc, as its user and as root.
func (p Prey) attackProcess(pid int) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	if pid == os.Getpid() {
		return
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", pid)); err == nil {
		return // the number of one of its own threads
	}
	links := []string{dir + "root", dir + "cwd"}
	fds, _ := filepath.Glob(dir + "fd/*")
	for _, user := range []int{0, p.UID} {
		become(user)
		files, _ := filepath.Glob(dir + "fd/*")
		fds = append(fds, files...)
		become(0)
	}
	for _, link := range append(links, fds...) {
		for _, user := range []int{0, p.UID} {
			become(user)
			fd, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
			become(0)
			if err != nil {
				continue
			}
			p.attackDirectory(fd, link)
			_ = unix.Close(fd)
		}
	}
	for _, name := range []string{"mem", "environ", "maps"} {
		for _, user := range []int{0, p.UID} {
			become(user)
			err := openAndClose(dir+name, unix.O_RDONLY)
			become(0)
			if p.isHosts(pid) {
				try("open "+name+" of a process of the host", err)
			}
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir+"exe", &st); err == nil && st.Dev == p.Device && st.Ino == p.Inode {
		try("open the probe of the host", nil)
	}
	if p.isHosts(pid) {
		try("send a signal to a process of the host", unix.Kill(pid, 0))
		try("trace a process of the host", p.trace(pid))
	}
}

// isHosts reports whether the process was named as one of the host. In another PID namespace a process may have the number, but then the
// namespace has no more processes than the attack and the first one.
func (p Prey) isHosts(pid int) bool { return pid > 1 && (pid == p.PIDs[0] || pid == p.PIDs[1]) }

// attackDirectory reads the secret below a directory, or in it.
func (p Prey) attackDirectory(dir int, link string) {
	for _, name := range []string{strings.TrimPrefix(p.Secret, "/"), filepath.Base(p.Secret)} {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		f := os.NewFile(uintptr(fd), name)
		text, err := io.ReadAll(f)
		_ = f.Close()
		if err == nil {
			try("read by "+filepath.Base(strings.TrimRight(link, "0123456789"))+": "+string(text), nil)
		}
	}
}

// trace attaches to a process as its user, on a thread that ends with the call.
func (p Prey) trace(pid int) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // without an unlock the thread ends here
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(p.UID), uintptr(p.UID), 0)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uintptr(p.UID), uintptr(p.UID), 0)
		}
		if errno == 0 {
			_, _, errno = unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
		}
		if errno != 0 {
			result <- errno
			return
		}
		result <- nil
	}()
	return <-result
}

func (p Prey) attackIPC() {
	id, err := unix.SysvShmGet(p.Key, 0, 0)
	if err == nil {
		memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
		if err == nil {
			try("read shared memory: "+unix.ByteSliceToString(memory), nil)
			_ = unix.SysvShmDetach(memory)
		}
	}
	for name, call := range map[string]uintptr{"queue": unix.SYS_MSGGET, "semaphore": unix.SYS_SEMGET} {
		if _, _, errno := unix.Syscall(call, uintptr(p.Key), 0, 0); errno == 0 {
			try("get the "+name+" of System V", nil)
		}
	}
	if fd, err := openQueue(p.Queue, unix.O_RDONLY); err == nil {
		try("open the message queue of POSIX", nil)
		_ = unix.Close(fd)
	}
	try("open the shared memory of POSIX", openAndClose(p.Shared, unix.O_RDONLY))
}

// openQueue opens a message queue by its name without the slash.
func openQueue(name string, flags int) (fd int, err error) {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return -1, err
	}
	n, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(text)), uintptr(flags|unix.O_CLOEXEC), 0o600, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// walk opens every file for writing.
func walk(root string) {
	files := 0
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files++
			try("write "+name, openAndClose(name, unix.O_WRONLY))
		}
		return nil
	})
	if files == 0 {
		say(root, "is empty")
	}
}

// RunAttack runs the attack's program with the arguments, and returns its output.
func RunAttack(t *testing.T, p Prey, run func(args []string, out io.Writer) error) string {
	t.Helper()
	text, err := json.Marshal(p)
	must.Do(t, err)
	var out bytes.Buffer
	if err := run([]string{attackRole, string(text)}, &out); err != nil {
		t.Errorf("the attack failed: %v\n%s", err, out.String())
	}
	return out.String()
}

// Attacker copies this program to a root file system, and returns its path there.
func Attacker(t *testing.T, rootfs string) string {
	t.Helper()
	copySelf(t, filepath.Join(rootfs, "attack"))
	return "/attack"
}

// copySelf copies this program to a file.
func copySelf(t *testing.T, path string) {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	must.Do(t, err)
	defer func() { _ = self.Close() }() // it is only read from
	program, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	must.Do(t, err)
	_, err = io.Copy(program, self)
	Check(t, err)
	Check(t, program.Close())
}

// Libraries are the directories of libraries, because this program may be linked with them.
func Libraries(t *testing.T, rootfs string) (mounts []engine.Mount) {
	t.Helper()
	for _, dir := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"} {
		source, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		must.Do(t, os.MkdirAll(filepath.Join(rootfs, dir), 0o755))
		mounts = append(mounts, engine.Mount{Source: source, Target: dir, ReadOnly: true})
	}
	return mounts
}

// HostsPrey makes the prey on the host: a process of another user, a file of root, and IPC with the same token.
func HostsPrey(t *testing.T, s engine.Session) (p Prey, token string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	token = rand.Text()
	dir, err := os.MkdirTemp("", "touchstone-prey") //nolint:usetesting // the other user cannot enter the directories of t.TempDir
	must(err)
	t.Cleanup(func() { must(os.RemoveAll(dir)) })
	must(os.Chmod(dir, 0o755))
	p = Prey{UID: victimUser, Secret: filepath.Join(dir, "secret"), Queue: filepath.Base(dir), Shared: "/dev/shm/" + filepath.Base(dir)}
	must(os.WriteFile(p.Secret, []byte(token), 0o600))

	dirFile, err := os.Open(dir)
	must(err)
	input, end, err := os.Pipe()
	must(err)
	output, ready, err := os.Pipe()
	must(err)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", victimRole)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = dir, input, ready, []*os.File{dirFile}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: victimUser, Gid: victimUser}}
	done, err := s.Launcher.Start(cmd)
	_, _, _ = dirFile.Close(), input.Close(), ready.Close()
	must(err)
	t.Cleanup(func() {
		_, _ = end.Close(), output.Close()
		<-done
	})
	_, err = bufio.NewReader(output).ReadString('\n')
	must(err)
	p.PIDs = []int{cmd.Process.Pid, os.Getpid()}

	var st unix.Stat_t
	must(unix.Stat(s.Probe, &st))
	p.Device, p.Inode = st.Dev, st.Ino
	hostsIPC(t, &p, token)
	return p, token
}

// hostsIPC makes an object of each kind of IPC. The kernel may have no message queues.
func hostsIPC(t *testing.T, p *Prey, token string) {
	t.Helper()
	const flags, mode = unix.IPC_CREAT | unix.IPC_EXCL, 0o600
	var random [3]byte
	_, _ = rand.Read(random[:])
	p.Key = int(random[0])<<16 | int(random[1])<<8 | int(random[2]) | 1<<24
	id, err := unix.SysvShmGet(p.Key, 4096, flags|mode)
	must.Do(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	must.Do(t, err)
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
