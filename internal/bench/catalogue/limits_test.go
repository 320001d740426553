package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// worker is an engine whose containers run a program in steps that the test controls.
type worker struct {
	scripted
	work func(w *working)

	mu   sync.Mutex
	now  time.Time
	used time.Duration
	asks chan struct{} // a token for each call of Usage
	tell func()        // called at the next reading of the clock; may be nil
}

func newWorker(work func(w *working)) *worker {
	return &worker{work: work, asks: make(chan struct{}, 100)}
}

func (e *worker) Create(_ context.Context, s engine.Spec) (engine.Container, error) {
	return &working{scriptedContainer: scriptedContainer{spec: s}, engine: e, limits: make(chan float64, 1), process: process{ended: make(chan struct{})}}, nil
}

// Usage implements engine.Accountant.
func (e *worker) Usage() engine.Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asks <- struct{}{}
	return engine.Usage{CPU: e.used}
}

// pass advances the clock by d and the CPU time by usage.
func (e *worker) pass(d, usage time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = e.now.Add(d)
	e.used += usage
}

// Now implements meter.Clock: the engine is the clock of its trials.
func (e *worker) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tell != nil {
		e.tell()
		e.tell = nil
	}
	return e.now
}

// Real implements meter.Clock.
func (e *worker) Real() time.Time { return e.Now() }

func (e *worker) WithTimeoutCause(ctx context.Context, _ time.Duration, _ error) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Every implements meter.Clock. Nothing that a worker runs is sampled.
func (e *worker) Every(time.Duration, func()) (stop func()) { return func() {} }

func (e *worker) Sleep(ctx context.Context, d time.Duration) error {
	if d >= time.Minute { // a deadline, which no program of these tests reaches
		<-ctx.Done()
		return context.Cause(ctx)
	}
	e.pass(d, 0)
	return nil
}

// working is a container of a worker.
type working struct {
	scriptedContainer
	process
	engine *worker
	limits chan float64 // the limit of each update, after it has returned
	last   atomic.Bool  // no update returns before the program exits
}

func (w *working) Wait(ctx context.Context) (engine.Exit, error) { return w.process.Wait(ctx) }

func (w *working) Start(context.Context) error {
	go func() {
		w.engine.work(w)
		w.finish(w.engine.exit, w.spec.Process.CloseOutput)
	}()
	return nil
}

func (w *working) say(text string) { _, _ = io.WriteString(w.spec.Process.Stdout, text) }

func (w *working) Update(_ context.Context, r engine.Resources) error {
	if w.last.Load() {
		<-w.ended
		return errors.New("there is no such container")
	}
	w.engine.pass(time.Millisecond, 0)
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	w.engine.tell = func() { w.limits <- r.CPU }
	return nil
}

// progressing is sysbench with progress reports: seconds pass at rates that depend on the limit. After each second except
// the last it waits for another limit.
func progressing(seconds int, rate func(limit float64) float64) func(w *working) {
	return func(w *working) {
		program := sysbenchCPU(w.spec.Process.Args[2:], w.spec)
		head, tail, _ := strings.Cut(program.Stdout, "CPU speed:")
		w.say(head)
		limit := w.spec.Resources.CPU
		for n := 1; n <= seconds; n++ {
			w.last.Store(n == seconds)
			w.engine.pass(time.Second, 0)
			w.say(fmt.Sprintf("[ %ds ] thds: 1 eps: %.2f lat (ms,95%%): 0.60\n", n, rate(limit)))
			if n < seconds {
				limit = <-w.limits
			}
		}
		w.say("CPU speed:" + tail)
	}
}

func sample(t *testing.T, trial result.Trial, metric string) float64 {
	t.Helper()
	values := trial.Values(metric)
	if len(values) != 1 {
		t.Fatalf("%s is %v, want one value; the trial is %s because %s", metric, values, trial.Status, trial.Reason)
	}
	return values[0]
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-3*b }

// Each update is a phase, and the recorded limit is the last that was reached.
func TestUpdatesOfScaling(t *testing.T) {
	const unit = " % of a CPU, in each 100 ms"
	for _, tt := range []struct {
		what          string
		seconds       int
		percent, from string
		updates       int
		limit         string
	}{
		{"all steps", 5, "100", "50", 4, "from 50" + unit + " to 100" + unit},
		{"from a tenth", 5, "80", "10", 4, "from 8" + unit + " to 80" + unit},
		{"exit before the last step", 3, "100", "50", 2, "from 50" + unit + " to 75" + unit},
	} {
		e := newWorker(progressing(tt.seconds, func(limit float64) float64 { return 1600 * limit }))
		trial := runOn(t, scaling, e, e, bench.Params{"steps": "4", "percent": tt.percent, "from": tt.from, "events": "8000"})
		if got := trial.Conditions["CPU limit"]; got != tt.limit || !near(sample(t, trial, "LimitResponse"), 1) {
			t.Errorf("%s: the recorded limit is %q, LimitResponse = %v", tt.what, got, trial.Values("LimitResponse"))
		}
		if got := trial.Values("Update"); len(got) != tt.updates || !near(got[0], 1e-3) {
			t.Errorf("%s: updates %v, want %d of 1 ms", tt.what, got, tt.updates)
		}
		if got := sample(t, trial, "TotalTime"); !near(got, 4.8) {
			t.Errorf("%s: TotalTime = %v", tt.what, got)
		}
	}
}

func TestScalingFails(t *testing.T) {
	good := func(limit float64) float64 { return 1600 * limit }
	for _, tt := range []struct {
		what   string
		work   func(w *working)
		exit   engine.Exit
		reason string
	}{
		{"early exit", progressing(1, good), engine.Exit{}, "set more events"},
		{"no progress", progressing(3, func(float64) float64 { return 0 }), engine.Exit{}, "completed no event"},
		{"no output", func(*working) {}, engine.Exit{}, "read the output of"},
		{"killed", progressing(3, good), engine.Exit{Signal: 9}, "killed by signal 9"},
		{"missing second", func(w *working) {
			progressing(3, good)(w)
			w.say("[ 9s ] thds: 1 eps: 1 lat (ms,95%): 1\n")
		}, engine.Exit{}, ""},
	} {
		e := newWorker(tt.work)
		e.exit = tt.exit
		checkEnd(t, tt.what, runOn(t, scaling, e, e, nil), result.Failed, tt.reason)
	}
}

// loaded is a worker whose containers run sysbench until its events are done. The engine may change limits, and the host may
// be busy.
type loaded struct {
	*worker
	rate    float64                           // events per second of a whole CPU
	inForce func(first, last float64) float64 // the effective limit, from the limits at creation and of the last update
	left    func(second int) float64          // CPUs that the host can grant
	steps   int                               // number of updates to expect
	mixed   bool                              // the usage is also read after updates

	counts    sync.Mutex
	cpu       time.Duration
	throttled int64
	shown     int64         // the value of throttled at the last read of cpu
	read      chan struct{} // a token for each reading of the CPU time
}

func (e *loaded) sysbench(w *working) {
	args := w.spec.Process.Args[2:]
	head, tail, _ := strings.Cut(sysbenchCPU(args, w.spec).Stdout, "CPU speed:")
	w.say(head)
	<-e.read
	first := w.spec.Resources.CPU
	last, events := first, float64(wholeOf(optionsOf(args)["events"]))
	for n := 1; ; n++ {
		limit := e.inForce(first, last)
		share := min(limit, e.left(n), 1)
		if events -= e.rate * share; events < 0 {
			break
		}
		e.pass(time.Second, 0)
		e.counts.Lock()
		e.cpu += time.Duration(share * float64(time.Second))
		if share == limit && limit < 1 {
			e.throttled += 10
		}
		e.counts.Unlock()
		w.say(fmt.Sprintf("[ %ds ] thds: 1 eps: %.2f lat (ms,95%%): 0.60\n", n, e.rate*share))
		<-e.read
		if n <= e.steps {
			last = <-w.limits
			if e.mixed {
				<-e.read
			}
		}
	}
	w.say("CPU speed:" + tail)
}

// loadedCost is a cost with the CPU time of the container alone.
type loadedCost struct {
	bench.Cost
	engine *loaded
}

func (t loadedCost) CPU() (map[monitor.Component]time.Duration, error) {
	t.engine.counts.Lock()
	parts := map[monitor.Component]time.Duration{monitor.Container: t.engine.cpu, monitor.Daemon: time.Second}
	t.engine.shown = t.engine.throttled // the worker continues before the benchmark reads it
	t.engine.counts.Unlock()
	t.engine.read <- struct{}{}
	return parts, nil
}

// throttledCost is a loadedCost with throttling.
type throttledCost struct {
	loadedCost
	err error
}

func (t throttledCost) Throttled() (int64, error) {
	t.engine.counts.Lock()
	defer t.engine.counts.Unlock()
	return t.engine.shown, t.err
}

// mixedCost is a cost with only the sum of the container and of the runtime's calls, which take 300 ms each.
type mixedCost struct {
	loadedCost
	reads *int
}

func (mixedCost) CPU() (map[monitor.Component]time.Duration, error) {
	return nil, &engine.UnsupportedError{What: "CPU time by component", Reason: "the kernel does not report it"}
}

func (t mixedCost) Usage() (engine.Usage, error) {
	parts, err := t.loadedCost.CPU()
	calls := min(*t.reads/2, t.engine.steps) // the usage is read once before the first call, then before and after each
	*t.reads++
	return engine.Usage{CPU: parts[monitor.Container] + time.Duration(calls)*300*ms}, err
}

// withCost changes the cost that the benchmark reads.
func withCost(wrap func(bench.Cost) bench.Cost) func(*runner.Config) {
	return func(c *runner.Config) {
		run := c.Work[0].Benchmark.Run
		c.Work[0].Benchmark.Run = func(ctx context.Context, t bench.Trial) error {
			t.Cost = wrap(t.Cost)
			return run(ctx, t)
		}
	}
}

// scaled runs limits.cpu.scaling on a loaded worker, with the cost that wrap returns.
func scaled(t *testing.T, e *loaded, params bench.Params, wrap func(loadedCost) bench.Cost) result.Trial {
	t.Helper()
	e.worker, e.steps, e.read = newWorker(e.sysbench), wholeOf(params["steps"]), make(chan struct{})
	return runOn(t, scaling, e, e, params, withCost(func(c bench.Cost) bench.Cost { return wrap(loadedCost{c, e}) }))
}

// defaults are the parameters of limits.cpu.scaling in the quick plan, and in the paper.
func defaults(t *testing.T) (quick, paper bench.Params) {
	t.Helper()
	quick, paper = bench.Params{}, bench.Params{}
	for _, p := range find(t, scaling).Params {
		quick[p.Name], paper[p.Name] = p.Quick, p.Paper
	}
	return quick, paper
}

func follows(_, last float64) float64  { return last }
func ignores(first, _ float64) float64 { return first }
func idle(int) float64                 { return 1 }

// A limit that does not hold, or that is not raised, is detected. A busy host is not mistaken for a limit.
func TestScaledLimits(t *testing.T) {
	drops := func(first, last float64) float64 {
		if last > first {
			return 1
		}
		return first
	}
	half := func(first, last float64) float64 { return math.Sqrt(first * last) }
	noLimit := func(_, _ float64) float64 { return 1 }
	// in is a host that grants only a part of the limit in some of the seconds.
	in := func(seconds []int, cpus float64) func(int) float64 {
		return func(second int) float64 {
			if slices.Contains(seconds, second) {
				return cpus
			}
			return 1
		}
	}
	quick, paper := defaults(t)
	for _, tt := range []struct {
		what    string
		params  bench.Params
		inForce func(first, last float64) float64
		left    func(second int) float64
		used    float64
		behind  []float64 // from, to; nil without a value
	}{
		{"full response", quick, follows, idle, 1, []float64{1, 1}},
		{"no response", quick, ignores, idle, 1, []float64{2, 2}},
		{"no response", paper, ignores, idle, 1, []float64{2, 2}},
		{"half a response", quick, half, idle, 1, []float64{math.Sqrt2, math.Sqrt2}},
		{"dropped limit", quick, drops, idle, 3, nil},
		{"no limit", quick, noLimit, idle, 4, nil},
		{"starved at first", quick, follows, in([]int{1}, 0.2), 1, nil},
		{"starved at last", quick, follows, in([]int{4}, 0.4), 1, nil},
		{"starved at last", paper, follows, in([]int{9, 10, 11, 12, 13}, 0.6), 1, nil},
		{"starved all the time", paper, follows, func(int) float64 { return 0.5 }, 1, nil},
		{"starved a little", quick, follows, in([]int{4}, 0.45), 1, []float64{1, 1.1}},
		{"no response on a busy host", paper, ignores, func(int) float64 { return 0.52 }, 1, []float64{2, 2}},
	} {
		rate := 1900.0
		if tt.params["events"] == paper["events"] {
			rate = 950
		}
		e := &loaded{rate: rate, inForce: tt.inForce, left: tt.left}
		trial := mustBeOK(t, scaled(t, e, tt.params, func(l loadedCost) bench.Cost { return throttledCost{l, nil} }))
		if got := sample(t, trial, "CPULimitUse"); !near(got, tt.used) {
			t.Errorf("%s, %v: CPULimitUse = %v, want %v", tt.what, tt.params, got, tt.used)
		}
		got := trial.Values("LimitResponse")
		if len(got) != len(tt.behind)/2 || len(got) == 1 && !(got[0] > tt.behind[0]-1e-3 && got[0] < tt.behind[1]+1e-3) {
			t.Errorf("%s, %v: LimitResponse = %v, want one from %v", tt.what, tt.params, got, tt.behind)
		}
	}
}

// If throttling is unknown, a host counts as busy if it grants less than the first limit. The CPU time of the runtime's calls
// does not count as the container's.
func TestScalingWithUnknownThrottling(t *testing.T) {
	quick, _ := defaults(t)
	const mixture = "Usage"
	wraps := map[string]func(loadedCost) bench.Cost{
		"CPU":   func(l loadedCost) bench.Cost { return l },
		mixture: func(l loadedCost) bench.Cost { return mixedCost{l, new(int)} },
	}
	for _, tt := range []struct {
		what    string
		inForce func(first, last float64) float64
		second  int // in which the host grants at most left, in CPUs
		left    float64
		known   bool
	}{
		{"full response", follows, 1, 1, true},
		{"no response", ignores, 1, 1, true},
		{"starved at first", follows, 1, 0.21, false},
		{"starved a little at first", follows, 1, 0.215, true},
		{"starved at last", follows, 4, 0.21, false},
		{"starved in between", follows, 2, 0.21, false},
	} {
		for name, wrap := range wraps {
			trial := scaled(t, &loaded{rate: 1900, mixed: name == mixture, inForce: tt.inForce, left: func(second int) float64 {
				if second == tt.second {
					return tt.left
				}
				return 1
			}}, quick, wrap)
			if got := trial.Values("LimitResponse"); trial.Status != result.OK || (len(got) == 1) != tt.known {
				t.Errorf("%s, with %s: %s because %q, LimitResponse = %v", tt.what, name, trial.Status, trial.Reason, got)
			}
			if got := sample(t, trial, "CPULimitUse"); !near(got, 1) {
				t.Errorf("%s, with %s: CPULimitUse = %v", tt.what, name, got)
			}
		}
	}
	fault := func(l loadedCost) bench.Cost { return throttledCost{l, errors.New("no such file")} }
	if trial := scaled(t, &loaded{rate: 1900, inForce: follows, left: idle}, quick, fault); trial.Status != result.Failed {
		t.Errorf("unreadable throttling: %s", trial.Status)
	}
}

// The default parameters reach the full limit on machines up to the speed that the comment on the parameters gives.
func TestScalingReachesTheFullLimit(t *testing.T) {
	quick, paper := defaults(t)
	for _, tt := range []struct {
		params bench.Params
		rate   float64
		want   string
		full   bool
	}{
		{quick, 2000, "from 25 % of a CPU, in each 100 ms to 50 % of a CPU, in each 100 ms", true},
		{quick, 2020, "from 25 % of a CPU, in each 100 ms to 50 % of a CPU, in each 100 ms", false},
		{paper, 1200, "from 50 % of a CPU, in each 100 ms to 100 % of a CPU, in each 100 ms", true},
		{paper, 1220, "from 50 % of a CPU, in each 100 ms to 100 % of a CPU, in each 100 ms", false},
	} {
		trial := scaled(t, &loaded{rate: tt.rate, inForce: follows, left: idle}, tt.params, func(l loadedCost) bench.Cost { return l })
		if got := trial.Conditions["CPU limit"]; trial.Status != result.OK || (got == tt.want) != tt.full {
			t.Errorf("%v at %v events a second: %s because %q; the recorded limit is %q", tt.params, tt.rate, trial.Status, trial.Reason, got)
		}
	}
}

// besideDaemon is a cost that may include a daemon's.
type besideDaemon struct {
	bench.Cost
	both bool
}

func (c besideDaemon) Usage() (engine.Usage, error) {
	usage, err := c.Cost.Usage()
	usage.IncludesDaemon = c.both
	return usage, err
}

// CPULimitUse is the CPU time from the first output on, over the allowed CPU time. It is left out if a daemon's CPU time cannot be separated from the
// container's.
func TestCPULimit(t *testing.T) {
	const name = "limits.cpu.time"
	for _, tt := range []struct {
		what   string
		before time.Duration // CPU time until the first output
		used   time.Duration // CPU time in the two seconds after it
		both   bool          // a daemon's CPU time is in it
		want   []float64
	}{
		{"the limit holds", 100 * ms, 200 * ms, false, []float64{1}},
		{"the limit does not hold", 100 * ms, 2 * time.Second, false, []float64{10}},
		{"late output", 500 * ms, 200 * ms, false, nil},
		{"unknown usage", 0, 0, false, nil},
		{"a busy daemon", 100 * ms, 200 * ms, true, nil},
	} {
		e := newWorker(nil)
		e.work = func(w *working) {
			e.pass(time.Second, tt.before)
			program := sysbenchCPU(w.spec.Process.Args[2:], w.spec)
			line, rest, _ := strings.Cut(program.Stdout, "\n")
			w.say(line + "\n")
			<-e.asks // at the beginning of the trial
			<-e.asks
			e.pass(2*time.Second, tt.used)
			w.say(rest)
		}
		trial := runOn(t, name, e, e, bench.Params{"percent": "10"}, withCost(func(c bench.Cost) bench.Cost { return besideDaemon{c, tt.both} }))
		if got := trial.Values("CPULimitUse"); trial.Status != result.OK || len(got) != len(tt.want) || len(got) > 0 && !near(got[0], tt.want[0]) {
			t.Errorf("%s: %s because %q, CPULimitUse = %v, want %v", tt.what, trial.Status, trial.Reason, got, tt.want)
		}
		if got := trial.Conditions["CPU limit"]; got != "10 % of a CPU, in each 100 ms" {
			t.Errorf("%s: the recorded limit is %q", tt.what, got)
		}
	}
}

// reading is a cost with a CPU time by component, which signals each reading.
type reading struct {
	bench.Cost
	parts func() map[monitor.Component]time.Duration
	read  chan struct{}
}

func (r reading) CPU() (map[monitor.Component]time.Duration, error) {
	defer func() { r.read <- struct{}{} }()
	return r.parts(), nil
}

// CPULimitUse includes only the processes under the limit, and not the daemon and shims.
func TestCPULimitOfParts(t *testing.T) {
	for _, tt := range []struct {
		container, sandbox, daemon, shim time.Duration // used in two seconds
		want                             float64
	}{
		{200 * ms, 0, 0, 0, 1},
		{200 * ms, 0, 2 * time.Second, 500 * ms, 1},
		{100 * ms, 100 * ms, 2 * time.Second, 0, 1},
		{200 * ms, 200 * ms, 0, 0, 2},
	} {
		var isLater atomic.Bool
		r := reading{read: make(chan struct{}, 10), parts: func() map[monitor.Component]time.Duration {
			parts := map[monitor.Component]time.Duration{monitor.Container: 10 * ms, monitor.Daemon: time.Second}
			if isLater.Load() {
				parts[monitor.Container] += tt.container
				parts[monitor.Sentry] += tt.sandbox
				parts[monitor.Daemon] += tt.daemon
				parts[monitor.Shim] += tt.shim
			}
			return parts
		}}
		e := newWorker(func(w *working) {
			line, rest, _ := strings.Cut(sysbenchCPU(w.spec.Process.Args[2:], w.spec).Stdout, "\n")
			w.say(line + "\n")
			<-r.read
			isLater.Store(true)
			w.engine.pass(2*time.Second, 0)
			w.say(rest)
		})
		trial := runOn(t, "limits.cpu.time", e, e, bench.Params{"percent": "10"}, withCost(func(c bench.Cost) bench.Cost {
			r.Cost = c
			return r
		}))
		if got := sample(t, trial, "CPULimitUse"); !near(got, tt.want) {
			t.Errorf("%+v: CPULimitUse = %v", tt, got)
		}
	}
}

// heldMiB is the output of the probe when it allocates so many MiB.
func heldMiB(mib int) string {
	var out strings.Builder
	for n := range mib + 1 {
		fmt.Fprintf(&out, "held %d\n", n<<20)
	}
	return out.String()
}

func TestMemoryLimit(t *testing.T) {
	const name = "limits.memory.oom"
	kill, code := engine.Exit{Signal: 9}, engine.Exit{Code: 137}
	for _, tt := range []struct {
		what            string
		output          string
		exit            engine.Exit
		reached, usable []float64 // nil if the trial fails
	}{
		{"the limit holds", heldMiB(62), kill, []float64{1}, []float64{62.0 / 64}},
		{"the limit holds, with an exit code", heldMiB(40), code, []float64{1}, []float64{40.0 / 64}},
		{"the limit holds and ends the sandbox", heldMiB(41), engine.Exit{Code: 128}, []float64{1}, []float64{41.0 / 64}},
		{"another code", heldMiB(41), engine.Exit{Code: 129}, nil, nil},
		{"late kill", heldMiB(96), kill, []float64{1.5}, []float64{1.5}},
		{"the limit does not hold", heldMiB(128), engine.Exit{}, []float64{2}, nil},
		{"exit below the limit", heldMiB(62), engine.Exit{}, nil, nil},
		{"failure", heldMiB(62), engine.Exit{Code: 1}, nil, nil},
		{"another signal", heldMiB(62), engine.Exit{Signal: 15}, nil, nil},
		{"killed with a third of its limit", heldMiB(22), kill, []float64{1}, []float64{22.0 / 64}},
		{"killed far below its limit", heldMiB(21), kill, nil, nil},
		{"sandbox exit far below the limit", heldMiB(21), engine.Exit{Code: 128}, nil, nil},
		{"killed with all memory", heldMiB(128), kill, nil, nil},
		{"killed without memory", heldMiB(0), kill, nil, nil},
		{"killed without output", "", kill, nil, nil},
		{"more than possible", heldMiB(129), engine.Exit{}, nil, nil},
		{"less than before", heldMiB(2) + heldMiB(2), kill, nil, nil},
		{"garbage", heldMiB(2) + "hold 7\n", kill, nil, nil},
		{"not a whole MiB", "held 4096\n", kill, nil, nil},
		{"too much output", strings.Repeat("held\n", bench.MaxOutput), kill, nil, nil},
	} {
		trial := runOn(t, name, scripted{stdout: tt.output, exit: tt.exit}, still{}, bench.Params{"mib": "64"})
		want := result.OK
		if tt.reached == nil {
			want = result.Failed
		}
		if trial.Status != want || trial.Reason == "" && want == result.Failed {
			t.Errorf("%s: %s because %q", tt.what, trial.Status, trial.Reason)
		}
		for metric, want := range map[string][]float64{"Reached": tt.reached, "Usable": tt.usable} {
			if got := trial.Values(metric); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s = %v, want %v", tt.what, metric, got, want)
			}
		}
	}
}

// KillTime is the time from the last line to the exit.
func TestKillTime(t *testing.T) {
	trial := ok(t, "limits.memory.oom", "fake/a@exit=7ms", nil)
	if got := sample(t, trial, "KillTime"); !near(got, 7e-3) {
		t.Errorf("KillTime = %v, want 7 ms", got)
	}
	if got := sample(t, trial, "Usable"); got != 63.0/64 || trial.Conditions["memory limit"] != "64 MiB" {
		t.Errorf("Usable = %v of %q", got, trial.Conditions["memory limit"])
	}
}

// virtual is a worker whose containers run in virtual machines. The engine reports their CPU time by the guest's count.
type virtual struct {
	*worker
	overhead engine.Resources
	missing  engine.Missing
	stats    func(w *working, call int) (time.Duration, error)
}

func (e *virtual) Info() engine.Info {
	return engine.Info{Isolation: engine.VM, Overhead: e.overhead}
}

func (e *virtual) Supports(c engine.Capability) error { return e.missing.Supports(c) }

func (e *virtual) Create(ctx context.Context, s engine.Spec) (engine.Container, error) {
	c, err := e.worker.Create(ctx, s)
	if err != nil {
		return nil, err
	}
	return &guestContainer{working: c.(*working), vm: e}, nil
}

// guestContainer implements engine.Meter.
type guestContainer struct {
	*working
	vm    *virtual
	calls int
}

func (c *guestContainer) Stats(context.Context) (engine.Stats, error) {
	c.calls++
	cpu, err := c.vm.stats(c.working, c.calls)
	return engine.Stats{CPU: cpu, Memory: 1}, err
}

// In a virtual machine the guest's count judges the container's limit. The machine's CPU time on the host, with its boot and its
// kernel, judges the limit of the pod there, if the engine sets one.
func TestCPULimitInAGuest(t *testing.T) {
	for _, tt := range []struct {
		what         string
		inside, host time.Duration // CPU time in each of three seconds
		pod          engine.Resources
		missing      engine.Missing
		use, hostUse []float64
	}{
		{"both hold", 100 * ms, 350 * ms, engine.Resources{CPU: 0.25}, nil, []float64{1}, []float64{1}},
		{"a busy guest kernel", 100 * ms, 900 * ms, engine.Resources{}, nil, []float64{1}, nil},
		{"only the pod's holds", time.Second, 350 * ms, engine.Resources{CPU: 0.25}, nil, []float64{10}, []float64{1}},
		{"the pod's does not hold", 100 * ms, 700 * ms, engine.Resources{CPU: 0.25}, nil, []float64{1}, []float64{2}},
		{"no statistics", 100 * ms, 350 * ms, engine.Resources{CPU: 0.25}, engine.Missing{engine.CanStats: "it has none"}, nil, []float64{1}},
	} {
		e := &virtual{worker: newWorker(nil), overhead: tt.pod, missing: tt.missing}
		ready := make(chan struct{})
		e.stats = func(w *working, call int) (time.Duration, error) {
			e.pass(0, tt.host)
			if call > 3 {
				close(ready)
				<-w.ended
				return 0, errors.New("there is no such container")
			}
			return 20*ms + time.Duration(call-1)*tt.inside, nil
		}
		e.work = func(w *working) {
			e.pass(20*time.Second, 20*time.Second) // the boot
			line, rest, _ := strings.Cut(sysbenchCPU(w.spec.Process.Args[2:], w.spec).Stdout, "\n")
			w.say(line + "\n")
			<-e.asks // at the beginning of the trial
			<-e.asks
			if tt.missing == nil {
				<-ready
			} else {
				e.pass(3*time.Second, 4*tt.host)
			}
			w.say(rest)
		}
		trial := mustBeOK(t, runOn(t, "limits.cpu.time", e, e, bench.Params{"percent": "10"}))
		for metric, want := range map[string][]float64{"CPULimitUse": tt.use, "HostLimitUse": tt.hostUse} {
			// The host's count has four parts: the first reading is at the start.
			got := trial.Values(metric)
			if metric == "HostLimitUse" && len(got) == 1 {
				got[0] *= 3.0 / 4
			}
			if len(got) != len(want) || len(got) > 0 && !near(got[0], want[0]) {
				t.Errorf("%s: %s = %v, want %v", tt.what, metric, got, want)
			}
		}
	}
}

// A raised limit is judged by the guest's count, too. The host's throttling, which belongs to the pod's limit, is not read.
func TestScaledLimitsInAGuest(t *testing.T) {
	quick, _ := defaults(t)
	for _, tt := range []struct {
		what          string
		inForce       func(first, last float64) float64
		use, response []float64
	}{
		{"full response", follows, []float64{1}, []float64{1}},
		{"no response", ignores, []float64{1}, []float64{2}},
		{"no limit", func(_, _ float64) float64 { return 1 }, []float64{4}, nil},
	} {
		guest := &loaded{rate: 1900, inForce: tt.inForce, left: idle, steps: wholeOf(quick["steps"]), read: make(chan struct{})}
		guest.worker = newWorker(guest.sysbench)
		e := &virtual{worker: guest.worker, stats: func(*working, int) (time.Duration, error) {
			parts, err := loadedCost{engine: guest}.CPU()
			return parts[monitor.Container], err
		}}
		trial := mustBeOK(t, runOn(t, scaling, e, e, quick))
		for metric, want := range map[string][]float64{"CPULimitUse": tt.use, "LimitResponse": tt.response} {
			if got := trial.Values(metric); len(got) != len(want) || len(got) > 0 && (got[0] < 0.98*want[0] || got[0] > 1.02*want[0]) {
				t.Errorf("%s: %s = %v, want %v", tt.what, metric, got, want)
			}
		}
	}
}
