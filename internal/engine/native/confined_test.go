package native_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/thread"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// containersCapabilities is the mask of the capabilities that all container engines grant by default: chown, dac_override, fowner, fsetid,
// kill, setgid, setuid, setpcap, net_bind_service and sys_chroot.
const containersCapabilities = "00000000000405fb"

// wantConfined checks the text of /proc/PID/status.
func wantConfined(t *testing.T, status string) {
	t.Helper()
	for _, want := range []string{
		"CapInh:\t0000000000000000", "CapPrm:\t" + containersCapabilities, "CapEff:\t" + containersCapabilities,
		"CapBnd:\t" + containersCapabilities, "CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
	} {
		if !slices.Contains(strings.Split(status, "\n"), want) {
			t.Errorf("/proc/self/status has no line %q:\n%s", want, status)
		}
	}
}

// The process has the rights of a container's process, also the process of Exec.
//
// Invariant image-rights: A program of an image has no rights of root on the host, on native too: it sees no process and no IPC of the host
// (ADR 39).
func TestProcessIsConfined(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: another user has no rights to lose")
	}
	s, e := open(t)
	c := enginetest.Running(t, e, spec(s, 1, probe.Ready()...))
	pids := processes(t, s, c)
	if len(pids) != 1 || pids[0] == os.Getpid() {
		t.Fatalf("the processes of the container's cgroup are %v, want one", pids)
	}
	proc := fmt.Sprintf("/proc/%d", pids[0])
	status, err := os.ReadFile(proc + "/status")
	must.Do(t, err)
	wantConfined(t, string(status))
	entries, err := os.ReadDir(proc + "/root/dev")
	must.Do(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"; strings.Join(names, " ") != want {
		t.Errorf("/dev has %v, want %s", names, want)
	}
	// A process that leaves its root by a second chroot is in the root of the mount namespace.
	if got, err := rootOfNamespace(proc + "/ns/mnt"); err != nil || !slices.Contains(got, "probe") || slices.Contains(got, "boot") {
		t.Errorf("the root of the mount namespace has %v, %v; want only the image", got, err)
	}
}

// rootOfNamespace lists the root directory of a mount namespace, on a thread that ends with the call.
func rootOfNamespace(file string) (names []string, err error) {
	done := make(chan struct{})
	thread.Go(func() {
		defer close(done)
		var ns *os.File
		if ns, err = os.Open(file); err != nil {
			return
		}
		defer func() { _ = ns.Close() }()
		if err = unix.Unshare(unix.CLONE_FS); err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS)
		}
		if err != nil {
			return
		}
		var entries []os.DirEntry
		entries, err = os.ReadDir("/")
		for _, e := range entries {
			names = append(names, e.Name())
		}
	})
	<-done
	return names, err
}

// A program of an untrusted image tries to get the rights of root on the host.
//
// Invariant image-rights.
func TestImageHasNoRightsOnTheHost(t *testing.T) {
	rootfs, _ := enginetest.Workload(t)
	s, e := open(t)
	script := `b=/bin/busybox
$b cat /proc/self/status
try() { "$@" 2>&1 && echo "possible: $*"; }
try $b mount -t tmpfs none /tmp
try $b mknod /tmp/disk b 8 0
try $b chroot / $b mount -o remount,rw /
for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/1/oom_score_adj /sys/kernel/profiling; do
	(: >>$file) 2>/dev/null && echo "possible: write $file"
done
for file in /sys/fs/cgroup/* /sys/kernel/debug/* /proc/sys/fs/binfmt_misc/*; do
	test -e $file && echo "possible: see $file"
done
$b find /dev -type b
echo x >/dev/null && $b head -c 4 /dev/zero | $b wc -c && echo x >/dev/shm/x && echo works >/dev/stdout
`
	sp := spec(s, 1, probe.Ready()...)
	sp.Rootfs = rootfs
	c := enginetest.Running(t, e, sp)
	var output bytes.Buffer
	process := engine.Process{Args: []string{"/bin/busybox", "sh", "-c", script}, Stdout: &output, Stderr: &output}
	exit, err := c.(engine.Execer).Exec(t.Context(), process)
	if err != nil || !exit.OK() {
		t.Errorf("the script exited with %v, %v", exit, err)
	}
	out := output.String()
	if os.Geteuid() == 0 {
		wantConfined(t, out)
	}
	if strings.Contains(out, "possible: ") || strings.Contains(out, "not found") || !strings.HasSuffix(out, "4\nworks\n") {
		t.Errorf("the program's output is\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(rootfs, "dev/null")); err == nil {
		t.Error("the image has devices on the host")
	}
}
