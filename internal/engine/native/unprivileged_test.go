package native_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/ports"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// lab is the workload image with an engine for unprivileged processes, and with the ordinary one.
type lab struct {
	engine.Session
	unprivileged, ordinary engine.Engine
	withoutCgroups         engine.Engine // unprivileged too
	containers             int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	rootfs, _ := enginetest.Workload(t)
	l := &lab{Session: enginetest.Session(t, oci.LauncherOptions)}
	l.Rootfs = rootfs
	for driver, e := range map[native.Driver]*engine.Engine{{Unprivileged: true}: &l.unprivileged, {}: &l.ordinary} {
		var err error
		*e, err = driver.Open(t.Context(), target.Target{Engine: target.Native}, l.Session)
		enginetest.Require(t, target.Native, err)
	}
	var err error
	bare := l.Session
	bare.Cgroups = nil
	l.withoutCgroups, err = native.Driver{Unprivileged: true}.Open(t.Context(), target.Target{Engine: target.Native}, bare)
	enginetest.Require(t, target.Native, err)
	return l
}

func (l *lab) spec(args ...string) engine.Spec {
	l.containers++
	return spec(l.Session, l.containers, args...)
}

// run returns the output and the exit of a program.
func (l *lab) run(t *testing.T, e engine.Engine, s engine.Spec) (string, engine.Exit) {
	t.Helper()
	var out bytes.Buffer
	s.Process.Stdout, s.Process.Stderr = &out, &out
	c, err := e.Create(t.Context(), s)
	must.Do(t, err)
	exit := engine.Exit{Code: -1}
	if err = c.Start(t.Context()); err == nil {
		exit, err = c.Wait(t.Context())
	}
	if left := c.Delete(t.Context()); err != nil || left != nil {
		t.Fatal(err, left)
	}
	return out.String(), exit
}

// shell is a script for busybox, whose programs are the functions b and try.
func (l *lab) shell(script string) engine.Spec {
	return l.spec("/bin/busybox", "sh", "-c", "b() { /bin/busybox \"$@\"; }\ntry() { \"$@\" 2>/dev/null && echo \"possible: $*\"; }\n"+script)
}

// TestUnprivileged is the confinement of the programs of touchstone peer, which every client of them controls.
//
// Invariant server-rights: A program of `touchstone peer` has no right on its machine, and sees only the image (ADR 40).
func TestUnprivileged(t *testing.T) {
	l := newLab(t)
	secret := hostFile(t)
	t.Run("rights", func(t *testing.T) { l.testRights(t) })
	t.Run("files", func(t *testing.T) { l.testFiles(t, secret) })
	t.Run("limits", func(t *testing.T) { l.testLimits(t, l.unprivileged) })
	t.Run("limits without cgroups", func(t *testing.T) { l.testLimits(t, l.withoutCgroups) })
	t.Run("netserver", func(t *testing.T) { l.testNetserver(t, secret) })
}

// hostFile makes a file of the host that all its users may read. Its name is short, because netperf sends no long names.
func hostFile(t *testing.T) string {
	t.Helper()
	name := "/tmp/" + rand.Text()[:4]
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	must.Do(t, err)
	t.Cleanup(func() { _ = os.Remove(name) })
	_, err = f.WriteString(strings.Repeat("a file of the host\n", 10000))
	must.Do(t, errors.Join(err, f.Chmod(0o644), f.Close()))
	return name
}

// childWith returns the child of this program with a command line.
func childWith(t *testing.T, argv ...string) (pid int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	must.Do(t, err)
	parent := fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())
	for _, file := range files {
		status, _ := os.ReadFile(file)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if strings.Contains(string(status), parent) && string(line) == strings.Join(argv, "\x00")+"\x00" {
			pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	if pid == 0 {
		t.Fatalf("no child is %q", argv)
	}
	return pid
}

// testRights checks the IDs, the capabilities and the namespaces of a process, as the host sees them.
func (l *lab) testRights(t *testing.T) {
	enginetest.Running(t, l.unprivileged, l.spec(probe.Ready()...))
	proc := fmt.Sprintf("/proc/%d", childWith(t, probe.Ready()...))
	status, err := os.ReadFile(proc + "/status")
	must.Do(t, err)
	const noCaps = "0000000000000000"
	user := "\t65534\t65534\t65534\t65534"
	wants := []string{"CapInh:\t" + noCaps, "CapPrm:\t" + noCaps, "CapEff:\t" + noCaps, "CapBnd:\t" + noCaps, "CapAmb:\t" + noCaps, "NoNewPrivs:\t1"}
	if os.Geteuid() == 0 {
		wants = append(wants, "Uid:"+user, "Gid:"+user, "Groups:\t ")
	}
	for _, want := range wants {
		if !slices.Contains(strings.Split(string(status), "\n"), want) {
			t.Errorf("/proc/self/status has no line %q:\n%s", want, status)
		}
	}
	for _, kind := range []string{"ipc", "mnt", "pid", "uts"} {
		ours, _ := os.Readlink("/proc/self/ns/" + kind)
		if namespace, err := os.Readlink(proc + "/ns/" + kind); err != nil || namespace == ours {
			t.Errorf("its namespace %s is %s, %v, and the host's is %s", kind, namespace, err, ours)
		}
	}
	if got, err := rootOfNamespace(proc + "/ns/mnt"); err != nil || !slices.Contains(got, "probe") || slices.Contains(got, "boot") {
		t.Errorf("the root of the mount namespace has %v, %v; want only the image", got, err)
	}
}

// testFiles tries to read the host's files and to write any file.
func (l *lab) testFiles(t *testing.T, secret string) {
	out, _ := l.run(t, l.unprivileged, l.shell(fmt.Sprintf(`
for file in %[1]s /proc/self/root%[1]s /proc/1/root%[1]s /proc/%[2]d/root%[1]s /proc/%[2]d/environ ../../../..%[1]s; do try b cat "$file"; done
for file in / /bin /data /dev /dev/shm /etc /proc /sys /tmp /var /usr; do try b touch "$file/x"; done
for file in /bin/busybox /probe /dev/tty /dev/pts/0 /dev/ptmx; do (: >>$file) 2>/dev/null && echo "possible: write $file"; done
try b mount -t proc none /proc
try b mount -t tmpfs none /tmp
try b chroot / /bin/busybox true
try b mknod /dev/disk b 8 0
try b hostname other
try b chown 0 /dev/null
try b kill -0 %[2]d
echo "in /proc: $(b ls /proc | b wc -l), in /sys: $(b ls /sys | b wc -l)"
b ls /dev | b tr '\n' ' '
b id -u; b id -g
echo x >/dev/null && b head -c 4 /dev/zero | b wc -c
`, secret, os.Getpid())))
	user := "65534\n65534\n"
	if os.Geteuid() != 0 {
		user = "0\n0\n" // of a user namespace
	}
	if want := "in /proc: 0, in /sys: 0\nfull null random urandom zero " + user + "4\n"; out != want {
		t.Errorf("the program's output is\n%swant\n%s", out, want)
	}
	spec := l.shell(`
(: >/tmp/x) && b cp /bin/busybox /tmp/program && echo writes
try /tmp/program true
try b dd if=/dev/zero of=/tmp/large bs=1048576 count=17
try b touch /dev/x /x
`)
	spec.Mounts = []engine.Mount{{Target: "/tmp"}}
	if out, _ := l.run(t, l.unprivileged, spec); out != "writes\n" {
		t.Errorf("with /tmp the program's output is\n%s", out)
	}
	writable := l.spec(probe.Ready()...)
	writable.Writable = true
	if c, err := l.unprivileged.Create(t.Context(), writable); !engine.Unsupported(err) {
		t.Errorf("Create with a writable root = %v, %v", c, err)
	}
}

// testLimits exceeds the limits of memory, processes and files.
func (l *lab) testLimits(t *testing.T, e engine.Engine) {
	allocate := func(mebibytes int) engine.Exit {
		size := strconv.Itoa(mebibytes << 20)
		_, exit := l.run(t, e, l.spec("/bin/busybox", "dd", "if=/dev/zero", "of=/dev/null", "count=1", "bs="+size))
		return exit
	}
	if exit := allocate(100); !exit.OK() {
		t.Errorf("a program with 100 MiB exits with %v", exit)
	}
	if exit := allocate(300); exit.OK() {
		t.Error("a program with 300 MiB works")
	}
	notes := strings.Join(e.Info().Notes, "\n")
	for _, controller := range []string{"memory", "pids"} {
		if missing := e == l.withoutCgroups; missing && !strings.Contains(notes, "controller "+controller) {
			t.Errorf("without cgroups the notes are %q", notes)
		}
	}
	if os.Geteuid() == 0 || l.Cgroups != nil && e == l.unprivileged {
		out, _ := l.run(t, e, l.shell("trap 'kill $all' EXIT; for i in $(b seq 100); do /bin/busybox sleep 1000 & all=\"$all $!\"; echo started; done"))
		if n := strings.Count(out, "started"); n == 0 || n >= 64 || !strings.Contains(out, "can't fork") {
			t.Errorf("of 100 processes %d start:\n%s", n, out)
		}
	}
	if out, _ := l.run(t, e, l.shell("ulimit -n; try ulimit -n 257")); out != "256\n" {
		t.Errorf("the limit of open files is %s", out)
	}
}

// victim is the process of a host's daemon that runs as the user nobody. A process of the same user may open its /proc/PID/root.
func victim(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000") // the end of the test kills it
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the launcher may have reaped it
	return cmd.Process.Pid
}

// testNetserver is the attack with the stock client: it names a file that netserver reads and sends.
func (l *lab) testNetserver(t *testing.T, secret string) {
	host := victim(t)
	addr := ports.Free(t, 1)
	reads := func(file string) (ok bool, output string) {
		server := l.spec(remote.Netserver.Args(addr, "")...)
		server.Network = engine.HostNet
		c := enginetest.Running(t, l.unprivileged, server)
		if out, exit := l.run(t, l.ordinary, l.spec(probe.Reach(addr, time.Minute)...)); !exit.OK() {
			t.Fatalf("netserver is not reached: %v: %s", exit, out)
		}
		out, exit := l.run(t, l.ordinary, l.spec(programs.Netperf, "-4", "-H", "127.0.0.1", "-p", strconv.Itoa(int(addr.Port())), "-t", "TCP_MAERTS", "-l", "1", "-F", ","+file))
		must.Do(t, c.Delete(t.Context()))
		if strings.Contains(out, "must be less than") {
			t.Fatal(out)
		}
		return exit.OK(), out
	}
	if ok, out := reads("/bin/busybox"); !ok {
		t.Errorf("netserver does not read a file of the image, so the test shows nothing: %s", out)
	}
	for _, file := range []string{secret, fmt.Sprintf("/proc/%d/root%s", os.Getpid(), secret), fmt.Sprintf("/proc/%d/root%s", host, secret), "/proc/1/root/etc/passwd", "/proc/self/root" + secret} {
		if ok, _ := reads(file); ok {
			t.Errorf("a client of netserver reads %s", file)
		}
	}
}
