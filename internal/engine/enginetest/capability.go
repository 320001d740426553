package enginetest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/record"
)

// Invariant unsupported.
func (s *suite) testSupports(t *testing.T) {
	for _, c := range append(engine.Capabilities(), "no such capability") {
		err := s.engine.Supports(c)
		var u *engine.UnsupportedError
		switch {
		case err == nil && c == "no such capability":
			t.Error("Supports accepts an unknown capability")
		case err != nil && !errors.As(err, &u):
			t.Errorf("Supports(%s) = %v, want an *engine.UnsupportedError", c, err)
		case err != nil && strings.TrimSpace(u.Reason) == "":
			t.Errorf("Supports(%s) refuses without a reason", c)
		}
	}
	container := s.create(t, s.spec(probe.Exit(0))).Container
	for _, c := range engine.Capabilities() {
		has, ok := promised[c]
		if ok && s.engine.Supports(c) == nil && !has(s.engine) && !has(container) {
			t.Errorf("Supports(%s) = nil, but neither the engine nor its containers have the interface of the capability", c)
		}
	}
}

// promised checks the optional interfaces that Supports promises.
var promised = map[engine.Capability]func(any) bool{
	engine.CanExec:       has[engine.Execer],
	engine.CanPause:      has[engine.Pauser],
	engine.CanUpdate:     has[engine.Updater],
	engine.CanStats:      has[engine.Meter],
	engine.CanPull:       has[engine.Puller],
	engine.NetworkBridge: has[engine.Networker],
}

func has[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// needs skips the test if the target lacks the capability.
func (s *suite) needs(t *testing.T, c engine.Capability) {
	t.Helper()
	if err := s.engine.Supports(c); err != nil {
		t.Skipf("the target does not support %s: %v", c, err)
	}
}

// optional returns the optional interface that a capability promises.
func optional[T any](t *testing.T, b testContainer) T {
	t.Helper()
	i, ok := b.Container.(T)
	if !ok {
		t.Fatalf("the container lacks an interface that Supports promises: %T", (*T)(nil))
	}
	return i
}

func (s *suite) testExec(t *testing.T) {
	s.needs(t, engine.CanExec)
	b := s.startReady(t)
	x := optional[engine.Execer](t, b)

	exit, err := repeatSilent(t, func() (engine.Exit, error) {
		return x.Exec(s.context(t), engine.Process{Args: probe.Exit(3)})
	})
	if want := (engine.Exit{Code: 3}); err != nil || exit != want {
		t.Errorf("Exec = %v, %v; want %v", exit, err, want)
	}

	var stdout, stderr *output
	exit, err = repeatSilent(t, func() (engine.Exit, error) {
		stdout, stderr = newOutput(), newOutput()
		return x.Exec(s.context(t), engine.Process{Args: probe.Syscall(1, 10*time.Millisecond).Args, Stdout: stdout, Stderr: stderr})
	})
	if err != nil || !exit.OK() {
		t.Errorf("Exec = %v, %v; want %v; Stderr: %s", exit, err, engine.Exit{}, stderr)
	}
	wantReport(t, stdout)
	if !stdout.isClosed() || !stderr.isClosed() {
		t.Error("the writers are not closed when Exec has returned")
	}

	exit, err = x.Exec(s.context(t), engine.Process{Args: []string{"/no-such-program"}})
	if err == nil && exit.OK() {
		t.Error("Exec succeeds with a missing program")
	}

	s.wantState(t, b, engine.Running)
	s.kill(t, b, killed)
	if exit, err := x.Exec(s.context(t), engine.Process{Args: probe.Exit(0)}); err == nil {
		t.Errorf("Exec in a stopped container = %v, want an error", exit)
	}
}

// repeat makes a call again, twice at most, as long as reason names the chance failure of a runtime in its error.
func repeat[T any](t testing.TB, call func() (T, error), reason func(err error) string) (T, error) {
	t.Helper()
	for range 2 {
		result, err := call()
		cause := ""
		if err != nil {
			cause = reason(err)
		}
		if cause == "" {
			return result, err
		}
		record.Repeat(t, fmt.Sprintf("%s: %v", cause, err))
	}
	return call()
}

// repeatSilent repeats an exec that gVisor has lost without a reason. A busy host causes such failures of short programs: see
// runtimes.SilentExecError.
func repeatSilent(t testing.TB, call func() (engine.Exit, error)) (engine.Exit, error) {
	t.Helper()
	return repeat(t, call, func(err error) string {
		if _, isSilent := errors.AsType[*runtimes.SilentExecError](err); isSilent {
			return "gVisor has lost an exec"
		}
		return ""
	})
}

// repeatEnded repeats a start if gVisor has failed it because the program had ended at once. gVisor then sets the OOM score of a process that exits, and
// takes the kernel's answer to the opening of its file for an error, unlike that to a write.
func repeatEnded[T any](t testing.TB, start func() (T, error)) (T, error) {
	t.Helper()
	return repeat(t, start, func(err error) string {
		if goneScore.MatchString(err.Error()) {
			return "gVisor has failed the start of a program that had ended"
		}
		return ""
	})
}

var goneScore = regexp.MustCompile(`open /proc/[0-9]+/oom_score_adj: no such process`)

// repeatUnsealed repeats a create if youki could not seal the copy of its program in memory. The kernel refuses that (EBUSY) while it uses a page of
// the copy itself, and youki does not try again.
func repeatUnsealed(t testing.TB, create func() (engine.Container, error)) (engine.Container, error) {
	t.Helper()
	return repeat(t, create, func(err error) string {
		if strings.Contains(err.Error(), "failed to seal /proc/self/exe") {
			return "youki has not sealed its program"
		}
		return ""
	})
}

// runcPause is Podman's error about a pause by runc, without runc's own words.
var runcPause = regexp.MustCompile(`runc pause [0-9a-f]+` + "`" + ` failed: exit status 1$`)

// repeatUnfrozen repeats a pause if runc could not freeze the processes. With cgroup v1 a freeze can fail on a busy host: runc tries a thousand times,
// thaws the processes again, and calls that a game of chances (its pull request 2791).
func repeatUnfrozen(t testing.TB, pause func() error) error {
	t.Helper()
	_, err := repeat(t, func() (struct{}, error) { return struct{}{}, pause() }, func(err error) string {
		if strings.Contains(err.Error(), "unable to freeze") || runcPause.MatchString(err.Error()) {
			return "runc has not frozen the processes"
		}
		return ""
	})
	return err
}

func (s *suite) testPause(t *testing.T) {
	s.needs(t, engine.CanPause)
	b := s.startReady(t)
	p := optional[engine.Pauser](t, b)
	if err := repeatUnfrozen(t, func() error { return p.Pause(s.context(t)) }); err != nil {
		t.Fatalf("Pause: %v", err)
	}
	s.wantState(t, b, engine.Paused)
	if err := p.Resume(s.context(t)); err != nil {
		t.Fatalf("Resume: %v", err)
	}
	if s.LateEvents {
		s.awaitState(t, b, engine.Running)
	} else {
		s.wantState(t, b, engine.Running)
	}
	s.kill(t, b, killed)

	b = s.startReady(t)
	p = optional[engine.Pauser](t, b)
	if err := repeatUnfrozen(t, func() error { return p.Pause(s.context(t)) }); err != nil {
		t.Fatalf("Pause: %v", err)
	}
	s.delete(t, b) // by force, in any state
	s.wantGone(t, b)
}

// Invariant lying-calls.
func (s *suite) testUpdate(t *testing.T) {
	s.needs(t, engine.CanUpdate)
	b := s.startReady(t)
	u := optional[engine.Updater](t, b)
	cpu := 0.0
	for _, r := range []engine.Resources{{CPU: 0.5}, {Memory: 512 << 20}, {CPU: 1, Memory: 1 << 30}} {
		if err := u.Update(s.context(t), r); err != nil {
			t.Errorf("Update(%+v): %v", r, err)
		}
		cpu = cmp.Or(r.CPU, cpu)
		limiter, ok := b.Container.(engine.Limited)
		if !ok || s.engine.Info().Target.Runtime == "youki" { // its update returns success and changes nothing
			continue
		}
		got, err := limiter.Limits(s.context(t))
		if engine.Unsupported(err) && s.engine.Info().Isolation == engine.VM {
			continue // the guest has the limits
		}
		if err != nil || got.CPU != cpu {
			t.Errorf("after Update(%+v) the host has a limit of %v CPUs, %v; want %v", r, got.CPU, err, cpu)
		}
	}
	s.wantState(t, b, engine.Running)
	s.kill(t, b, killed)
}

// testStats checks that the statistics show CPU time and memory of the container.
func (s *suite) testStats(t *testing.T) {
	s.needs(t, engine.CanStats)
	b := s.startReady(t)
	if s.engine.Supports(engine.CanExec) == nil {
		// gVisor counts in hundredths of a second: the load makes sure that some time is used.
		load := engine.Process{Args: probe.Syscall(1, 500*time.Millisecond).Args}
		exit, err := repeatSilent(t, func() (engine.Exit, error) { return optional[engine.Execer](t, b).Exec(s.context(t), load) })
		if err != nil || !exit.OK() {
			t.Fatalf("Exec of a load = %v, %v", exit, err)
		}
	}
	stats, err := optional[engine.Meter](t, b).Stats(s.context(t))
	if err != nil || stats.CPU <= 0 || stats.Memory <= 0 {
		t.Errorf("Stats = %+v, %v; want the use of a running container", stats, err)
	}
	s.kill(t, b, killed)
	s.delete(t, b)
	if stats, err := optional[engine.Meter](t, b).Stats(s.context(t)); err == nil {
		t.Errorf("Stats of a deleted container = %+v, want an error", stats)
	}
}

func (s *suite) testHostNetwork(t *testing.T) {
	s.needs(t, engine.NetworkHost)
	spec := s.spec(probe.Serve(0))
	spec.Network = engine.HostNet
	b := s.start(t, spec)
	url := fmt.Sprintf("http://127.0.0.1:%d/", s.servingPort(t, b))
	request, err := http.NewRequestWithContext(s.context(t), http.MethodGet, url, nil)
	must.Do(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	if d, ok := s.engine.(engine.Dialer); ok {
		transport.DialContext = d.Dial
	}
	client := http.Client{Transport: transport}
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("request to the container: %v", err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || string(body) != probe.ServeBody {
		t.Errorf("the container answered %s, %q, %v", response.Status, body, err)
	}
	s.kill(t, b, killed)
	if response, err := client.Do(request); err == nil {
		_ = response.Body.Close()
		t.Error("the container answers after its exit")
	}
}

// testOutward checks that the way to other machines is a network of the target. The suite has no other machine.
func (s *suite) testOutward(t *testing.T) {
	outgoing, ok := s.engine.(engine.Outgoing)
	if !ok {
		t.Skip("containers of the engine reach no other machine")
	}
	out, err := outgoing.Outward()
	if engine.Unsupported(err) {
		return
	}
	must.Do(t, err)
	capability, isKnown := map[engine.Network]engine.Capability{engine.HostNet: engine.NetworkHost, engine.Bridged: engine.NetworkBridge}[out.Network]
	if !isKnown || out.About == "" {
		t.Fatalf("Outward() = %+v; want a network with a description", out)
	}
	if err := s.engine.Supports(capability); err != nil {
		t.Errorf("the way out is %+v, but: %v", out, err)
	}
	if _, private := s.engine.(engine.Dialer); private && out.Network == engine.HostNet {
		t.Error("the way out is the host's network, which is not this machine's")
	}
}

func (s *suite) testPull(t *testing.T) {
	s.needs(t, engine.CanPull)
	p, ok := s.engine.(engine.Puller)
	if !ok || s.Registry == nil {
		t.Fatalf("the target can pull: the engine must be an engine.Puller (%t), and the suite needs a registry (%v)", ok, s.Registry)
	}
	ref, err := s.Registry.Fresh(s.context(t), 1<<20)
	must.Do(t, err)
	t.Cleanup(func() { s.Registry.Forget(ref) })
	s.removeImage(t, p, ref) // the image does not exist yet
	if err := p.Pull(s.context(t), ref); err != nil {
		t.Fatalf("Pull: %v", err)
	}
	t.Cleanup(func() { s.removeImage(t, p, ref) })
	spec := s.spec(probe.Ready())
	spec.Image = ref
	b := s.start(t, spec)
	s.wantReady(t, b)
	s.kill(t, b, killed)
	s.delete(t, b)

	// The image is now neither in the engine nor in the registry.
	s.removeImage(t, p, ref)
	s.removeImage(t, p, ref) // idempotent
	s.Registry.Forget(ref)
	if err := p.Pull(s.context(t), ref); err == nil || !strings.Contains(err.Error(), ref) {
		t.Errorf("Pull of a missing image: %v, want an error with %s", err, ref)
	}
	spec = s.spec(probe.Ready())
	spec.Image = ref
	if c, err := s.engine.Create(s.context(t), spec); err == nil {
		s.deleteAfter(t, c)
		t.Error("Create works with a removed image")
	}
}

func (s *suite) removeImage(t *testing.T, p engine.Puller, ref string) {
	t.Helper()
	if err := p.RemoveImage(s.context(t), ref); err != nil {
		t.Errorf("RemoveImage: %v", err)
	}
}

// files writes and reads small files in a directory of the container.
func files(dir string) []string {
	return probe.Files(probe.FilesLoad{Dir: dir, Writers: 1, Readers: 1, Seed: 1}, 100*time.Millisecond).Args
}

func (s *suite) testMount(t *testing.T) {
	dir := t.TempDir()
	spec := s.spec(files("/data"))
	spec.Mounts = []engine.Mount{{Source: dir, Target: "/data"}}
	wantReport(t, s.complete(t, spec).stdout)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("the source of the mount was removed: %v", err)
	}
	for _, e := range entries {
		t.Errorf("%s is left in the mount", e.Name())
	}
}

func (s *suite) testReadOnlyMount(t *testing.T) {
	dir := t.TempDir()
	spec := s.spec(files("/data"))
	spec.Mounts = []engine.Mount{{Source: dir, Target: "/data", ReadOnly: true}}
	s.wantUnwritable(t, spec)
}

func (s *suite) testReadOnlyRoot(t *testing.T) {
	s.wantUnwritable(t, s.spec(files("/")))
}

// wantUnwritable runs a command that must fail because it cannot write.
func (s *suite) wantUnwritable(t *testing.T, spec engine.Spec) {
	t.Helper()
	b := s.start(t, spec)
	exit, err := b.Wait(s.context(t))
	if err != nil || exit.OK() {
		t.Errorf("Wait = %v, %v; want a failure: %v must not be able to write", exit, err, spec.Process.Args)
	}
	s.delete(t, b)
	if _, err := probe.Parse([]byte(b.stdout.String())); err == nil {
		t.Errorf("%v reports success", spec.Process.Args)
	}
}
