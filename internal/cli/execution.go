package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// surroundings are the engines with what they and the runner need: those of the
// host, or, for a plan of fake targets, made-up ones that touch nothing.
type surroundings struct {
	drivers engines.Drivers
	clock   runner.Clock
	noise   runner.Noise
	session *session      // nil for fake targets
	sampler *host.Sampler // nil for fake targets
	scratch string        // of fake targets: the folder, made when it is needed, for what trials prepare on the host
}

// surround makes the surroundings of a run, whose results are kept in dir.
func (a *App) surround(ctx context.Context, p plan.Plan, runID, dir string) (surroundings, error) {
	isFake := func(t plan.Pattern) bool { return t.Engine == fake.Name }
	clock := fake.NewClock()
	s := surroundings{drivers: engines.All(clock, p.Engines.Sockets), clock: runner.SystemClock{}}
	switch {
	case !slices.ContainsFunc(p.Targets, isFake):
		session, err := a.open(ctx, runID, p)
		if err != nil {
			return surroundings{}, err
		}
		s.session, s.sampler = session, host.NewSampler("/")
		s.noise = hostNoise{s.sampler}
	case slices.IndexFunc(p.Targets, func(t plan.Pattern) bool { return !isFake(t) }) >= 0:
		return surroundings{}, usage(errors.New("a plan has fake targets or real ones, not both: they do not share a clock"))
	default:
		s.clock, s.noise = clock, quiet{}
		scratch, err := filepath.Abs(filepath.Join(dir, ".fake-"+runID))
		if err != nil {
			return surroundings{}, err
		}
		s.scratch = scratch
	}
	return s, nil
}

// close removes what is on the host.
func (s surroundings) close(a *App) error {
	if s.session != nil {
		s.sampler.Close()
		return a.close(s.session)
	}
	return os.RemoveAll(s.scratch)
}

// fakeImages are images of fake targets, which hold nothing.
type fakeImages struct{ made int }

func (f *fakeImages) Fresh(context.Context, int64) (string, error) {
	f.made++
	return fmt.Sprintf("fake/fresh:%d", f.made), nil
}

func (*fakeImages) Forget(string) {}

// fakeRootfs is the root file system of fake targets, which nobody reads.
const fakeRootfs = "/"

// quiet is the host of fake targets: nothing disturbs it.
type quiet struct{}

func (quiet) Begin() func([]bench.Medium) result.Disturbance {
	return func([]bench.Medium) result.Disturbance { return result.Disturbance{} }
}

// hostNoise is the real host's noise.
type hostNoise struct{ *host.Sampler }

func (n hostNoise) Begin() func([]bench.Medium) result.Disturbance {
	before := n.Sampler.Begin()
	return func(waits []bench.Medium) result.Disturbance {
		var loads []host.Resource
		for _, m := range waits {
			switch m {
			case bench.Disk:
				loads = append(loads, host.IO)
			case bench.Memory:
				loads = append(loads, host.Memory)
			}
		}
		return n.End(before, loads...)
	}
}

// execution is one run of a plan.
type execution struct {
	app *App
	surroundings
	plan    plan.Plan
	work    []plan.Work
	db      *store.Store
	runID   string
	earlier *result.Run
	created bool // the run is in the results file

	targets []runner.Target
	host    engine.Engine // for programs at the host's end of a network; nil if there is no such end
	conduct conduct
}

// engineSession is what engines get to know.
func (r *execution) engineSession() engine.Session {
	if r.session == nil {
		return engine.Session{RunID: r.runID}
	}
	return r.session.Session
}

func (r *execution) run(ctx context.Context) (runner.Outcome, error) {
	facts, err := r.openTargets(ctx)
	if err != nil {
		return runner.Outcome{}, err
	}
	if ctx.Err() != nil {
		return runner.Outcome{}, context.Cause(ctx)
	}
	files, images, err := r.images(ctx)
	if err != nil {
		return runner.Outcome{}, err
	}
	run, err := r.record(ctx, facts, images)
	if err != nil {
		return runner.Outcome{}, err
	}
	config := runner.Config{
		RunID: r.runID, Seed: run.Seed, Work: r.work, Targets: r.targets,
		Blocks: r.plan.Blocks, Warmup: r.plan.Warmup, MaxBlocks: r.plan.BlockLimit(),
		Budget: r.plan.Budget, TrialLimit: r.plan.Timeout.Trial, CallLimit: r.plan.Timeout.Call,
		Clock: r.clock, Noise: r.noise, Done: run.Trials,
		Files: files, Data: r.scratch, Images: &fakeImages{},
		Record: func(t result.Trial) error {
			// A trial that was made is kept, also when the run is being ended.
			return r.db.Append(context.WithoutCancel(ctx), r.runID, t)
		},
	}
	if r.session != nil {
		config.Data, config.Cgroups, config.Images = r.session.dir.Data, r.session.Cgroups, r.session.Registry
		config.Components = true
		r.allow(&config)
		if r.host, err = r.hostEnd(ctx); err != nil {
			return runner.Outcome{}, err
		}
		config.Host = r.host
	}
	if r.plan.Precision > 0 {
		config.Precise = func(trials []result.Trial) bool { return report.Precise(trials, r.plan.Precision, run.Seed) }
	}
	progress := newProgress(r.app.env, r.clock)
	config.Observer, config.Pulling = progress, progress.Pulling
	outcome, err := runner.Run(ctx, config)
	progress.done()
	state := result.Complete
	if err != nil || outcome.Interrupted {
		state = result.Interrupted
	}
	return outcome, errors.Join(err, r.db.Finish(context.WithoutCancel(ctx), r.runID, state, time.Now().UTC(), slices.Concat(run.Caveats, r.conduct.caveats(), outcome.Cut)))
}

// openTargets makes the plan's targets live. What cannot work stays in the run with its
// reason.
func (r *execution) openTargets(ctx context.Context) ([]result.Target, error) {
	var candidates []engine.Candidate
	if r.session != nil && needsCandidates(r.plan) { // there are no candidates for fake targets
		candidates = r.drivers.Candidates(ctx, r.engineSession())
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	wanted, err := selectTargets(r.plan, candidates)
	if err != nil {
		return nil, err
	}
	if r.session != nil {
		r.session.Targets = wanted
	}
	defer r.app.note("")
	var facts []result.Target
	for _, t := range wanted {
		r.app.note("trying %s …", t)
		e, err := r.drivers.Open(ctx, t, r.engineSession())
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		info := engine.Info{Target: t}
		switch {
		case err == nil:
			info = e.Info()
		case t.Engine == fake.Name:
			return nil, usage(err) // its options are wrong
		case !engine.Unsupported(err):
			return nil, fmt.Errorf("open target %s: %w", t, err)
		default:
			var open *engine.OpenError
			if errors.As(err, &open) {
				info = open.Info
			}
			r.app.note("")
			fmt.Fprintf(r.app.env.Stderr, "skipped: %v\n", printable(err.Error()))
		}
		r.targets = append(r.targets, runner.Target{Name: t.String(), Engine: e, Err: err})
		facts = append(facts, targetFacts(info, err))
	}
	return facts, nil
}

func targetFacts(info engine.Info, err error) result.Target {
	t := result.Target{
		Name: info.Target.String(), Binary: info.Binary, Version: result.ConditionText(info.Version), Isolation: string(info.Isolation),
		Cgroup: info.Cgroup, Rootless: info.Rootless, Notes: info.Notes,
	}
	switch {
	case info.Target.Engine == target.Native:
		t.Kind = result.KindNative
	case info.Bare:
		t.Kind, t.Runtime = result.KindRuntime, info.Target.RuntimeText()
	default:
		t.Kind, t.Runtime = result.KindEngine, info.Target.RuntimeText()
	}
	if err != nil {
		t.Unavailable = why(err)
	}
	return t
}

// record makes the run known to the results file, or takes it up again.
func (r *execution) record(ctx context.Context, facts []result.Target, images []result.Image) (result.Run, error) {
	if r.earlier != nil {
		if err := errors.Join(sameTargets(r.earlier.Targets, facts), sameImages(r.earlier.Images, images)); err != nil {
			return result.Run{}, fmt.Errorf("go on with run %s: %w; its results would be mixed: start a new run", r.runID, err)
		}
		r.created = true
		return *r.earlier, r.db.Resume(ctx, r.runID)
	}
	seed := rand.Uint64()
	if r.plan.Seed != nil {
		seed = *r.plan.Seed
	}
	var targets []target.Target
	for _, f := range facts {
		t, err := target.Parse(f.Name)
		if err != nil {
			return result.Run{}, err
		}
		targets = append(targets, t)
	}
	r.plan = r.plan.Pin(targets, r.work, seed)
	run := result.Run{
		ID: r.runID, Name: r.plan.Name, State: result.Running, Started: time.Now().UTC(), Tool: tool(), Seed: seed,
		Baseline: r.baseline(), Plan: string(r.plan.YAML()), Host: host.Facts("/"), Targets: facts,
		Images: images, Caveats: slices.Concat(r.plan.Notes, r.pinned()),
	}
	for _, w := range r.work {
		b := w.Benchmark
		if !slices.ContainsFunc(run.Bench, func(o result.Benchmark) bool { return o.Name == b.Name }) {
			run.Bench = append(run.Bench, b.Recorded())
		}
	}
	if r.session == nil {
		run.Caveats = append(run.Caveats, "all targets are fake: nothing was measured, the numbers are made up")
	} else {
		overhead, err := runner.MeasureOverhead(ctx, r.clock, r.session.Launcher, r.session.Probe)
		if err != nil {
			return result.Run{}, err
		}
		run.Overhead = overhead
	}
	if err := r.db.Create(ctx, run); err != nil {
		return result.Run{}, err
	}
	r.created = true
	return run, nil
}

// sameTargets makes sure that a run goes on with what it began with.
func sameTargets(then, now []result.Target) error {
	for _, t := range then {
		i := slices.IndexFunc(now, func(n result.Target) bool { return n.Name == t.Name })
		switch {
		case i < 0 || now[i].Unavailable != "" && t.Unavailable == "":
			return fmt.Errorf("%s worked when the run began and does not any more", t.Name)
		case now[i].Version != t.Version || now[i].Binary != t.Binary:
			return fmt.Errorf("%s was %s (%s) when the run began and is %s (%s) now", t.Name, t.Version, t.Binary, now[i].Version, now[i].Binary)
		}
	}
	return nil
}

// baseline is the plan's, else native if it is there, else the first target that works.
func (r *execution) baseline() string {
	if r.plan.Baseline.Engine != "" {
		return r.plan.Baseline.String()
	}
	first := ""
	for _, t := range r.targets {
		if t.Engine == nil {
			continue
		}
		if t.Name == target.Native {
			return t.Name
		}
		if first == "" {
			first = t.Name
		}
	}
	return first
}

// close ends all engines and removes what the run has on the host.
func (r *execution) close() error {
	var errs []error
	for _, t := range r.targets {
		if t.Engine != nil {
			errs = append(errs, t.Engine.Close())
		}
	}
	if r.host != nil {
		errs = append(errs, r.host.Close())
	}
	return errors.Join(append(errs, r.surroundings.close(r.app))...)
}
