package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// tracer is a tracer whose counts are the steps.
type tracer struct {
	mu      sync.Mutex
	steps   []string
	stopped bool
	err     error
}

func (c *tracer) Step(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.New("a step after the end")
	}
	c.steps = append(c.steps, name)
	return nil
}

func (c *tracer) Stop() ([]result.TraceCounts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.err != nil {
		return nil, c.err
	}
	return []result.TraceCounts{{Step: strings.Join(c.steps, ","), Component: "runtime"}}, nil
}

func (c *tracer) Timeline() *result.TraceTimeline {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		return nil
	}
	return &result.TraceTimeline{Length: time.Second}
}

// traced makes the harness trace each cell n times. It returns the recorded traces, and the number of started tracers.
func (l *harness) traced(n int, err error) (traces *[]result.Trace, starts *int) {
	traces, starts = new([]result.Trace), new(int)
	l.config.Tracing = runner.Tracing{
		Count: n,
		Start: func(monitor.Target) (runner.Tracer, error) {
			*starts++
			return &tracer{err: err}, nil
		},
		Record: func(t result.Trace) error {
			*traces = append(*traces, t)
			return nil
		},
	}
	return traces, starts
}

func spellTraces(traces []result.Trace) []string {
	var lines []string
	for _, t := range traces {
		line := fmt.Sprintf("%d %s %s", t.Seq, t.Target, t.Status)
		for _, c := range t.Counts {
			line += " " + c.Step
		}
		lines = append(lines, strings.TrimSpace(line+" "+t.Reason))
	}
	return lines
}

// steps is a benchmark with an engine call of two steps, one of which is refused first.
func steps(ctx context.Context, b bench.Trial) error {
	if _, err := bench.Start(ctx, b); err != nil {
		return err
	}
	_, err := b.Time(ctx, "update", func(ctx context.Context) error {
		if err := engine.Step(ctx, "Ask", func() error { return nil }); err != nil {
			return err
		}
		return engine.Call(ctx, func() error { return nil })
	})
	b.Record("Value", 1)
	return err
}

// Traced trials come after all timed ones, which run without a tracer. The steps of the counts are the phases and their steps.
//
// Invariant trace-after: No time is measured under a tracer: traces come after all timed trials and have no samples, and a benchmark whose trials run
// under a tracer has only counts.
func TestTracesFollowTrials(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Stop.Min, l.config.Stop.Max = 2, 2
	l.work("test.one.x", steps)
	traces, starts := l.traced(2, nil)
	record := l.config.Record
	l.config.Record = func(trial result.Trial) error {
		if *starts > 0 {
			t.Errorf("trial %d follows a tracer", trial.Seq)
		}
		return record(trial)
	}
	l.ok()
	if len(l.trials) != 2 || *starts != 2 {
		t.Errorf("%d trials and %d tracers", len(l.trials), *starts)
	}
	const order = "create,,start,,update,update/Ask,update,"
	expect.Equal(t, "the traces", []string{"1 fake/a ok " + order, "2 fake/a ok " + order}, spellTraces(*traces))
	expect.Equal(t, "the timeline", &result.TraceTimeline{Length: time.Second}, (*traces)[0].Timeline)
	for _, phase := range (*traces)[0].Phases {
		if phase.Duration < 0 || phase.Name == "" {
			t.Errorf("phase %+v", phase)
		}
	}
}

// A resumed run has only the traces that are missing.
func TestTracesOfAResumedRun(t *testing.T) {
	l := newHarness(t, "fake/a", "fake/b")
	l.work("test.one.x", steps)
	traces, _ := l.traced(2, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	record := l.config.Tracing.Record
	l.config.Tracing.Record = func(trace result.Trace) error {
		if trace.Seq == 3 {
			interrupt()
		}
		return record(trace)
	}
	out, err := l.run(ctx)
	must.Do(t, err)
	if !out.Interrupted || len(out.Caveats) > 0 || len(*traces) != 3 {
		t.Fatalf("the interrupted run: %+v with %d traces", out, len(*traces))
	}
	next := l.again()
	rest, _ := next.traced(2, nil)
	next.config.Tracing.Done = *traces
	next.ok()
	if len(next.trials) != 0 || len(*rest) != 1 || (*rest)[0].Seq != 4 {
		t.Errorf("the resumed run has %d trials and the traces %v", len(next.trials), spellTraces(*rest))
	}
	counts := map[string]int{}
	for _, trace := range append(*traces, *rest...) {
		counts[trace.Target]++
	}
	expect.Equal(t, "the traces by target", map[string]int{"fake/a": 2, "fake/b": 2}, counts)
}

// A trace without counts has the reason, and a cell without any is a caveat. Timed trials and their exit code do not depend on it.
func TestTracesWithoutCounts(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.one.x", steps)
	traces, _ := l.traced(2, errors.New("2 events are missing"))
	out := l.ok()
	expect.Equal(t, "the traces", []string{"1 fake/a failed 2 events are missing", "2 fake/a failed 2 events are missing"}, spellTraces(*traces))
	expect.Equal(t, "the caveats", []string{"no counts of a trace for test.one.x on fake/a: 2 events are missing"}, out.Caveats)
	expect.Equal(t, "the trials", map[result.Status]int{result.OK: 1}, out.Counts)
}

// A machine that cannot trace has one caveat, and not one for each cell.
func TestCaveatOfManyCellsWithoutCounts(t *testing.T) {
	l := newHarness(t, "fake/a", "fake/b")
	l.work("test.one.x", steps)
	l.work("test.two.x", steps)
	l.traced(1, errors.New("2 events are missing"))
	expect.Equal(t, "the caveats", []string{"no counts of a trace for test.one.x on fake/a and 3 more: 2 events are missing"}, l.ok().Caveats)
}

// A trial that a benchmark refuses for a trace is tried once, and a cell without trials has no trace.
func TestUntraceable(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Host = l.config.Targets[0].Engine
	l.work("test.host.x", func(ctx context.Context, b bench.Trial) error {
		spec := b.Spec("/bin/echo", "x")
		if _, err := b.Host.Create(ctx, spec); err != nil {
			return err
		}
		b.Record("Value", 1)
		return nil
	})
	l.work("test.skipped.x", func(context.Context, bench.Trial) error { return &engine.UnsupportedError{What: "it", Reason: "none"} })
	traces, _ := l.traced(3, nil)
	out := l.ok()
	const reason = "the trial's processes: some are outside of the target, and a trace does not separate them"
	expect.Equal(t, "the traces", []string{"1 fake/a skipped " + reason}, spellTraces(*traces))
	expect.Equal(t, "the caveats", []string{"no counts of a trace for test.host.x on fake/a: " + reason}, out.Caveats)
}

// The work of calls that are under way at once has a step of its own.
func TestTracesOfConcurrentCalls(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.many.x", func(ctx context.Context, b bench.Trial) error {
		second, done := make(chan struct{}), make(chan error, 1)
		_, err := b.Time(ctx, "first", func(ctx context.Context) error {
			go func() {
				_, err := b.Time(ctx, "second", func(context.Context) error { close(second); return nil })
				done <- err
			}()
			<-second
			return errors.Join(<-done, engine.Step(ctx, "Last", func() error { return nil }))
		})
		b.Record("Value", 1)
		return err
	})
	traces, _ := l.traced(1, nil)
	l.ok()
	const step = "several calls at once"
	expect.Equal(t, "the traces", []string{"1 fake/a ok first," + strings.Join([]string{step, step, step}, ",") + ","}, spellTraces(*traces))
}

// A budget that ends before the traces is a caveat.
func TestTracesBeyondTheBudget(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Work = []plan.Work{}
	l.config.Budget = 100 * ms
	l.work("test.one.x", func(ctx context.Context, b bench.Trial) error {
		_, err := b.Sleep(ctx, 60*ms)
		b.Record("Value", 1)
		return err
	})
	traces, _ := l.traced(3, nil)
	out := l.ok()
	if len(*traces) > 1 || len(out.Caveats) != 1 || !strings.Contains(out.Caveats[0], "traces are missing, because the budget of the run ended") {
		t.Errorf("%d traces, caveats %q", len(*traces), out.Caveats)
	}
}

// byStep is a tracer of two components. The threads of a count are the place of the step.
type byStep struct{ steps []string }

func (c *byStep) Step(name string) error {
	c.steps = append(c.steps, name)
	return nil
}

func (*byStep) Timeline() *result.TraceTimeline { return &result.TraceTimeline{} }

func (c *byStep) Stop() (counts []result.TraceCounts, err error) {
	for i, name := range c.steps {
		for _, component := range []string{"runtime", "container"} {
			counts = append(counts, result.TraceCounts{Step: name, Component: component, Threads: int64(i + 1)})
		}
	}
	return counts, nil
}

// The trials of a benchmark that counts run under a tracer. Their steps and components are the benchmark's choice, the run keeps their counts,
// and they have no times and no other traces.
//
// Invariant trace-after.
func TestTracedBenchmark(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Stop.Min, l.config.Stop.Max, l.config.Warmup = 2, 2, 1
	var counts []result.TraceCounts
	l.work("test.calls.x", func(ctx context.Context, b bench.Trial) error {
		if _, err := b.Time(ctx, "early", func(context.Context) error { return nil }); err != nil {
			return err
		}
		if err := b.Trace.Begin("step"); err != nil {
			return err
		}
		if err := steps(ctx, b); err != nil {
			return err
		}
		var err error
		if counts, err = b.Trace.Counts("container"); err != nil {
			return err
		}
		if _, err := b.Trace.Counts(); err == nil {
			t.Error("a trace that has ended has counts")
		}
		if err := b.Trace.Begin("late"); err == nil {
			t.Error("a step begins after the end of the trace")
		}
		return nil
	})
	l.config.Work[0].Benchmark.Traced = true
	traces, starts := l.traced(2, nil)
	l.config.Tracing.Start = func(monitor.Target) (runner.Tracer, error) {
		*starts++
		return &byStep{}, nil
	}
	l.ok()
	expect.Equal(t, "the traces", []string{"1 fake/a ok step", "2 fake/a ok step"}, spellTraces(*traces))
	expect.Equal(t, "the counts", []result.TraceCounts{{Step: "step", Component: "container", Threads: 3}}, counts)
	expect.Equal(t, "the counts of the trace", counts, (*traces)[1].Counts)
	expect.Equal(t, "the timeline of steps of the benchmark's choice", (*result.TraceTimeline)(nil), (*traces)[1].Timeline)
	if *starts != 3 || len(l.trials) != 3 || len(l.trials[0].Phases) > 0 || len((*traces)[0].Phases) == 0 {
		t.Errorf("%d tracers and %d trials, the first with %d phases", *starts, len(l.trials), len(l.trials[0].Phases))
	}

	next := l.again()
	rest, _ := next.traced(0, nil)
	next.config.Tracing.Start = l.config.Tracing.Start
	next.config.Tracing.Done, next.config.Stop.Min, next.config.Stop.Max = *traces, 3, 3
	next.ok()
	expect.Equal(t, "the traces of the resumed run", []string{"3 fake/a ok step"}, spellTraces(*rest))
}

// functionTracer is a tracer of functions.
type functionTracer struct{ tracer }

func (f *functionTracer) Attach() (int, time.Duration, error) {
	return 5, time.Second, f.Step("attached")
}

// A benchmark of functions has a tracer of its own kind, and chooses the time of its attachment. No other tracer attaches.
func TestFunctionTracer(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.functions.x", func(_ context.Context, b bench.Trial) error {
		count, took, err := b.Trace.Attach()
		if count != 5 || took != time.Second {
			t.Errorf("%d functions in %v", count, took)
		}
		_, countsErr := b.Trace.Counts()
		b.Record("Value", 1)
		if _, _, err := b.Trace.Attach(); err == nil {
			t.Error("a tracer attaches after the end of the trace")
		}
		return errors.Join(err, countsErr)
	})
	l.work("test.calls.x", func(_ context.Context, b bench.Trial) error {
		_, _, err := b.Trace.Attach()
		return err
	})
	l.work("test.other.x", func(_ context.Context, b bench.Trial) error {
		_, _, err := b.Trace.Attach()
		return err
	})
	for i := range 2 {
		l.config.Work[i].Benchmark.Traced = true
	}
	l.config.Work[0].Benchmark.Functions = true
	_, starts := l.traced(0, nil)
	f := &functionTracer{}
	l.config.Tracing.StartFunctions = func(monitor.Target) (runner.Tracer, error) { return f, nil }
	l.ok()
	expect.Equal(t, "the steps", []string{"attached"}, f.steps)
	for i, want := range []result.Status{result.OK, result.Failed, result.Failed} {
		if got := l.trials[i].Status; got != want {
			t.Errorf("%s is %s because %q, want %s", l.trials[i].Benchmark, got, l.trials[i].Reason, want)
		}
	}
	if *starts != 1 {
		t.Errorf("%d tracers of system calls, want one", *starts)
	}
}

// A benchmark that counts is skipped where no tracer works, with the reason, and fails if the counts are not complete.
func TestTracedBenchmarkWithoutCounts(t *testing.T) {
	cause := &engine.UnsupportedError{What: "a trace", Reason: "no BTF", Advice: "use another kernel"}
	for name, tt := range map[string]struct {
		start func(monitor.Target) (runner.Tracer, error)
		want  result.Status
		text  string
	}{
		"no tracer": {nil, result.Skipped, "this run has no tracer"},
		"no BTF":    {func(monitor.Target) (runner.Tracer, error) { return nil, cause }, result.Skipped, "no BTF; use another kernel"},
		"lost": {
			func(monitor.Target) (runner.Tracer, error) {
				return &tracer{err: errors.New("2 events are missing")}, nil
			},
			result.Failed, "2 events are missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			l.work("test.calls.x", func(_ context.Context, b bench.Trial) error {
				_, err := b.Trace.Counts()
				b.Record("Value", 1)
				return err
			})
			l.config.Work[0].Benchmark.Traced = true
			traces, _ := l.traced(0, nil)
			l.config.Tracing.Start = tt.start
			l.ok()
			if trial := l.trials[0]; trial.Status != tt.want || !strings.Contains(trial.Reason, tt.text) || len(trial.Samples)+len(*traces) > 0 {
				t.Errorf("%s because %q with %d samples and %d traces; want %s because of %q", trial.Status, trial.Reason, len(trial.Samples), len(*traces), tt.want, tt.text)
			}
		})
	}
	l := newHarness(t, "fake/a")
	l.work("test.other.x", func(_ context.Context, b bench.Trial) error {
		_, err := b.Trace.Counts()
		return errors.Join(err, b.Trace.Begin("step"))
	})
	l.ok()
	if trial := l.trials[0]; trial.Status != result.Failed || strings.Count(trial.Reason, "does not declare one") != 2 {
		t.Errorf("a benchmark without a declaration: %s because %q", trial.Status, trial.Reason)
	}
}
