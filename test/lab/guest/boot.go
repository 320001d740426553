package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// mount is a file system that systemd would mount, with its options.
type mount struct {
	target, kind string
	flags        uintptr
	data         string
}

const (
	noDevices = unix.MS_NOSUID | unix.MS_NODEV
	noFiles   = noDevices | unix.MS_NOEXEC
)

// mounts are the mounts of a freshly booted Debian, and the directory for the job's output.
var mounts = []mount{
	{"/proc", "proc", noFiles, ""},
	{"/sys", "sysfs", noFiles, ""},
	{"/sys/kernel/security", "securityfs", noFiles, ""},
	// The memory of Kata's guests is there. With huge pages an emulated CPU translates their addresses faster, and they boot in two thirds
	// of the time.
	{"/dev/shm", "tmpfs", noDevices, "huge=always"},
	{"/dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "gid=5,mode=620,ptmxmode=000"},
	{"/dev/mqueue", "mqueue", noFiles, ""},
	{"/run", "tmpfs", noDevices, "size=20%,mode=755"},
	{"/run/lock", "tmpfs", noFiles, "size=5M"},
	{"/tmp", "tmpfs", noDevices, "size=50%,mode=1777"},
	{"/sys/fs/cgroup", "cgroup2", noFiles, "nsdelegate,memory_recursiveprot"},
	{job.Out, "tmpfs", noDevices, "size=128M"},
}

// rareWrites is the time in seconds between the file system's own commits. A step writes what its programs flush, and the rest at its end. The
// default of five seconds would write more the slower the machine is.
const rareWrites = "3600"

// boot sets up the system: console, modules, root file system, mounts, loopback interface and cgroup controllers.
func boot() error {
	if err := os.MkdirAll("/dev", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devtmpfs", "/dev", "devtmpfs", unix.MS_NOSUID, "mode=755"); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mount /dev: %w", err)
	}
	if err := openConsole(); err != nil {
		return err
	}
	if err := loadModules(job.Modules); err != nil {
		return err
	}
	if err := switchRoot(); err != nil {
		return err
	}
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := os.WriteFile("/proc/sys/vm/dirty_writeback_centisecs", []byte("0"), 0); err != nil { // see rareWrites
		return err
	}
	for name, destination := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(destination, name); err != nil {
			return err
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	if err := holdKVM(); err != nil {
		say("hold KVM: %v", err)
	}
	return enableControllers("/sys/fs/cgroup")
}

// openConsole makes the console standard input, output and error. The kernel leaves them closed if the initramfs has no /dev/console.
func openConsole() error {
	fd, err := unix.Open("/dev/console", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open the console: %w", err)
	}
	for standard := range 3 {
		if fd == standard {
			continue
		}
		if err := unix.Dup3(fd, standard, 0); err != nil {
			return fmt.Errorf("open the console: %w", err)
		}
	}
	if fd > 2 {
		return unix.Close(fd)
	}
	return nil
}

// loadModules loads the modules of a directory in the order of their names. Then it removes the directory to free its memory.
func loadModules(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		module, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil {
			err = unix.InitModule(module, "")
		}
		switch {
		case errors.Is(err, unix.EOPNOTSUPP): // KVM's module for the CPUs of another vendor
			say("module %s does not work on this CPU", e.Name())
		case err != nil && !errors.Is(err, unix.EEXIST):
			return fmt.Errorf("load module %s: %w", e.Name(), err)
		}
	}
	return os.RemoveAll(dir)
}

// switchRoot makes the disk the root, like switch_root(8). The file system of the initramfs cannot be unmounted.
func switchRoot() error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(rootDisk, root, "ext4", unix.MS_RELATIME, "errors=remount-ro,commit="+rareWrites); err != nil {
		return fmt.Errorf("mount %s: %w", rootDisk, err)
	}
	if err := unix.Mount("/dev", filepath.Join(root, "dev"), "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move /dev: %w", err)
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	// Like systemd: mounts propagate to other mount namespaces unless these disable propagation.
	return errors.Join(os.Chdir("/"), unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""))
}

// enableControllers enables all controllers of a cgroup for its children.
func enableControllers(group string) error {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(controllers)) {
		if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return fmt.Errorf("enable controller %s in %s: %w", c, group, err)
		}
	}
	return nil
}
