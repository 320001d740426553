// Package runner executes a plan. It holds the only stopwatch, orders the trials, bounds their time, records each of them,
// and cleans up after each.
//
// Trials are ordered in blocks. A block is one trial of a benchmark on each target, in an order shuffled from the run's seed,
// so that a drift of the host affects all targets alike. Blocks of different benchmarks alternate, so that a run that is
// interrupted or exceeds its budget has results for all benchmarks. With Decide a decided cell leaves the
// later blocks. The order of a block depends only on the seed and the block, so that a resumed run equals an uninterrupted one.
//
// A trial that an outage of its machine interrupts is repeated in its place, because it is no evidence against its target: see Outages.
package runner

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/decision"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// A cell is given up after failuresAllowed consecutive trials without success, or timeoutsAllowed of them that exceeded a
// limit: a target that hangs for a minute in each trial would otherwise delay the whole run.
const (
	failuresAllowed = 3
	timeoutsAllowed = 2
)

// Config is the input of a run.
type Config struct {
	RunID string
	Seed  uint64
	// Images are the images of Work.
	Images map[bench.Image]Image
	// Data and Memory are directories on disk and in memory for the files of trials. Memory is empty if the host has no
	// such directory.
	Data, Memory string
	// Registry publishes fresh images for bench.Images.
	Registry Registry
	Work     []plan.Work
	Targets  []Target
	// Host runs processes outside the targets: at the host's end of a network, and for bench.Host. It shares the session of the targets. It
	// is nil if no target has a network and no benchmark needs it.
	Host engine.Engine
	// DropCaches drops the host's page cache; nil if the user has not allowed it.
	DropCaches func(context.Context) error
	// Supply reads the free resources of the host.
	Supply guard.Supply
	// Meminfo reads the host's memory in bytes, by the names of /proc/meminfo; nil if unknown.
	Meminfo func() (map[string]int64, error)
	// OOMKills counts the processes that the kernel has killed because the host was out of memory; nil if unknown.
	OOMKills func() (int64, error)
	// Emulator returns the interpreter that the host's kernel starts for a program. If it is nil, none is known.
	Emulator func(program []byte) bench.Emulator
	// WorkloadCPUs are the CPUs of containers, HostCPUs the CPUs of programs at the host's end of a network, as the kernel
	// spells them. Empty stands for all CPUs.
	WorkloadCPUs, HostCPUs string
	// Remote starts a server on another machine: see bench.Network. It may be nil.
	Remote func(ctx context.Context, place remote.Place, server remote.Server) (bench.Remote, error)
	// CPUs is the number of the machine's CPUs; 0 if unknown. A CPU limit above it is not set, because no engine can hold
	// it and some refuse it.
	CPUs int
	// Warmup is the number of blocks that are recorded and marked as warm-up. Stop decides about the number of
	// measured blocks.
	Warmup int
	Stop   stats.StopRule
	// Decide ends single cells of benchmarks without a number of blocks of their own; nil ends none. Stop is then not used for them.
	Decide *decision.Rule
	// Stopped is called when Decide ends a cell, also for the decisions that an earlier process has made; it may be nil. After an error
	// the run ends.
	Stopped func(result.Stop) error
	// Expected are the times of a trial in earlier runs, for estimates before the first trial of a cell; nil if none is known.
	Expected map[result.Cell]time.Duration
	// Estimated is called once, when the time of each cell is known; it may be nil.
	Estimated func(Progress)
	// Budget is the longest time for the run, the trials in Done included. A trial that is under way at its end does not count, and
	// its clean-up takes at most a CallLimit. Warm-up takes at most half of the budget. 0 is no limit.
	Budget time.Duration
	// TrialLimit bounds a trial without its clean-up, CallLimit one call of an engine.
	TrialLimit, CallLimit time.Duration
	// Done are the trials that an earlier process recorded for this run.
	Done []result.Trial

	Clock   meter.Clock
	Cgroups *cgroup.Hierarchy // nil if trials have no cgroups
	// Proc is the kernel's proc file system, for monitored benchmarks. It is empty if the targets are not on this host.
	Proc string
	// ThreadCPU returns the CPU time of the calling thread, which is the cost of a sample. If it is nil, the kernel's value is used.
	ThreadCPU func() time.Duration
	// Energy is the gauge of the host's energy. If it is nil, NoEnergy is the reason.
	Energy   Energy
	NoEnergy string
	// Footprint computes the space of programs on the host's disk; nil for targets without programs on this host.
	Footprint func(programs []string) (footprint.Footprint, error)
	// EmptyHidden removes the files that runtimes left at hidden mount points; nil without such points.
	EmptyHidden func() error
	// Programs are the programs of engines and runtimes. They assign the processes of a target to components. It is nil for
	// targets without processes on this host.
	Programs monitor.Programs
	Noise    Noise
	// Outages knows when the place of the targets is away. Nil stands for NoOutages.
	Outages Outages
	Record  func(result.Trial) error
	// Tracing traces the trials of benchmarks that need it, and adds trials under a tracer after all others. Its Count is 0 for none of these.
	Tracing Tracing
	// Calls receives the calls of each trial after its clean-up; nil receives none.
	Calls    func(Calls)
	Observer Observer
	// Pulling is called before a target pulls an image, which may take long; it may be nil.
	Pulling func(target string, image bench.Image)
}

// cellOf names the work on a target.
func cellOf(w plan.Work, target string) result.Cell {
	return result.Cell{Benchmark: w.Benchmark.Name, Params: w.Key(), Target: target}
}

// Image is a prepared image. Err is set if it could not be prepared; benchmarks that need it are skipped.
type Image struct {
	Rootfs string // a directory with the image's file system
	Ref    string // a reference for engines that pull
	Err    error
}

// Target is a target of the run. If it cannot work here, Engine is nil and Err is the reason.
type Target struct {
	Name   string
	Engine engine.Engine
	Err    error
}

// Registry publishes images that no engine has seen, for engines that pull.
type Registry interface {
	// Fresh publishes an image with a new layer of size bytes, and returns its reference.
	Fresh(ctx context.Context, size int64) (ref string, err error)
	// Minimal publishes an image for an architecture with a program that exits with bench.MinimalCode, and writes its file
	// system to the new directory dir. It returns the reference and the program.
	Minimal(ctx context.Context, arch, dir string) (ref string, program []byte, err error)
	// Served returns the size of the parts that only this image has, and how many of their bytes engines have received.
	Served(ref string) (transfer, size int64)
	// Forget withdraws the image. It is idempotent.
	Forget(ref string)
}

// Noise observes the host during a trial. The function that Begin returns reports the disturbance since then, without
// the waits of the trial itself.
type Noise interface {
	Begin() func(waits []bench.Medium) result.Disturbance
}

// Observer follows the run. Its methods are called one at a time.
type Observer interface {
	// Started is called before a trial, with the progress of the run.
	Started(t result.Trial, p Progress)
	// Ended is called after a trial.
	Ended(t result.Trial)
}

// Progress is the progress of a run in trials.
type Progress struct {
	Done, Total int
	// Left is the estimated time to the end; 0 without an estimate. AtMost is set if cells may end before, so that Total and Left are the greatest
	// values. Least is the estimated time if each of them ends as soon as it can.
	Left, Least time.Duration
	AtMost      bool
	// Blocks is the estimated number of blocks that the budget is enough for, and Goal the number that the plan asks for. Only Estimated gets them, and
	// both are 0 if the budget is enough for Goal, or if cells may end before.
	Blocks, Goal int
	// Traces is set if the trial is a traced one. Done and Total are then the traces of its cell.
	Traces bool
}

// Outcome is the end of a run.
type Outcome struct {
	Counts map[result.Status]int
	// Caveats describe the missing results: the budget ended, a cell was given up, a cost is unknown.
	Caveats []string
	// Interrupted is set if the context was cancelled.
	Interrupted bool
}

type run struct {
	Config
	began     time.Time
	earlier   time.Duration // the trials in Done
	seq       int
	lastTrace int // the number of the last trace
	done      map[slot]bool
	over      map[result.Cell]bool // skipped or given up: no trial will follow
	failed    map[result.Cell]streak
	work      map[result.Cell][]int // indexes of work; for the stop rule
	measured  []decision.Measured   // by index of work, without warm-up; for the stop rule
	ready     []bool                // by index of work: the stop rule needs no more blocks
	decisions []*decision.State     // by index of work; nil without Decide
	pulled    []pulled
	hungPulls map[pulled]int        // pulls that exceeded their limit
	left      []leftover            // the objects of trials that no clean-up has removed yet
	group     *cgroup.Group         // of the whole run; nil without cgroups
	units     map[string]guard.Cost // by target: the cost of one container, once it is known
	looks     *stats.Sequential     // of Decide
	estimated bool                  // Estimated was called
	breaker   breaker
	pace      pace
	outages   outages
	out       Outcome
}

// slot identifies a trial in the order of a run.
type slot struct {
	result.Cell
	Block  int
	Warmup bool
}

type streak struct{ failures, timeouts int }

func (s streak) over() bool {
	return s.failures+s.timeouts >= failuresAllowed || s.timeouts >= timeoutsAllowed
}

// Run executes the plan until it is done, its budget ends or ctx is cancelled. It returns an error only if a trial cannot be
// recorded: the run then ends, since further results would be lost.
func Run(ctx context.Context, config Config) (Outcome, error) {
	r := &run{
		Config: config, began: config.Clock.Now(), done: map[slot]bool{}, over: map[result.Cell]bool{}, failed: map[result.Cell]streak{},
		work: map[result.Cell][]int{}, measured: make([]decision.Measured, len(config.Work)), ready: make([]bool, len(config.Work)), units: map[string]guard.Cost{}, breaker: newBreaker(), hungPulls: map[pulled]int{}, out: Outcome{Counts: map[result.Status]int{}},
	}
	if r.Outages == nil {
		r.Outages = NoOutages{}
	}
	for i, w := range r.Work {
		for _, t := range r.Targets {
			cell := cellOf(w, t.Name)
			r.work[cell] = append(r.work[cell], i)
		}
		r.decisions = append(r.decisions, r.decisionsOf(w))
	}
	r.pace.earlier = r.Expected
	for _, t := range r.Done {
		r.note(t)
		r.seq = max(r.seq, t.Seq)
		r.earlier += t.Elapsed
	}
	for i := range r.Tracing.Done {
		r.lastTrace = max(r.lastTrace, r.Tracing.Done[i].Seq)
	}
	if err := r.limitGroup(); err != nil {
		r.out.Caveats = append(r.out.Caveats, fmt.Sprintf("the run's cgroup has no limit that protects the host: %v", err))
	}
	for _, t := range r.Targets {
		if t.Engine == nil {
			continue
		}
		if caveat := t.Engine.Info().Caveat; caveat != "" && !slices.Contains(r.out.Caveats, caveat) {
			r.out.Caveats = append(r.out.Caveats, caveat)
		}
	}
	if err := r.skips(); err != nil {
		return r.out, err
	}
	budget, cancel := r.withBudget(ctx)
	defer cancel()
	complete, err := r.rounds(budget)
	hasTraces := false
	if err == nil {
		hasTraces, err = r.traces(budget)
	}
	r.out.Interrupted = ctx.Err() != nil
	if err == nil && !complete && !r.out.Interrupted {
		err = r.cut()
	}
	if err == nil && !hasTraces && !r.out.Interrupted {
		r.out.Caveats = append(r.out.Caveats, "traces are missing, because the budget of the run ended")
	}
	r.removeRest(ctx)
	if caveat := r.outages.caveat(); caveat != "" {
		r.out.Caveats = append(r.out.Caveats, caveat)
	}
	return r.out, err
}

// skips records one skipped trial for each cell that cannot work.
func (r *run) skips() error {
	for _, w := range r.Work {
		lack := r.lack(w)
		for _, t := range r.Targets {
			reason := t.Err
			if reason == nil {
				reason = lack
			}
			if reason == nil && t.Engine != nil {
				reason = supports(t.Engine, w.Needs().Capabilities)
			}
			if reason == nil {
				continue
			}
			if err := r.skip(slot{Cell: cellOf(w, t.Name)}, reason.Error()); err != nil {
				return err
			}
		}
	}
	return nil
}

// lack returns an error if a benchmark cannot run on any target.
func (r *run) lack(w plan.Work) error {
	files, ok := r.Images[w.Benchmark.Image]
	switch {
	case !ok:
		return &engine.UnsupportedError{What: "image " + string(w.Benchmark.Image), Reason: "it was not prepared for this run"}
	case files.Err != nil:
		return files.Err
	}
	n := w.Needs()
	if n.Energy {
		if err := r.hasEnergy(); err != nil {
			return err
		}
	}
	return r.fits(n, guard.Least)
}

// supports returns the engine's error for the first capability that it does not support.
func supports(e engine.Engine, capabilities []engine.Capability) error {
	for _, c := range capabilities {
		if err := e.Supports(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) skip(place slot, reason string) error {
	if r.over[place.Cell] {
		return nil
	}
	r.seq++
	return r.record(result.Trial{
		Seq: r.seq, Cell: place.Cell, Block: place.Block, Warmup: place.Warmup,
		Status: result.Skipped, Reason: reason, Started: r.Clock.Now().UTC().Round(0),
	})
}

// rounds executes a block of each benchmark in turn until all have enough. It returns false if ctx ended before.
func (r *run) rounds(ctx context.Context) (complete bool, err error) {
	for n := 0; ; n++ {
		worked := false
		r.estimate(max(0, n-r.Warmup))
		for i := range r.Work {
			warmup, block := n < r.Warmup, n
			if !warmup {
				block -= r.Warmup
			}
			if !warmup {
				if err := r.decide(i, block); err != nil {
					return false, err
				}
				if r.enough(i, block) {
					continue
				}
			}
			worked = true
			if !r.remains(i, block, warmup) || warmup && r.spent(r.Budget/2) {
				continue
			}
			if complete, err := r.block(ctx, i, block, warmup); err != nil || !complete {
				return false, err
			}
		}
		if !worked {
			return true, nil
		}
	}
}

// remains reports whether a block lacks a trial: a resumed run has the first blocks already.
func (r *run) remains(i, block int, warmup bool) bool {
	return slices.ContainsFunc(r.Targets, func(t Target) bool {
		cell := cellOf(r.Work[i], t.Name)
		return !r.over[cell] && !r.done[slot{cell, block, warmup}] && (warmup || !r.decisions[i].Ended(t.Name, block))
	})
}

// block executes one trial on each target, in the order that follows from the seed. It returns false if ctx ended before.
func (r *run) block(ctx context.Context, i, block int, warmup bool) (complete bool, err error) {
	w := r.Work[i]
	for _, n := range r.order(w, block, warmup) {
		t := r.Targets[n]
		cell := cellOf(w, t.Name)
		next := slot{cell, block, warmup}
		if r.over[cell] || r.done[next] || !warmup && r.decisions[i].Ended(t.Name, block) {
			continue
		}
		if ctx.Err() != nil {
			return false, nil
		}
		if reason := r.stopped(cell); reason != "" {
			if err := r.skip(next, reason); err != nil {
				return false, err
			}
			continue
		}
		r.seq++
		r.Observer.Started(result.Trial{Seq: r.seq, Cell: cell, Block: block, Warmup: warmup}, r.progress(i, block))
		identity := r.asTrial(r.seq)
		if w.Benchmark.Traced {
			identity.tracing = &tracing{start: r.Tracing.Start}
		}
		if w.Benchmark.Functions {
			identity.tracing.start = r.Tracing.StartFunctions
		}
		trial, counts := r.attempt(ctx, w, t, identity)
		trial.Seq, trial.Cell, trial.Block, trial.Warmup = r.seq, cell, block, warmup
		if !counts {
			r.seq--
			return false, nil
		}
		trace := identity.tracing.of(trial)
		if identity.tracing != nil {
			trial.Phases = nil // the tracer made them longer
		}
		if err := r.record(trial); err != nil {
			return false, err
		}
		if trace.Counts != nil && !warmup {
			trace.Seq = r.lastTrace + 1
			if err := r.recordTrace(trace); err != nil {
				return false, err
			}
		}
		r.Observer.Ended(trial)
		r.checkUp(ctx, t)
	}
	return true, nil
}

// attempt executes a trial after it has checked that its containers fit on the host, and has pulled the image.
func (r *run) attempt(ctx context.Context, w plan.Work, t Target, identity attempt) (_ result.Trial, counts bool) {
	start := r.Clock.Now()
	if out := r.crowd(ctx, w, t); out != nil {
		out.Started, out.Elapsed = start.UTC().Round(0), r.Clock.Now().Sub(start)
		return *out, ctx.Err() == nil
	}
	if err := r.pull(ctx, w.Benchmark.Image, t); err != nil {
		out := result.Trial{Started: start.UTC().Round(0), Elapsed: r.Clock.Now().Sub(start)}
		out.Status, out.Reason = statusOf(err)
		return out, ctx.Err() == nil
	}
	return r.execute(ctx, w, t, identity)
}

// stopped returns the reason why a cell has no further trials; empty if it has. The first reason of a cell is a caveat.
func (r *run) stopped(cell result.Cell) (reason string) {
	if reason := r.breaker.quarantined[cell.Target]; reason != "" {
		return reason
	}
	s := r.failed[cell]
	if !s.over() {
		return ""
	}
	reason = fmt.Sprintf("given up after %d consecutive trials without success", s.failures+s.timeouts)
	r.out.Caveats = append(r.out.Caveats, fmt.Sprintf("%s on %s was %s", cell.Benchmark, cell.Target, reason))
	return reason
}

// order is the order of the targets in a block.
func (r *run) order(w plan.Work, block int, warmup bool) []int {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%v\x00", w.Benchmark.Name, w.Key(), warmup)
	_ = binary.Write(h, binary.LittleEndian, int64(block))
	return rand.New(rand.NewPCG(r.Seed, h.Sum64())).Perm(len(r.Targets))
}

func (r *run) record(t result.Trial) error {
	if err := r.Record(t); err != nil {
		return fmt.Errorf("record trial %d (%s on %s): %w", t.Seq, t.Benchmark, t.Target, err)
	}
	r.note(t)
	return nil
}

// note updates the state of the run with a recorded trial.
func (r *run) note(t result.Trial) {
	r.done[slot{t.Cell, t.Block, t.Warmup}] = true
	r.out.Counts[t.Status]++
	s := r.failed[t.Cell]
	switch t.Status {
	case result.OK:
		s = streak{}
	case result.Failed:
		s.failures++
	case result.Timeout:
		s.timeouts++
	case result.Skipped:
		r.over[t.Cell] = true
	}
	r.failed[t.Cell] = s
	if t.Status != result.Skipped {
		r.pace.note(t)
	}
	if t.Warmup {
		return
	}
	for _, i := range r.work[t.Cell] {
		r.decisions[i].Add(&t)
		if r.Stop.Precision > 0 {
			r.measured[i].Add(&t, r.Work[i].Benchmark.Metrics)
		}
	}
}
