package fake_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// harness is a fake engine with its own clock.
type harness struct {
	*testing.T
	clock  *fake.Clock
	driver *fake.Driver
	engine engine.Engine
	n      int
}

func newHarness(t *testing.T, name string) *harness {
	t.Helper()
	clock := fake.NewClock()
	driver := fake.NewDriver(clock)
	e, err := driver.Open(t.Context(), enginetest.Parse(t, name), engine.Session{RunID: "r"})
	must.Do(t, err)
	return &harness{T: t, clock: clock, driver: driver, engine: e}
}

func (l *harness) spec(args ...string) engine.Spec {
	l.n++
	return engine.Spec{
		ID: fmt.Sprintf("touchstone-r-%d", l.n), Rootfs: "/rootfs",
		Process: engine.Process{Args: append([]string{"/probe"}, args...)},
	}
}

func (l *harness) create(spec engine.Spec) engine.Container {
	l.Helper()
	c, err := l.engine.Create(l.Context(), spec)
	must.Do(l, err)
	return c
}

// took returns the time on the clock that the call takes. The call must not fail.
func (l *harness) took(call func() error) time.Duration {
	l.Helper()
	start := l.clock.Now()
	must.Do(l, call())
	return l.clock.Now().Sub(start)
}

// lifecycle returns the times of create, start, kill, wait and delete.
func (l *harness) lifecycle() []time.Duration {
	l.Helper()
	ctx := l.Context()
	var c engine.Container
	return []time.Duration{
		l.took(func() error { c = l.create(l.spec("ready")); return nil }),
		l.took(func() error { return c.Start(ctx) }),
		l.took(func() error { return c.Kill(ctx, syscall.SIGKILL) }),
		l.took(func() error { _, err := c.Wait(ctx); return err }),
		l.took(func() error { return c.Delete(ctx) }),
	}
}

func TestLatencies(t *testing.T) {
	for _, tt := range []struct {
		target string
		want   []time.Duration
	}{
		{"fake/x", []time.Duration{10 * ms, 5 * ms, 1 * ms, 1 * ms, 8 * ms}},
		{"fake/x@create=1ms,delete=5ms,exit=4ms,kill=3ms,start=2ms", []time.Duration{1 * ms, 2 * ms, 3 * ms, 4 * ms, 5 * ms}},
		{"fake/x@ready=3ms", []time.Duration{10 * ms, 5 * ms, 1 * ms, 1 * ms, 8 * ms}},
		{"fake/x@ready=7ms", []time.Duration{10 * ms, 7 * ms, 1 * ms, 1 * ms, 8 * ms}},
		{"fake/x@bimodal=1:3", []time.Duration{30 * ms, 15 * ms, 3 * ms, 3 * ms, 24 * ms}},
	} {
		if got := newHarness(t, tt.target).lifecycle(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: create, start, kill, wait, delete take %v, want %v", tt.target, got, tt.want)
		}
	}
}

// All latencies of a run have the run's factor, and another run has another one.
func TestWander(t *testing.T) {
	factor := func(runID string) float64 {
		l := newHarness(t, "fake/x@wander=0.1")
		e, err := l.driver.Open(t.Context(), enginetest.Parse(t, "fake/x@wander=0.1"), engine.Session{RunID: runID})
		must.Do(t, err)
		return float64(l.took(func() error { return e.(engine.Puller).Pull(t.Context(), "image") })) / float64(40*ms)
	}
	first, repeat, rival := factor("r1"), factor("r1"), factor("r2")
	if first != repeat || first == rival || first == 1 || first < 0.5 || rival > 2 {
		t.Errorf("the factors are %g, %g and %g; want one for each run, near 1", first, repeat, rival)
	}
	l := newHarness(t, "fake/x@wander=0.1")
	one, two := l.lifecycle(), l.lifecycle()
	if !slices.Equal(one, two) || one[0] == 10*ms || one[0]/2 != one[1] {
		t.Errorf("two lives take %v and %v; want the same factor for all calls", one, two)
	}
}

func TestOptionalLatencies(t *testing.T) {
	l := newHarness(t, "fake/x@exec=2ms,pause=3ms,resume=4ms,update=5ms")
	ctx := t.Context()
	c := l.create(l.spec("ready"))
	l.took(func() error { return c.Start(ctx) })
	got := []time.Duration{
		l.took(func() error {
			_, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: []string{"/probe", "syscall", "--ms", "20"}})
			return err
		}),
		l.took(func() error { return c.(engine.Pauser).Pause(ctx) }),
		l.took(func() error { return c.(engine.Pauser).Resume(ctx) }),
		l.took(func() error { return c.(engine.Updater).Update(ctx, engine.Resources{CPU: 1}) }),
	}
	if want := []time.Duration{22 * ms, 3 * ms, 4 * ms, 5 * ms}; !slices.Equal(got, want) {
		t.Errorf("exec, pause, resume, update take %v, want %v", got, want)
	}
}

func TestImageLatenciesAndFaults(t *testing.T) {
	l := newHarness(t, "fake/x@pull=7ms,remove=9ms,fail=pull#2+remove#2")
	p := l.engine.(engine.Puller)
	if got := l.took(func() error { return p.Pull(t.Context(), "image:1") }); got != 7*time.Millisecond {
		t.Errorf("pull takes %v", got)
	}
	if diff := slices.Compare(l.driver.Leftovers(), []string{"image:1"}); diff != 0 {
		t.Errorf("leftovers = %q, want the image", l.driver.Leftovers())
	}
	if got := l.took(func() error { return p.RemoveImage(t.Context(), "image:1") }); got != 9*time.Millisecond {
		t.Errorf("remove takes %v", got)
	}
	if got := l.took(func() error { return p.RemoveImage(t.Context(), "image:1") }); got != 0 {
		t.Errorf("removing a missing image takes %v", got)
	}
	if err := p.Pull(t.Context(), "image:2"); err == nil || !strings.Contains(err.Error(), "pull image:2: scripted fault") {
		t.Errorf("the second pull: %v", err)
	}
	if left := l.driver.Leftovers(); len(left) > 0 {
		t.Errorf("a failed pull leaves %q", left)
	}
	spec := l.spec("ready")
	spec.Image = "image:2"
	if _, err := l.engine.Create(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "image image:2 is missing") {
		t.Errorf("Create from an image that was not pulled: %v", err)
	}
}

func TestDrift(t *testing.T) {
	l := newHarness(t, "fake/x@drift=0.5")
	for i, want := range []time.Duration{10 * ms, 15 * ms, 20 * ms} {
		if got := l.lifecycle()[0]; got != want {
			t.Errorf("creation %d takes %v, want %v", i, got, want)
		}
	}
}

func TestJitterIsReproducibleAndHasItsWidth(t *testing.T) {
	creations := func(name string) []float64 {
		l := newHarness(t, name)
		var durations []float64
		for range 4000 {
			durations = append(durations, l.lifecycle()[0].Seconds())
		}
		return durations
	}
	a := creations("fake/x@jitter=0.1")
	if !slices.Equal(a, creations("fake/x@jitter=0.1")) {
		t.Error("the same script has other times")
	}
	for _, variant := range []string{"fake/y@jitter=0.1", "fake/x@jitter=0.1,seed=2"} {
		if slices.Equal(a, creations(variant)) {
			t.Errorf("%s has the noise of another target", variant)
		}
	}
	var sum, squares float64
	for _, x := range a {
		sum += x
		squares += x * x
	}
	mean := sum / 4000
	relative := (squares/4000 - mean*mean) / (mean * mean)
	// Standard errors of mean and relative variance are 0.16 % and about 2.5 %.
	if mean < 0.0099 || mean > 0.0101 || relative < 0.0085 || relative > 0.0115 {
		t.Errorf("mean %v s, relative variance %v; want 0.01 and 0.01", mean, relative)
	}
}

func TestBimodalShare(t *testing.T) {
	l := newHarness(t, "fake/x@bimodal=0.3:2")
	count := 0
	for range 1000 {
		switch l.lifecycle()[0] {
		case 20 * ms:
			count++
		case 10 * ms:
		default:
			t.Fatal("a creation takes neither 10 nor 20 ms")
		}
	}
	if count < 250 || count > 350 {
		t.Errorf("%d of 1000 creations are slow, want about 300", count)
	}
}

func TestFirstByteComesAtReady(t *testing.T) {
	l := newHarness(t, "fake/x@ready=3ms")
	w := &stopwatch{clock: l.clock}
	spec := l.spec("ready")
	spec.Process.Stdout = w
	c := l.create(spec)
	start := l.clock.Now()
	l.took(func() error { return c.Start(t.Context()) })
	if got := w.first.Sub(start); got != 3*ms || w.String() != "ready\n" {
		t.Errorf("%q came %v after the call of start, want ready after 3ms", w.String(), got)
	}
}

// stopwatch records the times of the first write and of the close.
type stopwatch struct {
	clock         *fake.Clock
	first, closed time.Time
	bytes.Buffer
}

func (w *stopwatch) Write(p []byte) (int, error) {
	if w.first.IsZero() {
		w.first = w.clock.Now()
	}
	return w.Buffer.Write(p)
}

func (w *stopwatch) Close() error {
	w.closed = w.clock.Now()
	return nil
}

func TestProcessesRunInParallel(t *testing.T) {
	l := newHarness(t, "fake/x@create=0s,exit=0s,ready=0s,start=0s")
	start := l.clock.Now()
	var containers []engine.Container
	var outputs []*stopwatch
	for _, length := range []string{"30", "10", "20"} {
		spec := l.spec("syscall", "--ms", length)
		w := &stopwatch{clock: l.clock}
		spec.Process.Stdout = w
		c := l.create(spec)
		l.took(func() error { return c.Start(t.Context()) })
		containers, outputs = append(containers, c), append(outputs, w)
	}
	if got := l.took(func() error { _, err := containers[0].Wait(t.Context()); return err }); got != 30*ms {
		t.Errorf("the longest takes %v, want 30ms", got)
	}
	for i, want := range []time.Duration{30 * ms, 10 * ms, 20 * ms} {
		if got := outputs[i].closed.Sub(start); got != want {
			t.Errorf("the output of process %d ended after %v, want %v", i, got, want)
		}
	}
}

func TestPauseStopsTheTimeOfAProcess(t *testing.T) {
	l := newHarness(t, "fake/x@exit=0s,pause=0s,ready=0s,resume=0s,start=0s")
	ctx := t.Context()
	c := l.create(l.spec("syscall", "--ms", "100"))
	l.took(func() error { return c.Start(ctx) })
	l.clock.Advance(40 * ms)
	l.took(func() error { return c.(engine.Pauser).Pause(ctx) })
	l.clock.Advance(time.Hour)
	l.took(func() error { return c.(engine.Pauser).Resume(ctx) })
	if got := l.took(func() error { _, err := c.Wait(ctx); return err }); got != 60*ms {
		t.Errorf("after the pause the process runs for %v, want the remaining 60ms", got)
	}
}

func TestSignalsToAFrozenProcess(t *testing.T) {
	for _, tt := range []struct {
		signal syscall.Signal
		thaw   bool
		want   engine.Exit
	}{
		{syscall.SIGKILL, false, engine.Exit{Signal: syscall.SIGKILL}},
		{syscall.SIGTERM, true, engine.Exit{}},
	} {
		l := newHarness(t, "fake/x")
		ctx := t.Context()
		c := l.create(l.spec("ready"))
		l.took(func() error { return c.Start(ctx) })
		l.took(func() error { return c.(engine.Pauser).Pause(ctx) })
		l.took(func() error { return c.Kill(ctx, tt.signal) })
		if tt.thaw {
			l.clock.Advance(time.Hour)
			if state, err := c.State(ctx); err != nil || state != engine.Paused {
				t.Errorf("%v: state %v, %v; want paused", tt.signal, state, err)
			}
			l.took(func() error { return c.(engine.Pauser).Resume(ctx) })
		}
		if exit, err := c.Wait(ctx); err != nil || exit != tt.want {
			t.Errorf("%v: Wait = %v, %v; want %v", tt.signal, exit, err, tt.want)
		}
	}
}

func TestTimeLimitCutsACallShort(t *testing.T) {
	l := newHarness(t, "fake/x@create=1h")
	cause := errors.New("limit")
	ctx, cancel := l.clock.WithTimeoutCause(t.Context(), time.Second, cause)
	defer cancel()
	start := l.clock.Now()
	_, err := l.engine.Create(ctx, l.spec("ready"))
	if got := l.clock.Now().Sub(start); !errors.Is(err, cause) || got != time.Second {
		t.Errorf("Create of an hour with a limit of a second: %v after %v", err, got)
	}
	if left := l.driver.Leftovers(); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestHangEndsWithItsLimit(t *testing.T) {
	cause := errors.New("limit")
	for _, op := range []string{"create", "start", "kill", "wait", "state", "delete", "exec", "pause", "resume", "update"} {
		l := newHarness(t, "fake/x@hang="+op+"#1")
		newLimit := func() (context.Context, context.CancelFunc) {
			return l.clock.WithTimeoutCause(context.WithoutCancel(t.Context()), time.Minute, cause)
		}
		err := walk(l, func(name string, call func(context.Context) error) error {
			ctx, cancel := newLimit()
			defer cancel()
			start := l.clock.Now()
			err := call(ctx)
			if name != op {
				return err
			}
			if got := l.clock.Now().Sub(start); !errors.Is(err, cause) || got != time.Minute {
				t.Errorf("hang=%s: %v after %v, want the limit after a minute", op, err, got)
			}
			ctx, cancel = newLimit()
			defer cancel()
			return call(ctx)
		})
		if err != nil {
			t.Errorf("hang=%s: the second call: %v", op, err)
		}
		if left := l.driver.Leftovers(); len(left) > 0 {
			t.Errorf("hang=%s: %v is left behind", op, left)
		}
	}
}

func TestHangWithoutALimitEndsWithItsContext(t *testing.T) {
	l := newHarness(t, "fake/x@hang=start")
	c := l.create(l.spec("ready"))
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if err := c.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v, want %v", err, context.Canceled)
	}
}

func TestFailHitsTheNamedCall(t *testing.T) {
	for _, op := range []string{"create", "start", "kill", "wait", "state", "delete", "exec", "pause", "resume", "update"} {
		l := newHarness(t, "fake/x@fail="+op+"#2")
		for round := 1; round <= 3; round++ {
			failed := ""
			err := walk(l, func(name string, call func(context.Context) error) error {
				err := call(t.Context())
				if err != nil {
					failed = name
					err = call(t.Context()) // a third call works
				}
				return err
			})
			want := ""
			if round == 2 {
				want = op
			}
			if err != nil || failed != want {
				t.Errorf("fail=%s#2, round %d: %q failed, %v; want %q", op, round, failed, err, want)
			}
		}
	}
}

// walk makes every call of the contract once, through do.
func walk(l *harness, do func(name string, call func(context.Context) error) error) error {
	var c engine.Container
	spec := l.spec("ready")
	steps := []struct {
		name string
		call func(context.Context) error
	}{
		{"create", func(ctx context.Context) (err error) { c, err = l.engine.Create(ctx, spec); return err }},
		{"start", func(ctx context.Context) error { return c.Start(ctx) }},
		{"state", func(ctx context.Context) error { _, err := c.State(ctx); return err }},
		{"exec", func(ctx context.Context) error {
			_, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: []string{"/probe", "exit"}})
			return err
		}},
		{"pause", func(ctx context.Context) error { return c.(engine.Pauser).Pause(ctx) }},
		{"resume", func(ctx context.Context) error { return c.(engine.Pauser).Resume(ctx) }},
		{"update", func(ctx context.Context) error { return c.(engine.Updater).Update(ctx, engine.Resources{CPU: 1}) }},
		{"kill", func(ctx context.Context) error { return c.Kill(ctx, syscall.SIGKILL) }},
		{"wait", func(ctx context.Context) error { _, err := c.Wait(ctx); return err }},
		{"delete", func(ctx context.Context) error { return c.Delete(ctx) }},
	}
	for _, s := range steps {
		if err := do(s.name, s.call); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func TestLeakOfDelete(t *testing.T) {
	for _, tt := range []struct {
		target string
		want   []bool // whether the first removal of each container fails
	}{
		{"fake/x@leak=delete#2", []bool{false, true, false}},
		{"fake/x@leak=delete", []bool{true, true, true}},
	} {
		l := newHarness(t, tt.target)
		for i, want := range tt.want {
			c := l.create(l.spec("ready"))
			err := c.Delete(t.Context())
			if (err != nil) != want || (len(l.driver.Leftovers()) == 1) != want {
				t.Errorf("%s: removal of container %d: %v, left %v", tt.target, i, err, l.driver.Leftovers())
			}
			if err := c.Delete(t.Context()); err != nil || len(l.driver.Leftovers()) > 0 {
				t.Errorf("%s: its second removal: %v, left %v", tt.target, err, l.driver.Leftovers())
			}
		}
	}
}

func TestLeakOfCreate(t *testing.T) {
	l := newHarness(t, "fake/x@leak=create#1")
	if _, err := l.engine.Create(t.Context(), l.spec("ready")); err == nil {
		t.Error("Create = nil, want an error")
	}
	if left := l.driver.Leftovers(); !slices.Equal(left, []string{"touchstone-r-1"}) {
		t.Errorf("leftovers = %v, want the container", left)
	}
	if err := l.engine.Close(); err == nil {
		t.Error("Close ignores the remaining container")
	}
}

func TestDie(t *testing.T) {
	l := newHarness(t, "fake/x@die=start#1")
	spec := l.spec("ready")
	w := &stopwatch{clock: l.clock}
	spec.Process.Stdout = w
	c := l.create(spec)
	l.took(func() error { return c.Start(t.Context()) })
	exit, err := c.Wait(t.Context())
	if err != nil || exit.Signal != syscall.SIGKILL || w.String() != "" || w.closed.IsZero() {
		t.Errorf("Wait = %v, %v, output %q, closed at %v; want a process killed before its first byte", exit, err, w.String(), w.closed)
	}
}

func TestGarbage(t *testing.T) {
	l := newHarness(t, "fake/x@garbage=2+3")
	for i, want := range []bool{false, true, true, false} {
		spec := l.spec([]string{"ready", "syscall", "ready", "syscall"}[i])
		var out bytes.Buffer
		spec.Process.Stdout = &out
		c := l.create(spec)
		l.took(func() error { return c.Start(t.Context()) })
		if spec.Process.Args[1] == "ready" {
			l.took(func() error { return c.Kill(t.Context(), syscall.SIGTERM) })
		}
		if exit, err := c.Wait(t.Context()); err != nil || !exit.OK() {
			t.Errorf("process %d ended with %v, %v", i+1, exit, err)
		}
		if got := strings.Contains(out.String(), "gar"); got != want || out.Len() == 0 {
			t.Errorf("process %d wrote %q", i+1, out.String())
		}
	}
}

func TestMissingCapabilities(t *testing.T) {
	for _, missing := range []string{"exec", "pause", "update", "host-network", "writable-root", "tmpfs", "exec+pause", "exec+update", "pause+update", "exec+pause+update"} {
		l := newHarness(t, "fake/x@no="+missing)
		lacks := func(c engine.Capability) bool {
			return c == engine.NetworkBridge || slices.Contains(strings.Split(missing, "+"), strings.ReplaceAll(string(c), " ", "-"))
		}
		for _, c := range engine.Capabilities() {
			if err := l.engine.Supports(c); engine.Unsupported(err) != lacks(c) {
				t.Errorf("no=%s: Supports(%s) = %v", missing, c, err)
			}
		}
		c := l.create(l.spec("ready"))
		_, exec := c.(engine.Execer).Exec(t.Context(), engine.Process{})
		for capability, err := range map[engine.Capability]error{
			engine.CanExec:   exec,
			engine.CanPause:  c.(engine.Pauser).Pause(t.Context()),
			engine.CanUpdate: c.(engine.Updater).Update(t.Context(), engine.Resources{}),
		} {
			if engine.Unsupported(err) != lacks(capability) {
				t.Errorf("no=%s: the call for %s returns %v", missing, capability, err)
			}
		}
		spec := l.spec("serve")
		spec.Network = engine.HostNet
		c, err := l.engine.Create(t.Context(), spec)
		if engine.Unsupported(err) != lacks(engine.NetworkHost) {
			t.Errorf("no=%s: Create on the host's network: %v", missing, err)
		}
		if err == nil {
			l.took(func() error { return c.Delete(t.Context()) })
		}
		for capability, ask := range map[engine.Capability]func(*engine.Spec){
			engine.CanWrite:      func(s *engine.Spec) { s.Writable = true },
			engine.CanTmpfs:      func(s *engine.Spec) { s.Mounts = []engine.Mount{{Target: "/data"}} },
			engine.NetworkBridge: func(s *engine.Spec) { s.Network = engine.Bridged },
		} {
			spec := l.spec("ready")
			ask(&spec)
			if _, err := l.engine.Create(t.Context(), spec); engine.Unsupported(err) != lacks(capability) {
				t.Errorf("no=%s: Create of a container with %s: %v", missing, capability, err)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	l := newHarness(t, "fake/x@cpu=7ms,mem=1000")
	a, b := l.create(l.spec("ready")), l.create(l.spec("ready"))
	accountant := l.engine.(engine.Accountant)
	if got := accountant.Usage(); got != (engine.Usage{PeakMemory: 2000}) {
		t.Errorf("usage before the first removal: %+v", got)
	}
	for _, c := range []engine.Container{a, b, a} {
		l.took(func() error { return c.Delete(t.Context()) })
	}
	if got := accountant.Usage(); got != (engine.Usage{CPU: 14 * ms, PeakMemory: 2000}) {
		t.Errorf("usage of two containers at once: %+v", got)
	}
	l.lifecycle()
	if got := accountant.Usage(); got != (engine.Usage{CPU: 21 * ms, PeakMemory: 1000}) {
		t.Errorf("usage with a third container alone: %+v, want the peak of the third", got)
	}
}

func TestCreateRefuses(t *testing.T) {
	good := func(l *harness) engine.Spec { return l.spec("ready") }
	for name, spoil := range map[string]func(*engine.Spec){
		"ID of no run":      func(s *engine.Spec) { s.ID = "touchstone-other-1" },
		"no root":           func(s *engine.Spec) { s.Rootfs = "" },
		"no arguments":      func(s *engine.Spec) { s.Process.Args = nil },
		"relative mount":    func(s *engine.Spec) { s.Mounts = []engine.Mount{{Source: "/x", Target: "data"}} },
		"unknown network":   func(s *engine.Spec) { s.Network = "carrier pigeon" },
		"other namespace":   func(s *engine.Spec) { s.Join = "/run/netns/x" },
		"missing program":   func(s *engine.Spec) { s.Process.Args = []string{"/usr/bin/sysbench"} },
		"negative resource": func(s *engine.Spec) { s.Resources.Memory = -1 },
	} {
		l := newHarness(t, "fake/x")
		spec := good(l)
		spoil(&spec)
		if _, err := l.engine.Create(t.Context(), spec); err == nil {
			t.Errorf("Create accepts a spec with %s", name)
		}
		l.create(good(l))
	}
}

func TestIDsAreUniqueAcrossEngines(t *testing.T) {
	l := newHarness(t, "fake/x")
	sibling, err := l.driver.Open(t.Context(), enginetest.Parse(t, "fake/y"), engine.Session{RunID: "r"})
	must.Do(t, err)
	spec := l.spec("ready")
	l.create(spec)
	if _, err := sibling.Create(t.Context(), spec); err == nil {
		t.Error("two engines made containers with the same ID")
	}
	if err := sibling.Close(); err != nil {
		t.Errorf("Close of an engine without containers: %v", err)
	}
	if _, err := sibling.Create(t.Context(), l.spec("ready")); err == nil {
		t.Error("Create works after Close")
	}
}
