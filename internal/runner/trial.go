package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
)

// LimitError says that something took longer than it may.
type LimitError struct {
	What  string // the phase, or "trial"
	Limit time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s took longer than its limit of %v", e.What, e.Limit)
}

// FloodError says that a program wrote more than it may.
type FloodError struct{}

func (FloodError) Error() string {
	return fmt.Sprintf("a program wrote more than %d MiB of output, which is more than a result: make it quieter", bench.MaxOutput>>20)
}

// outputShown is how much of a failed trial's output is kept, in bytes.
const outputShown = 4 << 10

// trial is one execution of a benchmark; it implements bench.Trial.
type trial struct {
	r      *run
	work   plan.Work
	engine engine.Engine
	seq    int
	began  time.Time
	group  *cgroup.Group
	beside *cgroup.Group // for what runs at the host's end; nil if nothing does, or there are no cgroups
	cost   cost
	// ends cancels the benchmark's context, with what has gone wrong beside its calls.
	ends context.CancelCauseFunc

	mu         sync.Mutex
	mixed      bool // what runs at the host's end cannot be told from the target
	created    int
	containers []engine.Container
	fresh      []string // images that were made for this trial
	pulled     []string // images that the engine may have, whatever became of the call
	watches    []*watch
	phases     []result.Phase
	steps      []bench.Step
	samples    []result.Sample
	histograms []result.Distribution
	conditions map[string]string
	scratch    map[bench.Medium]string
}

var _ bench.Trial = (*trial)(nil)

// now is the time since the start of the trial.
func (t *trial) now() time.Duration { return t.r.Clock.Now().Sub(t.began) }

func (t *trial) Param(name string) string {
	value, ok := t.work.Params[name]
	if !ok {
		panic(fmt.Sprintf("benchmark %s asks for its parameter %q, which it does not declare", t.work.Benchmark.Name, name))
	}
	return value
}

func (t *trial) Info() engine.Info { return t.engine.Info() }

func (t *trial) Supports(c engine.Capability) error { return t.engine.Supports(c) }

func (t *trial) Spec(argv ...string) engine.Spec {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created++
	files := t.r.Files[t.work.Benchmark.Image]
	return engine.Spec{
		// Of fixed width: runsc takes the beginning of an ID for the ID, and finds 1 and 10
		// "ambiguous".
		ID:        fmt.Sprintf("%s%s-t%d-%05d", engine.Prefix, t.r.RunID, t.seq, t.created),
		Rootfs:    files.Rootfs,
		Image:     files.Ref,
		Process:   engine.Process{Args: argv},
		Resources: engine.Resources{CPUSet: t.r.WorkloadCPUs},
	}
}

func (t *trial) Scratch(m bench.Medium) (string, error) {
	parent := t.r.Data
	if m == bench.Memory {
		parent = t.r.Memory
	}
	if parent == "" {
		return "", &engine.UnsupportedError{What: "a directory in memory", Reason: "this host has no file system in memory at /run or /dev/shm"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scratch == nil {
		t.scratch = map[bench.Medium]string{}
	}
	t.scratch[m] = filepath.Join(parent, fmt.Sprintf("t%d", t.seq))
	if err := os.MkdirAll(t.scratch[m], 0o700); err != nil {
		return "", fmt.Errorf("make a directory for the trial: %w", err)
	}
	dir, err := os.MkdirTemp(t.scratch[m], "")
	if err != nil {
		return "", fmt.Errorf("make a directory for the trial: %w", err)
	}
	return dir, nil
}

func (t *trial) Room(need bench.Space) error { return t.r.room(need) }

func (t *trial) DropCaches(ctx context.Context) error {
	if t.r.DropCaches == nil {
		return &engine.UnsupportedError{
			What: "a cold page cache", Reason: "the page cache is the whole host's, and dropping it was not allowed",
			Advice: "allow it with --drop-caches, or measure with cache=warm",
		}
	}
	return t.bounded(ctx, "dropping the page cache", t.r.DropCaches)
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

func (t *trial) Link(ctx context.Context) (engine.Link, error) {
	if err := t.engine.Supports(engine.NetworkBridge); err != nil {
		return engine.Link{}, err
	}
	networker, ok := t.engine.(engine.Networker)
	if !ok {
		return engine.Link{}, errors.New("the engine says that it has bridged networks, and has none")
	}
	var link engine.Link
	err := t.bounded(ctx, "making the network", func(ctx context.Context) (err error) {
		link, err = networker.Link(ctx)
		return err
	})
	return link, err
}

func (t *trial) CreateHost(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	link, err := t.Link(ctx)
	if err != nil {
		return nil, err
	}
	if t.r.Host == nil {
		return nil, &engine.UnsupportedError{What: "a program at the host's end of the network", Reason: "nothing runs programs on the host in this run"}
	}
	spec.Network, spec.Join = engine.HostNet, link.Namespace
	spec.Resources.CPUSet = t.r.HostCPUs
	if t.r.HostCPUs != "" {
		t.Condition("cpus of the host's end", t.r.HostCPUs)
	}
	var c engine.Container
	err = t.apart(func() error {
		return t.bounded(ctx, "create at the host's end", func(ctx context.Context) (err error) {
			c, err = t.r.Host.Create(ctx, spec)
			return err
		})
	})
	if c != nil {
		t.mu.Lock()
		t.containers = append(t.containers, c)
		t.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// apart calls f while what the host's engine starts begins in a cgroup beside the trial's: not an instruction of it is
// to count as the target's. The engine of the target shares the launcher, and must not be called meanwhile.
func (t *trial) apart(f func() error) error {
	placer, ok := t.r.Host.(engine.CgroupPlacer)
	if !ok || t.group == nil {
		t.mu.Lock()
		t.mixed = true
		t.mu.Unlock()
		return f()
	}
	beside := t.groupName() + "-host"
	if t.beside == nil {
		g, err := t.r.Cgroups.Create(beside)
		if err != nil {
			return fmt.Errorf("make a cgroup for the host's end: %w", err)
		}
		t.beside = g
	}
	if err := placer.SetCgroupParent(beside); err != nil {
		return err
	}
	err := f()
	// Where the launcher's processes go again is for the target's engine to say: not each has them in the trial's cgroup.
	return errors.Join(err, placer.SetCgroupParent(""), t.engine.(engine.CgroupPlacer).SetCgroupParent(t.groupName()))
}

// groupName is the path of the trial's cgroup.
func (t *trial) groupName() string { return fmt.Sprintf("/%s%s/t%d", engine.Prefix, t.r.RunID, t.seq) }

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
	t.mu.Lock()
	t.containers = append(t.containers, c)
	t.mu.Unlock()
	return c, span, nil
}

// canLimit says why limits cannot hold on this host, whatever the engine. Runtimes differ in what they make of a kernel
// without the controller: some fail with words of their own, others pass over the limit.
func (t *trial) canLimit(r engine.Resources) error {
	if t.group == nil || r.CPU == 0 && r.Memory == 0 {
		return nil
	}
	missing := t.group.Missing()
	switch {
	case r.Memory > 0 && slices.Contains(missing, "memory"):
		return &engine.UnsupportedError{
			What: "a memory limit", Reason: "the kernel offers no memory cgroup controller",
			Advice: "boot without cgroup_disable=memory, on a Raspberry Pi with cgroup_enable=memory",
		}
	case r.CPU > 0 && slices.Contains(missing, "cpu"):
		return &engine.UnsupportedError{What: "a CPU limit", Reason: "the kernel offers no cpu cgroup controller"}
	}
	return nil
}

func (t *trial) FreshImage(ctx context.Context, size int64) (string, error) {
	ref, err := t.r.Images.Fresh(ctx, size)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	t.fresh = append(t.fresh, ref)
	t.mu.Unlock()
	return ref, nil
}

func (t *trial) Pull(ctx context.Context, ref string) (bench.Span, error) {
	puller, err := t.puller()
	if err != nil {
		return bench.Span{}, err
	}
	t.mu.Lock()
	t.pulled = append(t.pulled, ref)
	t.mu.Unlock()
	return t.Time(ctx, "pull", func(ctx context.Context) error { return puller.Pull(ctx, ref) })
}

func (t *trial) RemoveImage(ctx context.Context, ref string) (bench.Span, error) {
	puller, err := t.puller()
	if err != nil {
		return bench.Span{}, err
	}
	span, err := t.Time(ctx, "remove", func(ctx context.Context) error { return puller.RemoveImage(ctx, ref) })
	if err == nil {
		t.mu.Lock()
		t.pulled = slices.DeleteFunc(t.pulled, func(p string) bool { return p == ref })
		t.mu.Unlock()
	}
	return span, err
}

func (t *trial) puller() (engine.Puller, error) {
	if err := t.engine.Supports(engine.CanPull); err != nil {
		return nil, err
	}
	puller, ok := t.engine.(engine.Puller)
	if !ok {
		return nil, errors.New("the engine says that it can pull, and has no way to")
	}
	return puller, nil
}

func (t *trial) Time(ctx context.Context, phase string, call func(context.Context) error) (bench.Span, error) {
	var whole bench.Span
	var steps []bench.Step
	err := t.bounded(ctx, phase, func(ctx context.Context) (err error) {
		var region *bench.Span // from the first step to the last
		ctx = engine.WithStopwatch(ctx, func(name string, call func() error) error {
			span, err := t.span(call)
			if region == nil {
				region = &bench.Span{Start: span.Start}
			}
			region.End = span.End
			if name != "" {
				steps = append(steps, bench.Step{Name: name, Span: span})
			}
			return err
		})
		whole, err = t.span(func() error { return call(ctx) })
		if region != nil {
			whole = *region
		}
		return err
	})
	if err != nil {
		return bench.Span{}, err // a failure never becomes a time
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phases = append(t.phases, phaseOf(phase, whole))
	for _, s := range steps {
		t.phases = append(t.phases, phaseOf(phase+"/"+s.Name, s.Span))
	}
	t.steps = append(t.steps, steps...)
	return whole, nil
}

// span takes the time of one call.
func (t *trial) span(call func() error) (bench.Span, error) {
	start := t.now()
	err := call()
	return bench.Span{Start: start, End: t.now()}, err
}

func phaseOf(name string, s bench.Span) result.Phase {
	return result.Phase{Name: name, Start: s.Start, Duration: s.End - s.Start}
}

func (t *trial) Steps() []bench.Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.steps)
}

func (t *trial) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d, ok := t.engine.(engine.Dialer); ok {
		return d.Dial(ctx, network, address)
	}
	var host net.Dialer
	return host.DialContext(ctx, network, address)
}

// bounded gives one call its time limit.
func (t *trial) bounded(ctx context.Context, what string, call func(context.Context) error) error {
	return t.r.limit(ctx, what, t.r.CallLimit, call)
}

// limited makes sure that an error tells of the limit that brought it about: what was called
// may know of a cancelled context only.
func limited(ctx context.Context, err error) error {
	var limit, told *LimitError
	if err == nil || !errors.As(context.Cause(ctx), &limit) || errors.As(err, &told) {
		return err
	}
	return fmt.Errorf("%w: %w", limit, err)
}

func (t *trial) Watch() bench.Watch {
	w := newWatch(t.now, func() { t.ends(FloodError{}) })
	t.mu.Lock()
	t.watches = append(t.watches, w)
	t.mu.Unlock()
	return w
}

func (t *trial) Record(metric string, value float64) {
	known := slices.ContainsFunc(t.work.Benchmark.Metrics, func(m result.Metric) bool { return m.Name == metric })
	if !known {
		panic(fmt.Sprintf("benchmark %s records %q, which it does not declare", t.work.Benchmark.Name, metric))
	}
	t.mu.Lock()
	t.samples = append(t.samples, result.Sample{Metric: metric, Value: value})
	t.mu.Unlock()
}

func (t *trial) RecordDistribution(d result.Distribution) {
	t.mu.Lock()
	t.histograms = append(t.histograms, d)
	t.mu.Unlock()
}

// execute runs the trial from set-up to clean-up. The second result tells whether the trial
// counts: one that the user interrupted does not.
func (r *run) execute(ctx context.Context, work plan.Work, eng engine.Engine, seq int) (result.Trial, bool) {
	t := &trial{r: r, work: work, engine: eng, seq: seq, began: r.Clock.Now()}
	out := result.Trial{Seq: seq, Started: t.began.UTC().Round(0)}
	noise := r.Noise.Begin()
	kills := r.oomKills()
	self := selfCPU()
	if r.WorkloadCPUs != "" {
		t.Condition("cpus", r.WorkloadCPUs)
	}
	err := t.place()
	if err == nil {
		t.beginCost()
		err = t.run(ctx)
	}
	interrupted := err != nil && ctx.Err() != nil
	// A failed trial has no numbers, and one that did not clean up is not to be trusted.
	dirt := errors.Join(t.cleanUp(ctx), t.endCost())
	err = errors.Join(err, dirt)
	out.Self = selfCPU() - self
	out.Host = noise(work.Benchmark.Waits)
	out.Elapsed = t.now()
	out.Phases, out.Conditions = t.phases, t.conditions
	out.Status, out.Reason = statusOf(err)
	if n := r.oomKills() - kills; n > 0 && (out.Status == result.Failed || out.Status == result.Timeout) {
		out.Reason += fmt.Sprintf("; for want of memory the kernel killed processes on this host meanwhile (%d): if they were of this trial, and that was not the point, set smaller parameters or a higher limit", n)
	}
	if dirt != nil && out.Status == result.Skipped {
		out.Status = result.Failed
	}
	if err == nil {
		out.Samples, out.Distributions = t.samples, t.histograms
	} else if out.Status != result.Skipped {
		out.Output = t.output()
	}
	return out, !interrupted
}

// run calls the benchmark. A panic in it is a failed trial, not the end of a run
// of hours.
func (t *trial) run(ctx context.Context) (err error) {
	ctx, t.ends = context.WithCancelCause(ctx)
	defer t.ends(nil)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the benchmark itself is broken, please report it: %v\n%s", p, debug.Stack())
		}
		// It may have ended without a look at what was wrong, or have seen a cancelled context only.
		var flood, told FloodError
		if errors.As(context.Cause(ctx), &flood) && !errors.As(err, &told) {
			err = errors.Join(flood, err)
		}
	}()
	return t.r.limit(ctx, "the trial", t.r.TrialLimit, func(ctx context.Context) error { return t.work.Benchmark.Run(ctx, t) })
}

// place makes a cgroup for all that the trial will start.
func (t *trial) place() error {
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

// cleanUp removes what the benchmark left, also when the run is being interrupted.
func (t *trial) cleanUp(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	remove := func(call func(context.Context) error) {
		if err := t.bounded(ctx, "the clean-up", call); err != nil {
			// The trial is lost, but what stays would disturb those to come.
			err = errors.Join(err, t.bounded(ctx, "the clean-up", call))
			errs = append(errs, fmt.Errorf("clean up: %w", err))
		}
	}
	for _, c := range slices.Backward(t.containers) {
		remove(c.Delete)
	}
	if puller, ok := t.engine.(engine.Puller); ok {
		for _, ref := range t.pulled {
			remove(func(ctx context.Context) error { return puller.RemoveImage(ctx, ref) })
		}
	}
	for _, ref := range t.fresh {
		t.r.Images.Forget(ref)
	}
	if t.group != nil {
		if err := t.engine.(engine.CgroupPlacer).SetCgroupParent(""); err != nil {
			errs = append(errs, fmt.Errorf("clean up: %w", err))
		}
		for _, g := range []*cgroup.Group{t.group, t.beside} {
			if g == nil {
				continue
			}
			if err := t.bounded(ctx, "the clean-up", g.Destroy); err != nil {
				errs = append(errs, fmt.Errorf("clean up: %w", err))
			}
		}
	}
	for _, dir := range t.scratch {
		if err := os.RemoveAll(dir); err != nil {
			errs = append(errs, fmt.Errorf("clean up: %w", err))
		}
	}
	return errors.Join(errs...)
}

// output is the end of what the trial's programs wrote.
func (t *trial) output() string {
	var all []byte
	for _, w := range t.watches {
		all = append(all, w.Bytes()...)
	}
	return strings.ToValidUTF8(string(all[max(0, len(all)-outputShown):]), "\uFFFD")
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

// oomKills counts the processes of the host that were ended for want of memory, 0 where that is not known.
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
