// Package execution executes a plan on this machine, for any front end: the command line, a server or
// an agent of a cluster.
//
// An [Execution] opens a [Session] on the host, opens the targets, prepares the images, runs the trials and
// records them in a store. At its end it removes everything that it has on the host. The package prints
// nothing and reads no flags: events go to an [Observer], and results go to the store.
//
// It refuses a plan that does not fit this machine, a plan that mixes fake and real targets, and a resumed
// run whose targets or images have changed since its start.
package execution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/host/noise"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Config describes one execution.
type Config struct {
	Plan  plan.Plan
	Store Store
	// RunID names the run. A resumed run has the ID of Earlier.
	RunID string
	// Earlier is the run to resume, with its trials; nil starts a new run.
	Earlier *result.Run
	// Concurrency is the reaction to another run on this machine. Fake targets ignore other runs.
	Concurrency Concurrency
	// Folder is the output folder. Fake targets keep their files in it while they run.
	Folder string
	// Secret is the secret of touchstone peer on other machines. Plans without another machine need none.
	Secret peer.Secret
	// Pods is the place of the measured pods if this program is an agent in a cluster. The plan then has targets of target.Kubernetes only, and
	// nothing of this machine is changed. It is nil on a machine.
	Pods *k8s.Config
	// Node is the node that an agent measures, for the record; nil on a machine. Without Pods the agent has left its pod and measures the node itself, and
	// the names of its resources there have the ID of the cluster run.
	Node *result.Node
	// Outages knows when the node of Pods is away; nil on a machine.
	Outages runner.Outages
	// Programs makes the workload image on a node, with files in a directory of the run, in place of a build; nil builds it.
	Programs func(ctx context.Context, dir string) (v1.Image, error)
	// Images are for the record, beside the images of benchmarks: a privileged agent has the image of its pod. A resumed run needs the same ones.
	Images []result.Image
	// Selfcheck is the last selfcheck on this machine, for the record; nil without one.
	Selfcheck *result.Selfcheck
	Tool      result.Tool
	Observer  Observer
	// Trace receives every call of an engine; nil receives none.
	Trace slog.Handler
}

// Store records a run. *store.Store is one.
type Store interface {
	Create(ctx context.Context, run result.Run) error
	Resume(ctx context.Context, runID string) error
	Append(ctx context.Context, runID string, trial result.Trial) error
	AppendTrace(ctx context.Context, runID string, trace result.Trace) error
	Stopping(ctx context.Context, runID string, rule *result.Stopping) error
	Finish(ctx context.Context, runID string, state result.State, end time.Time, caveats []string) error
	// TrialTimes returns the mean time of a trial of each cell in earlier runs.
	TrialTimes(ctx context.Context) (map[result.Cell]time.Duration, error)
}

// Outcome is how an execution ended.
type Outcome struct {
	runner.Outcome
	// Recorded is true if the store holds the run, even when the execution returned an error.
	Recorded bool
	// Available is true if at least one target could be opened.
	Available bool
	// Missing has the targets that the plan names and that could not be opened. A target that only a pattern selects is not among them.
	Missing []string
}

// Observer receives the events of an execution, one call at a time.
type Observer interface {
	runner.Observer
	// Report reports any other event.
	Report(e Event)
}

// Event is an event outside the trials.
type Event struct {
	Kind EventKind
	Text string
}

// EventKind is the kind of an event.
type EventKind int

// The kinds of events.
const (
	// Note is a fact that the user should know.
	Note EventKind = iota
	// Opening is the attempt to open a target. Text is the target's name.
	Opening
	// Step is the start of a step that may take minutes, for example the build of an image.
	Step
	// Skipped is a target or an image that is not available, with the reason.
	Skipped
	// Swept is the removal of the leftovers of a killed run.
	Swept
	// Estimate is the time that the run will take.
	Estimate
	// Ended is the end of a cell before the other cells, by the rule of the plan.
	Ended
)

// Execution is one execution of a plan. It is used once.
type Execution struct {
	Config
	environment

	work    []plan.Work
	targets []runner.Target
	// absent has the targets that the plan names and that could not be opened.
	absent []string
	host   engine.Engine // runs the peer programs on the host; nil if no target has a network with a peer
	caches pageCache
	// untraced is the caveat of a run without the traces of its plan; empty otherwise.
	untraced []string
	metrics  metrics
	remotes  remotes
	secrets  result.Hider // of variables that must not be stored
	shown    result.Hider // of all variables, which events and traces do not show
}

// environment holds the engines, the clock and the noise source of an execution. For fake targets they
// are simulated and touch nothing. An agent in a cluster has only the engine of pods, and touches nothing of the node.
type environment struct {
	drivers engines.Drivers
	clock   meter.Clock
	noise   runner.Noise
	isFake  bool
	session *Session       // nil for fake targets and for pods
	turn    machineTurn    // empty for fake targets and for pods
	sampler *noise.Sampler // nil for fake targets
	scratch string         // without a session: the directory for trials' files, for fake targets created when it is needed
}

// New prepares an execution and touches nothing on the host.
func New(config Config) (*Execution, error) {
	e := &Execution{Config: config}
	if e.Earlier != nil {
		e.RunID = e.Earlier.ID
	}
	var err error
	switch {
	case e.Pods != nil:
		e.environment, err = podEnvironment(e.RunID, e.Folder, e.Plan, *e.Pods)
	case slices.ContainsFunc(e.Plan.Targets, isPod):
		err = &UsageError{fmt.Errorf("the plan has targets of a cluster (%s), which are measured from within it: use touchstone cluster run", target.Kubernetes)}
	case !slices.ContainsFunc(e.Plan.Targets, isFake):
		e.drivers, e.clock = engines.All(fake.NewClock(), e.Plan.Engines.Sockets), meter.System{}
		e.session = NewSession(e.hostID(), e.Plan)
	case slices.ContainsFunc(e.Plan.Targets, func(t plan.Pattern) bool { return !isFake(t) }):
		err = &UsageError{errors.New("a plan has either fake targets or real ones: the two kinds do not share a clock")}
	default:
		e.environment, err = fakeEnvironment(e.RunID, e.Folder, e.Plan)
	}
	return e, err
}

// hostID names the resources of the run on its machine. The ID of a node's run also has the name of the node, which does not belong into all of their names.
func (e *Execution) hostID() string {
	if e.Node != nil && e.Pods == nil {
		return e.Node.Fleet
	}
	return e.RunID
}

// Clock returns the clock of the execution. Fake targets have a simulated one.
func (e *Execution) Clock() meter.Clock { return e.clock }

// Abandon removes at once all resources of the execution on the host. It may be called from another goroutine while
// Run is under way; the program must end right after.
func (e *Execution) Abandon() error {
	if e.session == nil {
		return nil
	}
	return e.session.Abandon()
}

// Run executes the plan. All recorded trials stay in the store, also after an error. A cancelled ctx ends
// the run in order: the outcome is then Interrupted.
func (e *Execution) Run(ctx context.Context) (Outcome, error) {
	work, notes, err := Check(e.Plan)
	if err == nil {
		err = e.hideVariables()
	}
	if err != nil {
		return Outcome{}, err
	}
	e.work = work
	// A resumed run drops the page cache as before, also for another user.
	drops := dropsCaches(e.Plan, work)
	e.Plan.DropCaches = &drops
	for _, note := range slices.Concat(e.Plan.Notes, notes) {
		e.report(Note, note)
	}
	if e.remotes, err = findRemotes(ctx, work, e.Tool.Version, e.Secret, e.report); err != nil {
		return Outcome{}, err
	}
	if err := e.takeTurn(ctx); err != nil {
		return Outcome{}, err
	}
	defer e.turn.end()
	if err := e.open(ctx); err != nil {
		return Outcome{}, err
	}
	outcome, err := e.run(ctx)
	outcome.Available, outcome.Missing = slices.ContainsFunc(e.targets, available), e.absent
	return outcome, errors.Join(err, e.close())
}

// hideVariables keeps the values of environment variables out of events, and the values of from-env also out of the store.
func (e *Execution) hideVariables() error {
	p, err := e.Plan.WithSecrets(os.LookupEnv)
	if err != nil {
		return err
	}
	secrets := append(p.Secrets(), e.Secret.Reveal()) // a hider ignores an empty value
	e.secrets = result.NewHider(secrets)
	e.shown = result.NewHider(slices.Concat(secrets, p.Variables()))
	e.Observer = discreet{e.Observer, e.shown}
	return nil
}

// discreet is an observer without the values of environment variables.
type discreet struct {
	Observer
	hider result.Hider
}

func (d discreet) Ended(t result.Trial) { d.Observer.Ended(d.hider.Trial(t)) }

func (d discreet) Report(e Event) {
	e.Text = d.hider.Text(e.Text)
	d.Observer.Report(e)
}

func (e *Execution) report(kind EventKind, text string) { e.Observer.Report(Event{kind, text}) }

// open opens the session on the host. Fake targets and pods have none.
func (e *Execution) open(ctx context.Context) error {
	switch {
	case e.isFake:
		return nil
	case e.session == nil:
		e.sample()
		return os.MkdirAll(e.scratch, 0o700)
	}
	for _, w := range e.work {
		e.session.Containers = max(e.session.Containers, w.Needs().Containers)
	}
	leftovers, err := e.session.Open(ctx, func(reason string) { e.report(Note, reason) })
	for _, s := range leftovers {
		e.report(Swept, s.String())
	}
	if err == nil {
		e.sample()
	}
	return err
}

// sample begins to observe the disturbances of the machine.
func (e *Execution) sample() {
	e.sampler = noise.NewSampler("/")
	e.noise = hostNoise{e.sampler}
}

// engineSession is the session that engines receive.
func (e *Execution) engineSession() engine.Session {
	if e.session == nil {
		return engine.Session{RunID: e.RunID, Seccomp: e.Plan.Seccomp, Pods: e.Plan.Pods.Engine()}
	}
	return e.session.Session
}

func (e *Execution) run(ctx context.Context) (Outcome, error) {
	facts, err := e.openTargets(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	files, images, err := e.images(ctx)
	if err != nil {
		return Outcome{}, err
	}
	clockStart := e.clock.Now()
	run, err := e.record(ctx, facts, slices.Concat(images, e.Images))
	if err != nil {
		return Outcome{}, err
	}
	start := run.Started
	if e.Earlier != nil {
		start = time.Now().UTC()
	}
	e.metrics.bench = run.Bench
	config, err := e.runnerConfig(ctx, run, files)
	if err != nil {
		return Outcome{Recorded: true}, err
	}
	outcome, err := runner.Run(ctx, config)
	run.Caveats = append(run.Caveats, e.stopped(run.Stopping)...)
	state := result.Complete
	if err != nil {
		outcome.Caveats = append(outcome.Caveats, fmt.Sprintf("the run ended early: %v", err))
	}
	if err != nil || outcome.Interrupted {
		state = result.Interrupted
	}
	caveats := slices.Concat(run.Caveats, e.caches.caveats(), e.untraced, e.metrics.dropped, outcome.Caveats, e.turn.laterCaveats(run.Caveats))
	for i := range caveats {
		caveats[i] = e.secrets.Text(caveats[i])
	}
	end := start.Add(e.clock.Now().Sub(clockStart)) // the time of day may be set during a run
	err = errors.Join(err, e.Store.Finish(context.WithoutCancel(ctx), e.RunID, state, end, caveats))
	return Outcome{Outcome: outcome, Recorded: true}, err
}

func (e *Execution) runnerConfig(ctx context.Context, run result.Run, files map[bench.Image]runner.Image) (runner.Config, error) {
	config := runner.Config{
		RunID: e.hostID(), Seed: run.Seed, Work: e.work, Targets: e.targets,
		Warmup: e.Plan.Warmup, Stop: stats.StopRule{Min: e.Plan.Blocks, Max: e.Plan.BlockLimit(), Precision: float64(e.Plan.Precision)},
		Budget: e.Plan.Budget, TrialLimit: e.Plan.Timeout.Trial, CallLimit: e.Plan.Timeout.Call,
		Clock: e.clock, Noise: e.noise, Outages: e.Outages, Done: run.Trials,
		Images: files, Data: e.scratch, Registry: &fakeImages{}, Remote: e.remotes.open,
		Record: func(t result.Trial) error {
			// A finished trial is kept, also when the run is being interrupted.
			return e.Store.Append(context.WithoutCancel(ctx), e.RunID, e.secrets.Trial(e.metrics.known(t)))
		},
		Observer: e.Observer, Tracing: e.tracing(ctx, run),
		Pulling: func(target string, image bench.Image) {
			e.report(Step, fmt.Sprintf("getting image %s ready on %s", image, target))
		},
	}
	var err error
	if config.Expected, err = e.Store.TrialTimes(ctx); err != nil {
		return config, err
	}
	config.Estimated = func(p runner.Progress) { e.report(Estimate, estimate(p, len(e.working()))) }
	e.useRule(ctx, run, &config)
	if e.Trace != nil { // it may end during the run
		config.Calls = func(c runner.Calls) { e.trace(ctx, c) }
	}
	if !e.isFake {
		e.useMachine(&config)
		config.Registry = noRegistry{}
	}
	if e.session == nil {
		return config, nil
	}
	config.Data, config.Cgroups, config.Registry = e.session.dir.Data, e.session.Cgroups, e.session.Registry
	config.Programs, config.Proc = e.drivers.Programs(), "/proc"
	config.EmptyHidden = e.session.Launcher.EmptyHidden
	e.useHost(&config)
	e.host, err = e.openHostEngine(ctx)
	config.Host = e.host
	return config, err
}

// record creates the run in the store, or resumes the earlier one.
func (e *Execution) record(ctx context.Context, facts []result.Target, images []result.Image) (result.Run, error) {
	if e.Earlier != nil {
		if err := errors.Join(sameTargets(e.Earlier.Targets, facts), sameImages(e.Earlier.Images, images)); err != nil {
			return result.Run{}, fmt.Errorf("resume run %s: %w; its results would be mixed: start a new run", e.RunID, err)
		}
		return *e.Earlier, e.Store.Resume(ctx, e.RunID)
	}
	seed := rand.Uint64()
	if e.Plan.Seed != nil {
		seed = *e.Plan.Seed
	}
	if err := e.checkRule(); err != nil {
		return result.Run{}, err
	}
	var targets []target.Target
	for _, f := range facts {
		t, err := target.Parse(f.Name)
		if err != nil {
			return result.Run{}, err
		}
		targets = append(targets, t)
	}
	e.Plan = e.Plan.Pin(targets, e.work, seed)
	run := result.Run{
		ID: e.RunID, Name: e.Plan.Name, State: result.Running, Started: time.Now().UTC(), Tool: e.Tool, Seed: seed,
		Baseline: e.baseline(), Plan: string(e.Plan.YAML()), Host: e.facts(), Targets: facts,
		Stopping: e.rule(),
		Images:   images, Caveats: slices.Concat(e.Plan.Notes, e.pinned(), e.turn.caveats(), e.remotes.caveats),
	}
	run.Host.Selfcheck, run.Host.Storage = e.Selfcheck, e.storage()
	for _, w := range e.work {
		b := w.Benchmark
		if !slices.ContainsFunc(run.Bench, func(o result.Benchmark) bool { return o.Name == b.Name }) {
			run.Bench = append(run.Bench, b.Recorded())
		}
	}
	switch {
	case e.isFake:
		run.Caveats = append(run.Caveats, "all targets are fake: nothing was measured, the numbers are made up")
	case e.session == nil:
		run.Overhead.Requests = runner.MeasureRequests(ctx, e.clock, e.targets)
	default:
		run.Caveats = append(run.Caveats, tuned(process.Tuning())...)
		overhead, err := runner.MeasureOverhead(ctx, e.clock, e.session.Launcher, e.session.Probe)
		if err != nil {
			return result.Run{}, err
		}
		overhead.Requests = runner.MeasureRequests(ctx, e.clock, e.targets)
		run.Overhead = overhead
	}
	return run, e.Store.Create(ctx, run)
}

// baseline returns the plan's baseline, else native if it works, else the first target that works.
func (e *Execution) baseline() string {
	if e.Plan.Baseline.Engine != "" {
		return e.Plan.Baseline.String()
	}
	first := ""
	for _, t := range e.targets {
		switch {
		case !available(t):
		case t.Name == target.Native:
			return t.Name
		case first == "":
			first = t.Name
		}
	}
	return first
}

// close closes all engines and removes the run's resources on the host.
func (e *Execution) close() error {
	var errs []error
	for _, t := range e.targets {
		if available(t) {
			errs = append(errs, t.Engine.Close())
		}
	}
	if e.host != nil {
		errs = append(errs, e.host.Close())
	}
	if e.sampler != nil {
		e.sampler.Close()
	}
	if e.session == nil {
		errs = append(errs, os.RemoveAll(e.scratch))
	} else {
		errs = append(errs, e.session.Close())
	}
	return errors.Join(errs...)
}
