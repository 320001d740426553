package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/record"
)

// A case of the campaign runs on a host of its own: new PID, mount, network, IPC and cgroup namespaces, and a root file system whose upper
// layer records each changed file. The state of such a host changes only by its own programs, so a difference belongs to
// the case, although other tests run beside it. The end of the namespaces removes whatever a failed case leaves.

const (
	// roleVariable is set in the processes of a host: roleInit in its first process, and roleTest in the tests.
	roleVariable = "CHAOS_ROLE"
	roleInit     = "init"
	roleTest     = "test"

	dirVariable     = "CHAOS_DIR"     // the directory with the files of the host
	cgroupsVariable = "CHAOS_CGROUPS" // the cgroups of the host, with ":" between them

	// programs is the directory with the built programs on a host. changes is the upper layer of its root file system, and lower the other one.
	programs = "/chaos/bin"
	changes  = "/chaos/changes"
	lower    = "/chaos/lower"
	// rowFile is the descriptor that receives the row of the table, and recordFile the one of the record of tests, if there is one.
	rowFile    = 3
	recordFile = 4
)

// inside reports whether this process runs on a host of the campaign.
func inside() bool { return os.Getenv(roleVariable) == roleTest }

// graceOfHost is the time for the end of a case that has reached its limit.
const graceOfHost = 10 * time.Second

// interrupted is done at SIGINT or SIGTERM. The hosts then end, and the campaign removes them before it ends itself.
var interrupted = sync.OnceValue(func() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	return ctx
})

// spawn runs the calling test on a new host and returns its output. The row of the table goes to row.
func spawn(t *testing.T, bin string, limit time.Duration, row *os.File) (output []byte, err error) {
	t.Helper()
	if err := interrupted().Err(); err != nil {
		return nil, fmt.Errorf("the campaign is interrupted: %w", err)
	}
	if err := removeDead(); err != nil {
		return nil, fmt.Errorf("remove the cgroups of a killed campaign: %w", err)
	}
	dir := t.TempDir()
	groups, err := makeCgroups(fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), strings.ToLower(rand.Text()[:8])))
	defer func() {
		for _, group := range groups {
			err = errors.Join(err, removeCgroups(group))
		}
	}()
	if err != nil {
		return nil, err
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=" + limit.String()}
	ctx, cancel := context.WithTimeout(interrupted(), limit+graceOfHost)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+roleInit, dirVariable+"="+dir, cgroupsVariable+"="+strings.Join(groups, ":"), builtVariable+"="+bin)
	cmd.ExtraFiles = []*os.File{row}
	if path := os.Getenv(record.Variable); path != "" {
		// The path is on another root file system. A descriptor is valid on both.
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		cmd.Env = append(cmd.Env, record.Variable+"=/proc/self/fd/"+strconv.Itoa(recordFile))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  unix.SIGTERM,
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = graceOfHost
	// The host ends if the thread that started it exits.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.CombinedOutput()
}

// hierarchies lists the mounted hierarchies of cgroups.
func hierarchies() ([]*mountinfo.Info, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("list hierarchies of cgroups: %w", err)
	}
	return slices.DeleteFunc(mounts, func(m *mountinfo.Info) bool { return !strings.HasPrefix(m.Mountpoint, "/sys/fs/cgroup") }), nil
}

// groupPrefix begins the names of all cgroups of campaigns. The number of the campaign's process follows.
const groupPrefix = "chaos-"

// removeDead removes the cgroups of campaigns whose process was killed. A host that is about to end still has processes, and keeps its cgroups.
func removeDead() error {
	mounts, err := hierarchies()
	for _, m := range mounts {
		groups, failure := filepath.Glob(filepath.Join(m.Mountpoint, groupPrefix+"*-*"))
		err = errors.Join(err, failure)
		for _, group := range groups {
			number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(group), groupPrefix), "-")
			if pid, failure := strconv.Atoi(number); failure == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				if failure := removeCgroups(group); !errors.Is(failure, unix.EBUSY) {
					err = errors.Join(err, failure)
				}
			}
		}
	}
	return err
}

// makeCgroups makes a cgroup in each hierarchy. They are the roots of the host's cgroups.
func makeCgroups(name string) (groups []string, err error) {
	mounts, err := hierarchies()
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		group := filepath.Join(m.Mountpoint, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return groups, err
		}
		groups = append(groups, group)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // a new cpuset of v1 is empty, and no process can join it
			value, err := os.ReadFile(filepath.Join(m.Mountpoint, file))
			if err == nil && m.FSType == "cgroup" {
				if err := os.WriteFile(filepath.Join(group, file), value, 0o600); err != nil {
					return groups, err
				}
			}
		}
	}
	return groups, nil
}

// removeCgroups removes a cgroup and all below it. The host's processes have exited.
func removeCgroups(group string) error {
	var dirs []string
	err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		err = errors.Join(err, unix.Rmdir(dir))
	}
	return err
}

// initHost is the first process of a host. It builds the host, starts the tests there and reaps all orphans, until the tests exit. It
// returns their exit code. SIGTERM ends the host.
func initHost() (code int, err error) {
	runtime.LockOSThread() // a thread has its own cgroup namespace
	defer func() { err = errors.Join(err, thaw()) }()
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, unix.SIGTERM)
	go func() {
		<-terminate
		if err := thaw(); err != nil {
			fmt.Fprintln(os.Stderr, "end the host:", err)
		}
		os.Exit(1)
	}()
	dir := os.Getenv(dirVariable)
	if err := joinCgroups(strings.Split(os.Getenv(cgroupsVariable), ":")); err != nil {
		return 1, err
	}
	mounts, err := hierarchies()
	if err != nil {
		return 1, err
	}
	if err := mountHost(dir, os.Getenv(builtVariable), mounts); err != nil {
		return 1, err
	}
	if err := errors.Join(unix.Sethostname([]byte("chaos")), loopback()); err != nil {
		return 1, err
	}
	for name, value := range map[string]string{
		roleVariable: roleTest, "HOME": "/home/chaos", "TMPDIR": "/chaos/tmp", "PATH": programs + ":" + os.Getenv("PATH"),
		"XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "XDG_RUNTIME_DIR": "", "TOUCHSTONE_CACHE": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			return 1, err
		}
	}
	files := []uintptr{0, 1, 2, rowFile}
	if os.Getenv(record.Variable) != "" {
		files = append(files, recordFile)
	}
	self, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		return 1, fmt.Errorf("start the tests: %w", err)
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the tests: %w", err)
		case pid == self && status.Signaled():
			return 1, fmt.Errorf("the tests were killed by signal %d", status.Signal())
		case pid == self:
			return status.ExitStatus(), nil
		}
	}
}

// thaw lets all frozen processes of the host continue. The kernel cannot kill a frozen process of cgroup v1, so the end of its PID namespace would
// wait for it forever.
func thaw() error {
	return filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just been removed
		}
		if err != nil || !d.IsDir() {
			return err
		}
		for file, value := range map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0"} {
			file = filepath.Join(path, file)
			if _, err := os.Stat(file); err == nil {
				_ = os.WriteFile(file, []byte(value), 0o600) // it may be removed meanwhile
			}
		}
		return nil
	})
}

// joinCgroups makes the cgroups the roots of this process's cgroup namespace. With cgroup v2 a cgroup with processes cannot pass controllers
// on, so the process then moves into a child.
func joinCgroups(groups []string) error {
	join := func(group string) error {
		return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0o600)
	}
	for _, group := range groups {
		if err := join(group); err != nil {
			return err
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make a cgroup namespace: %w", err)
	}
	for _, group := range groups {
		controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
		if err != nil || len(strings.Fields(string(controllers))) == 0 {
			continue
		}
		child := filepath.Join(group, "init")
		if err := errors.Join(os.Mkdir(child, 0o755), join(child)); err != nil {
			return err
		}
	}
	return nil
}

// mountHost makes the root file system of the host.
func mountHost(dir, bin string, cgroups []*mountinfo.Info) error {
	root, layer := filepath.Join(dir, "root"), filepath.Join(dir, "layer")
	var failed error
	locate := func(path string) string { return filepath.Join(root, path) }
	mkdir := func(dirs ...string) {
		for _, dir := range dirs {
			failed = errors.Join(failed, os.MkdirAll(dir, 0o755))
		}
	}
	mount := func(source, target, fstype string, flags uintptr, data string) {
		if failed == nil {
			if err := unix.Mount(source, target, fstype, flags, data); err != nil {
				failed = fmt.Errorf("mount %s at %s: %w", source, target, err)
			}
		}
	}
	tmpfs := func(path, mode string) {
		mkdir(locate(path))
		mount("tmpfs", locate(path), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode="+mode)
	}
	bind := func(source, path string) {
		mkdir(locate(path))
		mount(source, locate(path), "", unix.MS_BIND, "")
	}
	mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	mkdir(root, layer)
	// The upper layer may not be on the file system of the lower one, which is a parent directory.
	mount("tmpfs", layer, "tmpfs", 0, "mode=755")
	upper, work := filepath.Join(layer, "upper"), filepath.Join(layer, "work")
	mkdir(upper, work)
	mount("overlay", root, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work)
	tmpfs("/chaos", "755")
	bind(bin, programs)
	mount("", locate(programs), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	bind(upper, changes)
	bind("/", lower)
	// Daemons keep layers below /var, and an overlay cannot be the upper layer of another.
	for _, d := range []string{"/var", "/tmp", "/chaos/tmp"} {
		source := filepath.Join(dir, "disk", d)
		mkdir(source)
		bind(source, d)
	}
	for _, d := range []string{"/var/tmp", "/tmp"} {
		mkdir(locate(d))
		failed = errors.Join(failed, os.Chmod(locate(d), 0o777|fs.ModeSticky))
	}
	mkdir(locate("/var/lib"), locate("/var/log"), locate("/var/cache"), locate("/home/chaos"))
	// A host has no network to build the workload image, and may not change the image outside.
	if _, err := os.Stat(imageCache); err == nil {
		upper, work := filepath.Join(layer, "cache"), filepath.Join(layer, "cache-work")
		mkdir(upper, work, locate(imageCache))
		mount("overlay", locate(imageCache), "overlay", 0, "lowerdir="+imageCache+",upperdir="+upper+",workdir="+work)
	}
	failed = errors.Join(failed, os.Symlink("/run", locate("/var/run")), os.Symlink("/run/lock", locate("/var/lock")))
	tmpfs("/run", "755")
	mkdir(locate("/run/lock"), locate("/run/mount")) // mount makes the second one
	mount("proc", locate("/proc"), "proc", 0, "")
	mount("sysfs", locate("/sys"), "sysfs", 0, "")
	mount("tmpfs", locate("/sys/fs/cgroup"), "tmpfs", 0, "mode=755")
	for _, m := range cgroups {
		mkdir(locate(m.Mountpoint))
		var options []string // controllers, and the name of a hierarchy without any
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			if m.FSType == "cgroup" && option != "rw" && option != "ro" {
				options = append(options, option)
			}
		}
		mount(m.FSType, locate(m.Mountpoint), m.FSType, 0, strings.Join(options, ","))
	}
	mount("/dev", locate("/dev"), "", unix.MS_BIND|unix.MS_REC, "")
	tmpfs("/dev/shm", "1777")
	mkdir(locate("/chaos/old"))
	if failed != nil {
		return failed
	}
	if err := unix.PivotRoot(root, locate("/chaos/old")); err != nil {
		return fmt.Errorf("change to the root file system: %w", err)
	}
	// The root of a usual host is shared: a mount that a program makes elsewhere would then appear here.
	mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
	return errors.Join(failed, os.Chdir("/"), unix.Unmount("/chaos/old", unix.MNT_DETACH), os.Remove("/chaos/old"))
}

// loopback starts the interface lo.
func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	return nil
}
