package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/record"
)

// Spec describes a container of a session that runs until it is killed. The name must be unique in the session.
func Spec(s engine.Session, name string) engine.Spec {
	return engine.Spec{
		ID: engine.Prefix + s.RunID + "-" + name, Rootfs: s.Rootfs, Image: s.Registry.Probe(),
		Process: engine.Process{Args: probe.Ready()},
	}
}

// Opener opens targets: a driver, or all drivers together.
type Opener interface {
	Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error)
}

// Open opens a target, which is closed at the end of the test. An error goes to Require.
func Open(t *testing.T, d Opener, name string, s engine.Session) engine.Engine {
	t.Helper()
	e, err := open(t, d, name, s)
	Require(t, name, err)
	return e
}

// mostAttempts is the number of attempts of Attempt, which is the number in a run.
const mostAttempts = 3

// Attempt opens a target as a run does: a target whose first container does not work is opened again if the error may pass, three times in all. The caller closes
// the engine, and gives an error to Require.
func Attempt(t testing.TB, d Opener, name string, s engine.Session) (engine.Engine, error) {
	t.Helper()
	for n := 1; ; n++ {
		e, err := d.Open(t.Context(), Parse(t, name), s)
		var openErr *engine.OpenError
		if n == mostAttempts || t.Context().Err() != nil || !errors.As(err, &openErr) || !openErr.Transient {
			return e, err
		}
		record.Repeat(t, fmt.Sprintf("attempt %d of %d to open %s: %v", n, mostAttempts, name, err))
	}
}

// Hold keeps the daemon of a driver running to the end of the test, by an open target. Other targets of the session share the
// daemon. If the target cannot run, Hold does nothing, and the others start their own daemon.
func Hold(t *testing.T, d Opener, name string, s engine.Session) {
	t.Helper()
	if _, err := open(t, d, name, s); err != nil {
		t.Logf("hold the daemon by %s: %v", name, err)
	}
}

func open(t *testing.T, d Opener, name string, s engine.Session) (engine.Engine, error) {
	t.Helper()
	e, err := Attempt(t, d, name, s)
	if err == nil {
		t.Cleanup(func() { Check(t, e.Close()) })
	}
	return e, err
}

// Check reports the error of a call that must work.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Launcher returns a launcher that ends with the test.
func Launcher(t *testing.T) *process.Launcher {
	t.Helper()
	l, err := process.New(process.Options{})
	must.Do(t, err)
	t.Cleanup(func() { Check(t, l.Close()) })
	return l
}

// Files writes files below a directory.
func Files(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

// Running makes and starts a container, and deletes it at the end of the test.
func Running(t *testing.T, e engine.Engine, spec engine.Spec) engine.Container {
	t.Helper()
	c, err := e.Create(t.Context(), spec)
	must.Do(t, err)
	t.Cleanup(func() { Check(t, c.Delete(context.WithoutCancel(t.Context()))) })
	must.Do(t, c.Start(t.Context()))
	return c
}

// Limits reads CPU quota, period and memory limit of one container, as the kernel spells them. pattern is the container's
// directory in each hierarchy, below the base of the session's cgroups. Without the controllers the test is skipped, or
// fails if MustRun names some target.
func Limits(t testing.TB, s engine.Session, pattern string) string {
	t.Helper()
	read := func(controller, v1, v2 string) string {
		m, ok := s.Cgroups.Controller(controller)
		switch {
		case ok:
		case os.Getenv(MustRun) != "":
			t.Fatalf("%s is set, and the host has no cgroup controller %s", MustRun, controller)
		default:
			record.Skip(t, "the host has no cgroup controller "+controller)
		}
		file := v1
		if m.V2 {
			file = v2
		}
		found, err := filepath.Glob(filepath.Join(m.Dir, s.Cgroups.Base(), pattern, file))
		if err != nil || len(found) != 1 {
			t.Fatalf("files %s of containers in %s: %q, %v; want one", file, pattern, found, err)
		}
		text, err := os.ReadFile(found[0])
		must.Do(t, err)
		return strings.TrimSpace(string(text))
	}
	cpu := read("cpu", "cpu.cfs_quota_us", "cpu.max")
	if !strings.Contains(cpu, " ") {
		cpu += " " + read("cpu", "cpu.cfs_period_us", "")
	}
	return cpu + " " + read("memory", "memory.limit_in_bytes", "memory.max")
}

// LimitsBy is Limits for engines whose containers have cgroups of their IDs; nil without cgroups.
func LimitsBy(s engine.Session) func(t *testing.T, parent, id string) string {
	if s.Cgroups == nil {
		return nil
	}
	return func(t *testing.T, parent, id string) string {
		t.Helper()
		return Limits(t, s, parent+"/"+id)
	}
}

// RootlessGaps are the gaps of engines without a daemon when the tests do not run as root.
func RootlessGaps() map[string]string {
	if os.Geteuid() == 0 {
		return nil
	}
	const (
		limits     = "bare runtimes have limits and CPU sets only as root, also in a delegated cgroup; native shares this list"
		namespaces = "network namespaces with an interface outside need root"
	)
	return map[string]string{"CPUSet": limits, "ProcessLimit": limits, "Limits": limits, "Bridge": namespaces, "HostEnd": namespaces}
}

// testManyLives checks that containers that are deleted in each state, and creations that are cancelled at any moment, leave no descriptors, no
// goroutines and no processes.
func (s *suite) testManyLives(t *testing.T) {
	if isolation := s.engine.Info().Isolation; isolation == engine.UserKernel || isolation == engine.VM {
		t.Skip("the engine leaves the same with each runtime, and a sandbox takes long")
	}
	Steady(t, 12, func(n int) {
		args := probe.Ready()
		if n%4 == 3 {
			args = []string{"/no-such-program"}
		}
		c, err := s.engine.Create(s.context(t), s.spec(args))
		if err != nil {
			if n%4 < 3 {
				t.Fatal(err)
			}
			return
		}
		if n%4 > 0 {
			if err := c.Start(s.context(t)); (err != nil) != (n%4 == 3) {
				t.Errorf("Start: %v", err)
			}
		}
		if n%4 == 2 {
			Check(t, c.Kill(s.context(t), sigkill))
			_, err := c.Wait(s.context(t))
			Check(t, err)
		}
		Check(t, c.Delete(s.context(t)))
	})
	Steady(t, 10, func(n int) {
		// A context with a deadline would end connections a moment before it has ended itself.
		timeoutCtx, stop := context.WithTimeout(s.context(t), time.Duration(n)*4*time.Millisecond)
		defer stop()
		ctx, cancel := context.WithCancel(s.context(t))
		defer cancel()
		context.AfterFunc(timeoutCtx, cancel)
		c, err := s.engine.Create(ctx, s.spec(probe.Ready()))
		switch {
		case err != nil && ctx.Err() == nil:
			t.Errorf("Create: %v", err)
		case err == nil:
			Check(t, c.Delete(s.context(t)))
		}
	})
}

// Steady calls life n times with different numbers, and fails the test if open files, goroutines or children of this process
// are left: an engine makes thousands of containers in one run.
func Steady(t *testing.T, n int, life func(number int)) {
	t.Helper()
	const first = 3 // the first lives, when packages open their permanent files
	for i := range first {
		life(i)
	}
	baseline := held(t)
	for i := range n {
		life(first + i)
	}
	// The last goroutine may be about to end. A leak is more than that.
	end := held(t)
	for i := 0; end.beyond(baseline) && i < 100_000; i++ {
		runtime.Gosched()
		end = held(t)
	}
	if end.beyond(baseline) {
		t.Errorf("after %d lives this process has %+v, and had %+v before", n, end, baseline)
	}
}

// holdings are the resources that a process can leak.
type holdings struct{ files, goroutines, children int }

func (h holdings) beyond(baseline holdings) bool {
	return h.files > baseline.files || h.goroutines > baseline.goroutines || h.children > baseline.children
}

func held(t *testing.T) holdings {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must.Do(t, err)
	h := holdings{files: len(files), goroutines: runtime.NumGoroutine()}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	must.Do(t, err)
	for _, file := range tasks {
		text, _ := os.ReadFile(file) // a thread may have ended
		h.children += len(strings.Fields(string(text)))
	}
	return h
}

// EngineCPUs checks that a CPU set for an engine's daemons does not apply to containers. It returns the engine.
func EngineCPUs(t *testing.T, d engine.Driver, name string, s engine.Session) engine.Engine {
	t.Helper()
	hostCPUs := allowedCPUs(t, os.Getpid())
	if s.Cgroups == nil || hostCPUs == "0" {
		record.Skip(t, "needs the right to make cgroups, and two CPUs")
	}
	s.EngineCPUs = "0"
	e := Open(t, d, name, s)
	for _, pid := range e.(engine.DaemonBacked).Daemon().PIDs {
		if got := allowedCPUs(t, pid); got != s.EngineCPUs {
			t.Errorf("the daemon's process %d may run on the CPUs %s, want %s", pid, got, s.EngineCPUs)
		}
	}
	for cpus, want := range map[string]string{"0": "0", "1": "1", "": hostCPUs} {
		var out bytes.Buffer
		spec := Spec(s, "cpus"+cpus)
		spec.Process = engine.Process{Args: probe.CPUs(), Stdout: &out}
		spec.Resources.CPUSet = cpus
		c := Running(t, e, spec)
		_, err := c.Wait(t.Context())
		Check(t, errors.Join(err, c.Delete(t.Context())))
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("a container with the CPUs %q may run on %s, want %s", cpus, got, want)
		}
	}
	return e
}

// allowedCPUs returns the CPU affinity of a process.
func allowedCPUs(t *testing.T, pid int) string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	must.Do(t, err)
	_, cpus, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	cpus, _, _ = strings.Cut(cpus, "\n")
	return strings.TrimSpace(cpus)
}
