package managed_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func session(t *testing.T) engine.Session {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces")
	}
	return enginetest.Session(t, oci.LauncherOptions)
}

// daemon starts a shell script as a daemon. The daemon is ready when it has opened its FIFO for writing.
func daemon(t *testing.T, s engine.Session, script string) managed.Config {
	t.Helper()
	fifo := filepath.Join(s.State, "ready")
	if err := unix.Mkfifo(fifo, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	sh, err := exec.LookPath("sh")
	must.Do(t, err)
	return managed.Config{
		Name: "script", Args: []string{sh, "-c", script}, Env: []string{"FIFO=" + fifo, "PROBE=" + s.Probe},
		Ready: func(ctx context.Context) error {
			// The FIFO is opened for both directions, so that neither end waits for the other.
			f, err := os.OpenFile(fifo, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			stop := context.AfterFunc(ctx, func() { _ = f.Close() })
			defer stop()
			line, err := bufio.NewReader(f).ReadString('\n')
			if err == nil && line != "ready\n" {
				err = fmt.Errorf("the daemon wrote %q", line)
			}
			return err
		},
	}
}

func start(t *testing.T, s engine.Session, c managed.Config) *managed.Daemon {
	t.Helper()
	d, err := managed.Start(t.Context(), s, c)
	must.Do(t, err)
	t.Cleanup(func() { enginetest.Check(t, d.Stop(t.Context())) })
	return d
}

// restart kills a daemon and starts it again. It returns the processes of the killed one.
func restart(t *testing.T, d *managed.Daemon) []int {
	t.Helper()
	pids := d.Daemon().PIDs
	must.Do(t, unix.Kill(pids[0], unix.SIGKILL))
	d.WaitEnd()
	must.Do(t, d.Revive(t.Context()))
	return pids
}

// content returns a file of a daemon's data.
func content(t *testing.T, d *managed.Daemon, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.Dirs().Data, name))
	must.Do(t, err)
	return strings.TrimSpace(string(text))
}

// The daemon does not see the host's /run, /var/lib and network, and the host does not see the daemon's.
//
// Invariant registry-private.
// Invariant daemon-namespaces.
func TestDaemonIsIsolated(t *testing.T) {
	s := session(t)
	mounts := text("/proc/self/mounts")
	d := start(t, s, daemon(t, s, `
		ls /run >"$HOME/run"
		ls /var/lib >"$HOME/lib"
		mkdir /run/netns /run/containerd /var/lib/touchstone-test
		mount -t tmpfs tmpfs /mnt
		readlink /proc/self/ns/net >"$HOME/net"
		: >"$HOME/served"
		"$PROBE" serve >>"$HOME/served" &
		echo ready >"$FIFO"
		wait`))
	for name := range strings.FieldsSeq(content(t, d, "run")) {
		if name != "systemd" && name != "resolvconf" && name != "NetworkManager" {
			t.Errorf("the daemon sees /run/%s of the host", name)
		}
	}
	if namespace, err := os.Readlink("/proc/self/ns/net"); err != nil || namespace == content(t, d, "net") {
		t.Errorf("the daemon is in the host's network %s (%v)", namespace, err)
	}
	if table := text("/proc/self/mounts"); table != mounts {
		t.Errorf("the host's mounts have changed:\n%s\nbefore:\n%s", table, mounts)
	}
	if listing := content(t, d, "lib"); listing != "" {
		t.Errorf("the daemon sees %s of the host's /var/lib", listing)
	}
	if _, err := os.Stat("/var/lib/touchstone-test"); err == nil {
		t.Error("a file that the daemon makes in /var/lib is on the host")
	}

	// The daemon's network can be reached only through the daemon.
	address := "127.0.0.1:" + strconv.Itoa(servedPort(t, filepath.Join(d.Dirs().Data, "served")))
	client := http.Client{Transport: &http.Transport{DialContext: d.Dial, DisableKeepAlives: true}}
	if body := get(t, client, "http://"+address); body != probe.ServeBody {
		t.Errorf("a server in the daemon's network returns %q", body)
	}
	if _, err := (&http.Client{Transport: &http.Transport{Proxy: nil}}).Get("http://" + address); err == nil {
		t.Error("a server in the daemon's network can be reached from the host's")
	}
	// The registry serves the daemon's network under the same address.
	path, _, _ := strings.Cut(strings.TrimPrefix(s.Registry.Probe(), s.Registry.Addr()+"/"), ":")
	if body := get(t, client, "http://"+s.Registry.Addr()+"/v2/"+path+"/manifests/latest"); !strings.Contains(body, "schemaVersion") {
		t.Errorf("the registry returns %q in the daemon's network", body)
	}
	// No engine of the user needs the registry, so it does not listen on the host.
	if connection, err := net.Dial("tcp4", s.Registry.Addr()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the registry on the host: %v, %v; want a refused connection", connection, err)
	}

	service := d.Daemon()
	if len(service.PIDs) != 2 { // the shell and its child
		t.Errorf("the daemon's processes are %v, want the shell and its child", service.PIDs)
	}
	if service.Cgroup != nil {
		usage, err := service.Cgroup.Usage()
		if err != nil || usage.CPU <= 0 {
			t.Errorf("the usage of its cgroup is %+v, %v", usage, err)
		}
	}
	enginetest.Check(t, d.Stop(t.Context()))
	for _, pid := range service.PIDs {
		if lives(t, pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	for _, dir := range []string{d.Dirs().State, d.Dirs().Data} {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", dir, err)
		}
	}
}

// Files without end in a daemon's state fill a file system in memory of limited size. The host does not see them, and a restarted daemon has an
// empty state.
func TestDaemonMemoryIsLimited(t *testing.T) {
	s := session(t)
	s.Containers = 20
	state := filepath.Join(s.State, "script", "state")
	c := daemon(t, s, `
		if [ -e "$HOME/used" ]; then ls `+state+` >"$HOME/again"; fi
		for dir in `+state+` /run /var/lib; do
			cat /dev/zero >$dir/log
			stat -c %s $dir/log
			rm $dir/log
		done >"$HOME/used"
		echo >`+state+`/file
		echo ready >"$FIFO"
		exec sleep 1000`)
	c.Memory = []string{state}
	d := start(t, s, c)
	const limit = 48<<20 + 20*512<<10
	sizes := strings.Fields(content(t, d, "used"))
	for _, size := range sizes {
		if n, err := strconv.Atoi(size); err != nil || n > limit || n < limit/2 {
			t.Errorf("the daemon wrote %s bytes into a directory in memory (%v), want about %d", size, err, limit)
		}
	}
	if len(sizes) != 3 {
		t.Errorf("the daemon wrote files of the sizes %q, want three", sizes)
	}
	if _, err := os.Stat(filepath.Join(state, "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the host sees the daemon's state: %v", err)
	}
	restart(t, d)
	if state := content(t, d, "again"); state != "" {
		t.Errorf("the restarted daemon's state has %q, want nothing", state)
	}
}

// A mount of a daemon reaches a mount namespace that a child has made before, only if the configuration shares mounts. It never
// reaches the host.
func TestSharedMounts(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		t.Run(strconv.FormatBool(isShared), func(t *testing.T) {
			s := session(t)
			mounts := text("/proc/self/mounts")
			c := daemon(t, s, `
				mkdir "$HOME/plain" /run/private
				mkfifo "$HOME/go" "$HOME/made"
				unshare --mount --propagation slave sh -c 'echo >"$HOME/made"; read line <"$HOME/go"; cat /proc/self/mounts >"$HOME/child"' &
				read line <"$HOME/made"
				mount -t tmpfs later "$HOME/plain"
				mount -t tmpfs later /run/private
				echo >"$HOME/go"
				wait
				echo ready >"$FIFO"
				exec sleep 1000`)
			c.SharedMounts = isShared
			d := start(t, s, c)
			child := content(t, d, "child")
			want := 0
			if isShared {
				want = 2
			}
			if got := strings.Count(child, "later "); got != want {
				t.Errorf("the child sees %d of the daemon's two later mounts, want %d:\n%s", got, want, child)
			}
			if table := text("/proc/self/mounts"); table != mounts {
				t.Errorf("the host's mounts have changed:\n%s\nbefore:\n%s", table, mounts)
			}
		})
	}
}

// The end of a mount namespace ends the processes that commands have left in it, and their children.
func TestMountsCloseEndsOrphans(t *testing.T) {
	s := session(t)
	m, err := managed.HoldMounts(t.Context(), s, "test", nil, nil)
	must.Do(t, err)
	file := filepath.Join(t.TempDir(), "orphans")
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `setsid sh -c 'sleep 1000 & echo $$ $! >"$0.new" && mv "$0.new" "$0"; wait' "$0" </dev/null >/dev/null 2>&1 &
		while ! [ -e "$0" ]; do sleep 0.01; done`, file)
	m.Enter(cmd)
	must.Do(t, s.Launcher.Run(t.Context(), cmd))
	text, err := os.ReadFile(file)
	must.Do(t, err)
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil || !lives(t, pid) {
			t.Fatalf("process %q, which the command left behind, does not run: %v", field, err)
		}
		pids = append(pids, pid)
	}
	for range 2 { // idempotent
		must.Do(t, m.Close(t.Context()))
	}
	for _, pid := range pids {
		if lives(t, pid) {
			t.Errorf("process %d is left in the mount namespace", pid)
		}
	}
	if len(pids) != 2 {
		t.Errorf("the command left %d processes behind, want 2", len(pids))
	}
}

// headlessVariable makes this program end its first thread, while another thread waits. It holds the file to write meanwhile.
const headlessVariable = "TOUCHSTONE_TEST_HEADLESS"

//nolint:gochecknoinits // only the initialization of packages runs on the first thread for certain
func init() {
	file := os.Getenv(headlessVariable)
	if file == "" {
		return
	}
	runtime.LockOSThread()
	go func() {
		for !strings.Contains(text("/proc/self/stat"), ") Z ") {
			runtime.Gosched()
		}
		_ = os.WriteFile(file, nil, 0o600)
		_, _ = unix.Ppoll(nil, nil, nil) // forever
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // not RawSyscall, which would take a processor of Go along: the next garbage collection would wait for it
}

func text(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// A process whose first thread has exited is in the mount namespace as long as another thread runs.
func TestMountsCloseEndsThreads(t *testing.T) {
	s := session(t)
	m, err := managed.HoldMounts(t.Context(), s, "test", nil, nil)
	must.Do(t, err)
	self, err := os.Executable()
	must.Do(t, err)
	file := filepath.Join(t.TempDir(), "exited")
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), headlessVariable+"="+file)
	m.Enter(cmd)
	done, err := s.Launcher.Start(cmd)
	must.Do(t, err)
	for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
		runtime.Gosched()
	}
	must.Do(t, m.Close(t.Context()))
	if err := unix.Kill(cmd.Process.Pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Fatalf("the process is left in the mount namespace: %v", err)
	}
	if exit := <-done; exit.Status.Signal() != unix.SIGKILL {
		t.Errorf("its exit is %v, want killed by signal 9", exit.Status)
	}
}

// A process that waits in the kernel for a file server ends the wait for the end of its mount namespace with an error.
func TestMountsCloseWithStuckProcess(t *testing.T) {
	files := enginetest.Serve(t, "#!/bin/sh\n")
	s := session(t)
	t.Cleanup(files.Release) // before the session's cgroup is removed
	m, err := managed.HoldMounts(t.Context(), s, "test", nil, nil)
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `exec "$0"`, files.Path)
	m.Enter(cmd)
	files.Stall()
	go func() {
		<-files.Stalled
		cancel()
	}()
	var stuckErr *process.StuckError
	if err := s.Launcher.Run(ctx, cmd); !errors.As(err, &stuckErr) {
		t.Fatalf("Run() = %v, want a StuckError", err)
	}
	previous := managed.SetStopLimit(100 * time.Millisecond)
	err = m.Close(t.Context())
	managed.SetStopLimit(previous)
	if err == nil || !strings.Contains(err.Error(), "has not exited") {
		t.Errorf("Close() = %v beside a process that cannot be killed", err)
	}
	files.Release()
	if err := m.Close(t.Context()); err != nil {
		t.Errorf("Close() = %v once the process has exited", err)
	}
}

// lives reports whether a process runs. A zombie does not.
func lives(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false
	}
	must.Do(t, err)
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// servedPort waits for the first line of the probe's command serve.
func servedPort(t *testing.T, file string) int {
	t.Helper()
	for {
		if line, _, ok := strings.Cut(text(file), "\n"); ok {
			port, err := probe.ParseServing(line)
			must.Do(t, err)
			return port
		}
		runtime.Gosched()
	}
}

func get(t *testing.T, client http.Client, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.Do(t, err)
	response, err := client.Do(request)
	must.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must.Do(t, err)
	return string(body)
}

// A daemon and its children stay on the session's CPUs for engines, also after a restart.
func TestEngineCPUs(t *testing.T) {
	s := session(t)
	if s.Cgroups == nil {
		t.Skip("needs the right to make cgroups")
	}
	if _, ok := s.Cgroups.Controller("cpuset"); !ok {
		t.Skip("the host has no cgroup controller cpuset")
	}
	s.EngineCPUs = "0"
	d := start(t, s, daemon(t, s, `
		"$PROBE" cpus >"$HOME/cpus"
		echo ready >"$FIFO"
		exec "$PROBE" pause`))
	stays := func() {
		t.Helper()
		if cpus := content(t, d, "cpus"); cpus != s.EngineCPUs {
			t.Errorf("children of the daemon may run on the CPUs %s, want %s", cpus, s.EngineCPUs)
		}
		must.Do(t, os.Remove(filepath.Join(d.Dirs().Data, "cpus")))
	}
	stays()
	restart(t, d)
	stays()
	if notes := strings.Join(d.Notes(), "; "); !strings.Contains(notes, "CPUs 0") {
		t.Errorf("the notes about its CPUs are %q", notes)
	}

	s.EngineCPUs = "8191"
	if _, err := managed.Start(t.Context(), s, managed.Config{Name: "other", Args: []string{"/bin/true"}}); err == nil || !strings.Contains(err.Error(), "8191") {
		t.Errorf("Start on a missing CPU: %v", err)
	}
	s.Cgroups = nil
	if _, err := managed.Start(t.Context(), s, managed.Config{Name: "other", Args: []string{"/bin/true"}}); err == nil || !strings.Contains(err.Error(), "may not make cgroups") {
		t.Errorf("Start without cgroups: %v", err)
	}
}

// The error of a daemon that does not start contains the reason, and nothing is left behind.
func TestStartFails(t *testing.T) {
	s := session(t)
	for _, c := range []struct {
		name, script string
		says         []string
	}{
		{"it ends", `echo "the port is taken"; exit 3`, []string{"script: ", "ended with exit code 3", "the end of its log:\nthe port is taken"}},
		{"it ends without a word", `exit 3`, []string{"ended with exit code 3"}},
		{"it ends after many words", `yes "it rains" | head -n 100000; echo "the last word"; exit 1`, []string{"it rains\nthe last word"}},
		{"it is not ready", `echo "half way"; echo no >"$FIFO"; sleep 1000`, []string{"start script: ", `the daemon wrote "no\n"`, "half way"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := managed.Start(t.Context(), s, daemon(t, s, c.script))
			if err == nil {
				t.Fatal("Start succeeds")
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q does not contain %q", err, part)
				}
			}
			if len(err.Error()) > 4096 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			for _, dir := range []string{s.State, s.Data} {
				if _, err := os.Stat(filepath.Join(dir, "script")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("its directory is left behind in %s: %v", dir, err)
				}
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := daemon(t, s, "sleep 1000")
		c.Ready = func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		if _, err := managed.Start(ctx, s, c); !errors.Is(err, context.Canceled) {
			t.Errorf("Start: %v, want a cancellation", err)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		c := daemon(t, s, "")
		c.Args = []string{"/no/such/daemon"}
		if _, err := managed.Start(t.Context(), s, c); err == nil || !strings.Contains(err.Error(), "daemon: run /no/such/daemon: ENOENT") {
			t.Errorf("Start: %v", err)
		}
	})
}

// A daemon that does not answer after a timeout is killed and started once more.
//
// Invariant hanging-daemon: A private daemon that does not answer after a timeout is killed, and started once more.
func TestRecover(t *testing.T) {
	s := session(t)
	c := daemon(t, s, `echo ready >"$FIFO"; exec sleep 1000`)
	answer := errors.New("an answer with an error")
	c.Answers = func(ctx context.Context) error {
		if answer == nil {
			<-ctx.Done()
			return ctx.Err()
		}
		return answer
	}
	d := start(t, s, c)
	first := d.Daemon().PIDs[0]
	if isKilled, err := d.Recover(t.Context()); isKilled || err != nil || d.Daemon().PIDs[0] != first {
		t.Errorf("Recover of a daemon that answers: %v, %v, process %d after %d", isKilled, err, d.Daemon().PIDs[0], first)
	}
	answer = nil
	previous := managed.SetAnswerLimit(50 * time.Millisecond) // from here on the daemon never answers
	t.Cleanup(func() { managed.SetAnswerLimit(previous) })
	must.Do(t, unix.Kill(first, unix.SIGSTOP))
	deadCtx, cancel := context.WithCancel(t.Context())
	cancel()
	if isKilled, err := d.Recover(deadCtx); isKilled || !errors.Is(err, context.Canceled) || d.Err() != nil {
		t.Errorf("Recover with a cancelled context: %v, %v, and the daemon: %v", isKilled, err, d.Err())
	}
	if isKilled, err := d.Recover(t.Context()); !isKilled || err != nil || d.Daemon().PIDs[0] == first {
		t.Errorf("Recover of a daemon that hangs: %v, %v, process %d after %d", isKilled, err, d.Daemon().PIDs[0], first)
	}
	if isKilled, err := d.Recover(t.Context()); !isKilled || err == nil || !strings.Contains(err.Error(), "restarted once before") {
		t.Errorf("Recover for the second time: %v, %v", isKilled, err)
	}
}

// A process that starts while the launcher cannot leave the daemon's cgroup is killed, and stays known to the daemon.
func TestLauncherStaysInCgroup(t *testing.T) {
	s := session(t)
	if s.Cgroups == nil {
		t.Skip("needs permission to create cgroups")
	}
	leave := s.SetCgroupParent
	// The copy of a machine has the real cgroups, and its own file with the cgroups of this process.
	root := t.TempDir()
	file := filepath.Join(root, "proc/self/cgroup")
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.Symlink("/sys", filepath.Join(root, "sys")))
	for _, name := range []string{"cgroup", "mountinfo"} {
		text, failed := os.ReadFile(filepath.Join("/proc/self", name))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(filepath.Dir(file), name), text, 0o600))
	}
	must.Do(t, err)
	if s.Cgroups, err = cgroup.Detect(root); err != nil {
		t.Fatal(err)
	}
	d := start(t, s, daemon(t, s, `echo ready >"$FIFO"; exec sleep 1000`))
	was := d.Daemon().PIDs[0]
	must.Do(t, errors.Join(unix.Kill(was, unix.SIGTERM), os.Remove(file)))
	d.WaitEnd()
	if err := d.Revive(t.Context()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "find the cgroups of this process") {
		t.Errorf("Revive: %v", err)
	}
	must.Do(t, leave(""))
	if pid := d.Daemon().PIDs[0]; pid == was || lives(t, pid) {
		t.Errorf("the daemon's process is %d, which runs: %v; want another one than %d that has exited", pid, lives(t, pid), was)
	}
	if err := d.Err(); err == nil || !strings.Contains(err.Error(), "was killed by signal 9") {
		t.Errorf("the exit of the daemon: %v", err)
	}
}

func TestShared(t *testing.T) {
	s := session(t)
	var pool managed.Shared[*managed.Daemon]
	end := func(d *managed.Daemon) error { return d.Stop(context.Background()) }
	starts := 0
	begin := func(ctx context.Context) (*managed.Daemon, error) {
		starts++
		return managed.Start(ctx, s, daemon(t, s, `echo ready >"$FIFO"; exec sleep 1000`))
	}
	var releases []func() error
	var last *managed.Daemon
	for range 3 {
		d, release, err := pool.Acquire(t.Context(), begin, end)
		must.Do(t, err)
		if last != nil && d != last {
			t.Error("the users have different daemons")
		}
		last, releases = d, append(releases, release)
	}
	for i, release := range releases {
		for range 2 { // idempotent
			enginetest.Check(t, release())
		}
		if hasExited := last.Err() != nil; hasExited != (i == len(releases)-1) {
			t.Errorf("after release %d of %d the daemon has exited: %v", i+1, len(releases), hasExited)
		}
	}
	if starts != 1 {
		t.Errorf("the daemon was started %d times, want once", starts)
	}

	var failures managed.Shared[*managed.Daemon]
	fails := func(ctx context.Context) (*managed.Daemon, error) {
		starts++
		return managed.Start(ctx, s, daemon(t, s, "exit 1"))
	}
	for range 2 {
		if _, _, err := failures.Acquire(t.Context(), fails, end); err == nil {
			t.Error("Acquire succeeds although the daemon fails")
		}
	}
	if starts != 2 {
		t.Errorf("a failed daemon was started again: %d starts in all", starts)
	}
}

// Programs behind links in /run and /var/lib keep the names of their links, and PATH leads to them.
//
// Invariant linked-programs.
func TestProgramsBehindLinks(t *testing.T) {
	s := session(t)
	store := t.TempDir()
	run, err := os.MkdirTemp("/run", "touchstone-test-") //nolint:usetesting // a private namespace covers this directory
	must.Do(t, err)
	lib, err := os.MkdirTemp("/var/lib", "touchstone-test-") //nolint:usetesting // the same
	must.Do(t, err)
	t.Cleanup(func() { enginetest.Check(t, errors.Join(os.RemoveAll(run), os.RemoveAll(lib))) })
	system, data := filepath.Join(run, "current-system"), filepath.Join(lib, "data")
	script := "#!/bin/sh\necho \"${0##*/}\"\n"
	for _, err := range []error{
		os.MkdirAll(filepath.Join(store, "sw/bin"), 0o755), os.WriteFile(filepath.Join(store, "sw/bin/helper"), []byte(script), 0o755),
		os.Symlink(store, system),
		os.MkdirAll(filepath.Join(data, "5a1b/bin"), 0o755), os.WriteFile(filepath.Join(data, "5a1b/bin/multicall"), []byte(script), 0o755),
		os.Symlink("multicall", filepath.Join(data, "5a1b/bin/containerd")), os.Symlink("5a1b", filepath.Join(data, "current")),
		os.WriteFile(filepath.Join(lib, "hidden"), nil, 0o600),
	} {
		must.Do(t, err)
	}
	t.Setenv("PATH", filepath.Join(system, "sw/bin")+":"+os.Getenv("PATH"))
	program := filepath.Join(data, "current/bin/containerd")
	c := daemon(t, s, `
		{ helper; `+program+`; ls `+lib+`; readlink `+system+`; } >"$HOME/seen" 2>&1
		echo ready >"$FIFO"
		exec sleep 1000`)
	c.Needs = []string{program}
	d := start(t, s, c)
	if output, want := content(t, d, "seen"), "helper\ncontainerd\ndata\n"+store; output != want {
		t.Errorf("the daemon's programs print %q, want %q", output, want)
	}
}
