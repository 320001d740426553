package native_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The roles of the test's program besides the tests. Machines of the lab have no other program for them.
const (
	attackRole = "attack"
	victimRole = "victim"
)

func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case attackRole:
		attack(os.Args[2])
	case victimRole:
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // the end of the input is the end of the test
	default:
		os.Exit(m.Run())
	}
}

// prey is what a program of an image tries to reach on the host.
type prey struct {
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
	var p prey
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
	fmt.Println("done")
}

func try(what string, err error) {
	if err == nil {
		fmt.Println("possible:", what)
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
func (p prey) attackProcess(pid int) {
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
		more, _ := filepath.Glob(dir + "fd/*")
		fds = append(fds, more...)
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
func (p prey) isHosts(pid int) bool { return pid > 1 && (pid == p.PIDs[0] || pid == p.PIDs[1]) }

// attackDirectory reads the secret below a directory, or in it.
func (p prey) attackDirectory(dir int, link string) {
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
func (p prey) trace(pid int) error {
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

func (p prey) attackIPC() {
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
		fmt.Println(root, "is empty")
	}
}
