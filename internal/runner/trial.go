package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// LimitError reports a call or a trial that exceeded its time limit.
type LimitError struct {
	What  string // the phase, or "trial"
	Limit time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s took longer than its limit of %v", e.What, e.Limit)
}

// OutputLimitError reports a program that wrote more than bench.MaxOutput.
type OutputLimitError struct{}

func (OutputLimitError) Error() string {
	return fmt.Sprintf("a program wrote more than %d MiB of output, which is more than a result: make it quieter", bench.MaxOutput>>20)
}

// outputShown is the number of bytes that is kept of a failed trial's output.
const outputShown = 4 << 10

// attempt identifies one execution of a benchmark.
type attempt struct {
	// name is unique in the run. It is part of the names of all objects of the trial.
	name string
	// what is the trial in messages, limit its time limit.
	what  string
	limit time.Duration
	// hurried is set if a call has exceeded its limit, so that the clean-up gives the next one less time.
	hurried bool
	// tracing is the trace of the trial; nil for a timed one.
	tracing *tracing
}

// asTrial is the attempt of the trial with this number.
func (r *run) asTrial(seq int) attempt {
	return attempt{name: fmt.Sprintf("t%d", seq), what: "the trial", limit: r.TrialLimit}
}

// trial is one execution of a benchmark. It implements bench.Core; the parts of bench.Trial are in files of their own.
type trial struct {
	attempt
	r         *run
	work      plan.Work
	target    string
	engine    engine.Engine
	began     time.Time
	group     *cgroup.Group
	hostGroup *cgroup.Group // of processes outside the target; nil without such processes or without cgroups
	cost      cost
	monitor   *monitored // nil without samples of memory and CPU
	// cancel cancels the benchmark's context with an error that no call of the benchmark returns.
	cancel context.CancelCauseFunc

	mu         sync.Mutex
	costMixed  bool // the cost includes processes outside the target
	outside    bool // there are such processes
	created    int
	containers []engine.Container
	fresh      []string // images that were made for this trial
	pulled     []string // images that the engine may have, even if the pull failed
	watches    []*meter.Watch
	phases     []result.Phase
	failed     map[string]int // calls, by the name of the phase
	lastFailed error          // of the last failed call
	samples    []result.Sample
	histograms []result.Distribution
	timelines  []result.Timeline
	latencies  []latencies
	conditions map[string]string
	scratch    map[bench.Medium]string
	calls      []Call      // for Config.Calls
	clocks     *meter.Pair // for times of other programs; nil if the trial needs none
	clockErr   error       // a time of another program that cannot be right
}

var _ bench.Core = (*trial)(nil)

// forBenchmark returns the trial with all its parts.
func (t *trial) forBenchmark() bench.Trial {
	return bench.Trial{
		Core: t, Params: t.work.Params, Info: t.engine.Info(),
		Images: trialImages{trialStorage{t}}, Network: trialNetwork{t}, Host: trialHost{t}, Storage: trialStorage{t}, Cost: trialCost{t},
		Install: trialInstall{t}, Energy: trialEnergy{t}, Details: trialDetails{t}, Latency: trialLatency{t}, Pods: trialPods{t}, Trace: trialTrace{t},
	}
}

// now is the time since the start of the trial.
func (t *trial) now() time.Duration { return t.r.Clock.Now().Sub(t.began) }

func (t *trial) Sleep(ctx context.Context, d time.Duration) (time.Duration, error) {
	if err := t.r.Clock.Sleep(ctx, d); err != nil {
		return 0, err
	}
	return t.now(), nil
}

func (t *trial) Require(n bench.Needs) error {
	if err := supports(t.engine, n.Capabilities); err != nil {
		return err
	}
	return t.r.fits(n, guard.Least)
}

// Invariant object-names.
func (t *trial) Spec(argv ...string) engine.Spec {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created++
	files := t.r.Images[t.work.Benchmark.Image]
	return engine.Spec{
		// The width is fixed: runsc accepts a prefix of an ID, and reports 1 and 10 as "ambiguous".
		ID:        fmt.Sprintf("%s%s-%s-%05d", engine.Prefix, t.r.RunID, t.name, t.created),
		Rootfs:    files.Rootfs,
		Image:     files.Ref,
		Process:   engine.Process{Args: argv},
		Resources: t.limits(),
	}
}

// limits are the limits of the trial's containers. A CPU set of the plan's limits replaces the pinned CPUs.
func (t *trial) limits() engine.Resources {
	l := t.work.Limits
	l.CPUSet = cmp.Or(l.CPUSet, t.r.WorkloadCPUs)
	if t.r.CPUs > 0 && l.CPU > float64(t.r.CPUs) {
		l.CPU = 0
	}
	return l
}

// recordLimits makes the limits conditions of the trial. A benchmark that sets a limit of its own replaces the condition.
func (t *trial) recordLimits() {
	l := t.limits()
	cpus := "%v CPUs"
	if l.CPU == 1 {
		cpus = "%v CPU"
	}
	for _, c := range []struct{ name, value string }{
		{"cpus", l.CPUSet},
		{"CPU limit", spelled(l.CPU, cpus)},
		{"memory limit", spelled(float64(l.Memory)/(1<<20), "%.6g MiB")},
		{"process limit", spelled(float64(l.PIDs), "%.0f")},
	} {
		if c.value != "" {
			t.Condition(c.name, c.value)
		}
	}
	if set := t.work.Limits.CPU; l.CPU != set {
		t.Condition("CPU limit", fmt.Sprintf("none: this machine has %s, and the plan's limit is %v", wording.Counted(t.r.CPUs, "CPU"), set))
	}
}

// spelled formats a limit, or returns an empty string without one.
func spelled(limit float64, format string) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf(format, limit)
}

func (t *trial) Condition(name, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conditions == nil {
		t.conditions = map[string]string{}
	}
	t.conditions[result.ConditionText(name)] = result.ConditionText(value)
	if len(t.conditions) > result.MaxConditions {
		panic(fmt.Sprintf("benchmark %s has more than %d conditions", t.work.Benchmark.Name, result.MaxConditions))
	}
}

func (t *trial) Create(ctx context.Context, spec engine.Spec) (engine.Container, bench.Span, error) {
	if err := t.canLimit(spec.Resources); err != nil {
		return nil, bench.Span{}, err
	}
	var c engine.Container
	span, err := t.Time(ctx, "create", func(ctx context.Context) (err error) {
		c, err = t.engine.Create(ctx, spec)
		return err
	})
	if err != nil {
		return nil, span, err
	}
	t.keep(c)
	return c, span, nil
}

// keep registers a container for the clean-up.
func (t *trial) keep(c engine.Container) {
	t.mu.Lock()
	t.containers = append(t.containers, c)
	t.mu.Unlock()
}

// canLimit returns an error if limits cannot work on this host with any engine. Runtimes differ on a kernel without
// the controller: some fail with messages of their own, others ignore the limit.
func (t *trial) canLimit(r engine.Resources) error {
	if t.group == nil {
		return nil
	}
	for _, limit := range []struct {
		wanted           bool
		what, controller string
	}{{r.Memory > 0, "a memory limit", "memory"}, {r.CPU > 0, "a CPU limit", "cpu"}, {r.PIDs > 0, "a process limit", "pids"}} {
		if !limit.wanted {
			continue
		}
		if refusal := t.group.Refusal(limit.controller); refusal != nil {
			return &engine.UnsupportedError{What: limit.what, Reason: refusal.Cause, Advice: refusal.Remedy}
		}
	}
	return nil
}

func (t *trial) Time(ctx context.Context, phase string, call func(context.Context) error) (bench.Span, error) {
	type step struct {
		name string
		bench.Span
		failed bool // the engine went on without it
	}
	var total bench.Span
	var steps []step
	start := t.now()
	err := t.bounded(ctx, phase, func(ctx context.Context) (err error) {
		var region *bench.Span // from the first step to the last
		ctx = engine.WithStopwatch(ctx, func(name string, call func() error) error {
			span, err := t.span(func() error { return t.tracing.within(phase, name, call) })
			if name != "" {
				t.called(phase+"/"+name, span, err)
			}
			if errors.Is(err, engine.ErrRefused) {
				return err
			}
			if region == nil {
				region = &bench.Span{Start: span.Start}
			}
			region.End = span.End
			if name != "" {
				steps = append(steps, step{name, span, err != nil})
			}
			return err
		})
		total, err = t.span(func() error { return t.tracing.call(phase, func() error { return call(ctx) }) })
		if region != nil {
			total = *region
		}
		return err
	})
	t.called(phase, bench.Span{Start: start, End: t.now()}, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil && !engine.Unsupported(err) {
			if t.failed == nil {
				t.failed = map[string]int{}
			}
			t.failed[phase]++
			t.lastFailed = err
		}
		return bench.Span{}, err // a failure never becomes a time
	}
	if len(t.latencies) > 0 {
		return total, nil
	}
	t.phases = append(t.phases, phaseOf(phase, total))
	for _, s := range steps {
		t.phases = append(t.phases, phaseOf(phase+"/"+s.name, s.Span))
		if t.work.Benchmark.Steps && !s.failed && t.declares(s.name) {
			t.samples = append(t.samples, result.Sample{Metric: s.name, Value: s.Seconds()})
		}
	}
	return total, nil
}

// span times one call.
func (t *trial) span(call func() error) (bench.Span, error) {
	start := t.now()
	err := call()
	return bench.Span{Start: start, End: t.now()}, err
}

func phaseOf(name string, s bench.Span) result.Phase {
	return result.Phase{Name: name, Start: s.Start, Duration: s.End - s.Start}
}

// bounded gives one call its time limit.
func (t *trial) bounded(ctx context.Context, what string, call func(context.Context) error) error {
	err := t.r.limit(ctx, what, t.r.CallLimit, call)
	if timedOut(err) && ctx.Err() == nil {
		t.mu.Lock()
		t.hurried = true
		t.mu.Unlock()
	}
	return err
}

// timedOut reports whether a limit was exceeded.
func timedOut(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit)
}

// limited adds the limit that was exceeded to an error: the callee may only know of a cancelled context.
func limited(ctx context.Context, err error) error {
	var limit, cause *LimitError
	if err == nil || !errors.As(context.Cause(ctx), &limit) || errors.As(err, &cause) {
		return err
	}
	return fmt.Errorf("%w: %w", limit, err)
}

func (t *trial) Watch() bench.Watch {
	w := meter.NewWatch(t.now, func() { t.cancel(OutputLimitError{}) })
	t.mu.Lock()
	t.watches = append(t.watches, w)
	t.mu.Unlock()
	return w
}

func (t *trial) Record(metric string, value float64) {
	t.mustDeclare(metric)
	t.mu.Lock()
	t.samples = append(t.samples, result.Sample{Metric: metric, Value: value})
	t.mu.Unlock()
}

// mustDeclare panics if the benchmark does not have the metric.
func (t *trial) mustDeclare(metric string) {
	if !t.declares(metric) {
		panic(fmt.Sprintf("benchmark %s records %q, which it does not declare", t.work.Benchmark.Name, metric))
	}
}

// declares reports whether the benchmark has the metric.
func (t *trial) declares(metric string) bool {
	return slices.ContainsFunc(t.work.Benchmark.Metrics, func(m result.Metric) bool { return m.Name == metric })
}

// trialDetails implements bench.Details.
type trialDetails struct{ *trial }

func (t trialDetails) Distribution(d result.Distribution) {
	t.mu.Lock()
	t.histograms = append(t.histograms, d)
	t.mu.Unlock()
}

func (t trialDetails) Timeline(l result.Timeline) {
	l.Group, l.Name = result.ConditionText(l.Group), result.ConditionText(l.Name)
	t.mu.Lock()
	t.timelines = append(t.timelines, l)
	t.mu.Unlock()
}

// executeOnce runs an attempt of the trial from set-up to clean-up, and waits for the end of an outage.
func (r *run) executeOnce(ctx context.Context, work plan.Work, target Target, identity attempt) (result.Trial, ending) {
	explain := r.Outages.Begin(ctx)
	t := &trial{attempt: identity, r: r, work: work, target: target.Name, engine: target.Engine, began: r.Clock.Now()}
	out := result.Trial{Started: t.began.UTC().Round(0)}
	noise := r.Noise.Begin()
	kills := r.oomKills()
	self := selfCPU()
	t.recordLimits()
	for name, value := range t.engine.Info().Conditions {
		t.Condition(name, value)
	}
	err := t.makeGroup()
	if err == nil {
		t.beginCost()
		t.beginMonitor()
		if err = t.beginTrace(); err == nil {
			err = t.run(ctx)
		}
		if err == nil {
			err = t.checkClocks()
		}
	}
	end := ending{isInterrupted: err != nil && ctx.Err() != nil}
	removal := t.cleanUp(ctx)
	if !end.isInterrupted {
		end = r.awaitOutage(ctx, t.failure(err, removal), explain)
	}
	if end == (ending{}) {
		r.breaker.note(target.Name, err, removal)
	}
	if traceErr := t.endTrace(); err == nil {
		err = traceErr
	}
	// A failed trial has no values, and a trial that was not cleaned up is not reliable.
	cleanup := errors.Join(removal, t.endMonitor(), t.endCost())
	if removal == nil {
		cleanup = errors.Join(cleanup, t.searchTraces(ctx))
	}
	err = errors.Join(err, cleanup)
	out.Self = selfCPU() - self
	out.Host = noise(work.Benchmark.Waits)
	out.Elapsed = t.now()
	out.Phases, out.Conditions = t.phases, t.conditions
	out.Status, out.Reason = statusOf(err)
	if n := r.oomKills() - kills; n > 0 && (out.Status == result.Failed || out.Status == result.Timeout) {
		out.Reason += fmt.Sprintf("; during the trial the kernel killed processes of this host because it was out of memory (%d): if the trial was not meant to cause this, set smaller parameters or a higher limit", n)
	}
	if cleanup != nil && out.Status == result.Skipped {
		out.Status = result.Failed
	}
	if err == nil {
		t.reduced()
		out.Samples, out.Distributions, out.Timelines = t.samples, t.histograms, t.timelines
	} else if out.Status != result.Skipped {
		out.Output, out.FailedCalls = t.output(), t.failed
	}
	t.passCalls(out.Status)
	return out, end
}

// run calls the benchmark. A panic in it fails the trial and does not end a run of hours.
func (t *trial) run(ctx context.Context) (err error) {
	ctx, t.cancel = context.WithCancelCause(ctx)
	defer t.cancel(nil)
	defer t.followGauge()()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the benchmark itself is broken, please report it: %v\n%s", p, debug.Stack())
		}
		// The benchmark may have returned no error, or only the cancelled context's.
		var flood, cause OutputLimitError
		if errors.As(context.Cause(ctx), &flood) && !errors.As(err, &cause) {
			err = errors.Join(flood, err)
		}
	}()
	return t.r.limit(ctx, t.what, t.limit, func(ctx context.Context) error {
		return t.work.Benchmark.Run(ctx, t.forBenchmark())
	})
}

// groupName is the path of the trial's cgroup.
func (t *trial) groupName() string { return fmt.Sprintf("/%s%s/%s", engine.Prefix, t.r.RunID, t.name) }

// makeGroup creates a cgroup for all processes of the trial.
func (t *trial) makeGroup() error {
	placer, ok := t.engine.(engine.CgroupPlacer)
	if !ok || t.r.Cgroups == nil {
		return nil
	}
	name := t.groupName()
	g, err := t.r.Cgroups.Create(name)
	if err != nil {
		return fmt.Errorf("make a cgroup for the trial: %w", err)
	}
	t.group = g
	return placer.SetCgroupParent(name)
}

// output is the end of the output of the trial's programs.
func (t *trial) output() string {
	var output []byte
	for _, w := range t.watches {
		output = append(output, w.Bytes()...)
	}
	return strings.ToValidUTF8(string(output[max(0, len(output)-outputShown):]), "\uFFFD")
}

func statusOf(err error) (result.Status, string) {
	var limit *LimitError
	switch {
	case err == nil:
		return result.OK, ""
	case errors.As(err, &limit):
		return result.Timeout, err.Error()
	case engine.Unsupported(err):
		return result.Skipped, err.Error()
	default:
		return result.Failed, err.Error()
	}
}

// oomKills is the number of processes of the host that the kernel killed because it was out of memory; 0 if unknown.
func (r *run) oomKills() int64 {
	if r.OOMKills == nil {
		return 0
	}
	n, err := r.OOMKills()
	if err != nil {
		return 0
	}
	return n
}

// selfCPU is the CPU time of this program without its children.
func selfCPU() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
