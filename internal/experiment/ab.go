package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// The runs of a comparison. Further runs show more of the variation between runs, but each run costs its set-up. So a run takes about
// abRunTime, within the limits of their number.
const (
	abRunTime   = 30 * time.Second
	abUsualRuns = 8  // the least number, if the budget allows it
	abManyRuns  = 20 // the largest number that follows from a budget
	abPilot     = 3  // blocks of the calibration
)

// AB compares two builds over several runs. A calibration shows the pace of the runs; their number and their blocks follow from it.
// The runs end as soon as the answer is known.
type AB struct {
	Series
	// Design has the number of runs and of blocks after the calibration.
	Design ab.Design
	// Runs and Blocks are numbers in place of those that follow from the budget, or 0.
	Runs, Blocks int
	// Emulated is set if questions about speed have answers on an emulated CPU too.
	Emulated bool
	Counting Counting

	// Counts are the compared counts; nil if only times are compared.
	Counts *counts.Comparison
	// Untimed is set if the counts gave the answer, and no time was measured.
	Untimed bool
	// Comparison is the state of the comparison; nil if the runs ended within the calibration.
	Comparison *ab.Series
	// Pilot is the run of the calibration.
	Pilot result.Run
	// NoRatio is set if some value has no ratio in the calibration. No run follows then.
	NoRatio bool

	plan   plan.Plan
	keys   []analysis.Key   // of the benchmarks
	traced int              // the number of runs for counts
	source *analysis.Source // of the last run
}

// Build is one side of a comparison: a target, and the absolute path of its runtime if one is given.
type Build struct {
	Target target.Target
	Path   string
}

// NewAB returns the comparison of two builds by the benchmarks and the settings of a plan. It compares the named metrics, or the main
// metric of each benchmark without names.
func NewAB(p plan.Plan, builds [2]Build, metrics []string, margin float64) (*AB, error) {
	if err := setBuilds(&p, builds); err != nil {
		return nil, err
	}
	p.Name, p.Precision, p.MaxBlocks, p.Warmup, p.Trace, p.Export, p.TouchstoneOutput = "ab", 0, 0, warmup, 0, "", ""
	work, _, err := execution.Check(p)
	if err != nil {
		return nil, &execution.UsageError{Err: err}
	}
	values, err := selectValues(work, metrics)
	if err != nil {
		return nil, err
	}
	keys := lists.Convert(work, func(w *plan.Work) analysis.Key { return analysis.Key{Name: w.Benchmark.Name, Params: w.Key()} })
	return &AB{plan: p, keys: keys, Design: ab.Design{
		A: target.Target(p.Targets[0]).String(), B: target.Target(p.Targets[1]).String(), Margin: margin, Values: values,
	}}, nil
}

// setBuilds makes two builds the targets of a plan. A build with a path is a runtime of its own, whose name ends in -a or -b. It keeps
// the options that the plan has for the runtime.
func setBuilds(p *plan.Plan, builds [2]Build) error {
	p.Runtimes = maps.Clone(p.Runtimes)
	p.Targets = nil
	for i, b := range builds {
		if b.Path != "" {
			name := b.Target.Runtime + "-" + string("ab"[i])
			if p.Runtimes == nil {
				p.Runtimes = map[string]target.Runtime{}
			}
			if _, exists := p.Runtimes[name]; exists {
				return refuse("the plan has a runtime %s, and ab gives this name to %s; rename it in the plan", name, b.Path)
			}
			p.Runtimes[name] = target.Runtime{Path: b.Path, Options: p.Runtimes[b.Target.Runtime].Options}
			b.Target.Runtime = name
		}
		p.Targets = append(p.Targets, plan.Pattern(b.Target))
	}
	a, b := target.Target(p.Targets[0]), target.Target(p.Targets[1])
	if a.String() == b.String() {
		return refuse("both builds are %s; give each a binary, such as --a %s=/old --b %s=/new", a, a, b)
	}
	if (a.Engine == fake.Name) != (b.Engine == fake.Name) {
		return refuse("%s and %s: a fake target and a real one do not share a clock; give two of one kind", a, b)
	}
	p.Baseline = a
	return nil
}

// selectValues selects the values to compare: the named metrics, or the main metric of each benchmark.
func selectValues(work []plan.Work, names []string) ([]ab.Value, error) {
	var values []ab.Value
	var choices []string
	found := map[string]bool{}
	for _, w := range work {
		key := analysis.Key{Name: w.Benchmark.Name, Params: w.Key()}
		metrics := slices.DeleteFunc(slices.Clone(w.Benchmark.Metrics), func(m result.Metric) bool { return !m.IsJudged() })
		if names == nil && len(metrics) > 0 {
			index := max(0, slices.IndexFunc(metrics, func(m result.Metric) bool { return m.Phrase != "" }))
			values = append(values, ab.Value{Key: key, Metric: metrics[index]})
		}
		for _, m := range metrics {
			choices = append(choices, m.Name)
			if slices.Contains(names, m.Name) {
				found[m.Name] = true
				values = append(values, ab.Value{Key: key, Metric: m})
			}
		}
	}
	for _, name := range names {
		if !found[name] {
			slices.Sort(choices)
			return nil, refuse("--metric %s: no selected benchmark has this metric; they have %s", name, strings.Join(slices.Compact(choices), ", "))
		}
	}
	if len(values) == 0 {
		return nil, refuse("--filter: no selected benchmark has a metric to compare; select others")
	}
	return values, nil
}

// Run executes the runs for counts if there are any, the calibration and the runs for times.
func (c *AB) Run(ctx context.Context) error {
	c.record = func(run Run) error {
		options := analysis.Options{EmulatedVerdicts: c.Emulated}
		c.source = analysis.NewSource(&run.Run, options)
		return c.Publish(report.New([]result.Run{run.Run}, options))
	}
	isTimed, err := c.count(ctx)
	if err != nil || c.End == Interrupted {
		return err
	}
	if c.Untimed = !isTimed; c.Untimed {
		return nil
	}
	pace, err := c.calibrate(ctx)
	if err != nil || c.End == Interrupted || c.NoRatio {
		return err
	}
	runs, blocks, err := pace.schedule(c.left(), c.Runs, c.Blocks)
	if err != nil {
		return refuse("--budget %v: %w; give at least --budget %v", c.Budget, err, quantity.TimeWithReserve(c.Spent+pace.time(ab.LeastRuns, 1)))
	}
	c.Design.Runs, c.Design.Blocks, c.Design.MostBlocks = runs, blocks, plan.MaxBlocks
	c.Comparison = ab.New(c.Design)
	c.Line(fmt.Sprintf("up to %d runs of %s, each about %v", runs, wording.Counted(blocks, "block"), quantity.RoundedTime(pace.time(1, blocks))))
	return c.follow(ctx, rule{
		next: func(context.Context) (Request, bool, error) {
			return c.request(blocks), !c.Comparison.Over(), nil
		},
		add:   c.add,
		least: pace.time(1, 1),
	})
}

// add adds a run to the comparison. A run that the end of the budget cut off before its first block does not count.
func (c *AB) add(run Run) error {
	evidence := slices.ContainsFunc(c.Design.Values, func(v ab.Value) bool { return c.ratio(v).Blocks > 0 })
	if run.Interrupted || c.left() <= 0 && !evidence {
		return nil
	}
	if err := c.Comparison.Add(c.source, run.Took); err != nil {
		return err
	}
	n := len(c.Comparison.Done)
	for _, v := range c.Comparison.Document(func(string) string { return "" }).Values {
		c.Line(fmt.Sprintf("run %d of %d: %s %s: %s", n, c.Design.Runs, v.Title(), v.Metric, v.State(n)))
	}
	return nil
}

// ratio returns the ratio of a value in the last run.
func (c *AB) ratio(v ab.Value) ab.Ratio { return ab.Find(c.source, v, c.Design.A, c.Design.B) }

// calibrate executes a short run that does not count. It shows whether both builds work, and how long a block takes.
func (c *AB) calibrate(ctx context.Context) (pace, error) {
	run, err := c.execute(ctx, c.request(abPilot))
	c.Pilot = run.Run
	if err != nil || c.End == Interrupted {
		return pace{}, err
	}
	if err := checkTargets(c.Pilot); err != nil {
		return pace{}, err
	}
	for _, v := range c.Design.Values {
		if c.ratio(v).Blocks > 0 {
			continue
		}
		if c.left() <= 0 && !c.tried(v) {
			return pace{}, refuse("--budget %v ended before the first block of %s; give more, such as --budget %v", c.Budget, v.Title(), 20*c.Budget)
		}
		c.NoRatio = true
	}
	blocks := map[string]bool{}
	for _, t := range run.Trials {
		if t.Status != result.Skipped {
			blocks[fmt.Sprint(t.Warmup, t.Block)] = true
		}
	}
	return pace{run.setUp(), run.trialTime() / time.Duration(max(1, len(blocks)))}, nil
}

// tried reports whether the calibration has a block of a value on both targets.
func (c *AB) tried(v ab.Value) bool {
	for _, name := range []string{c.Design.A, c.Design.B} {
		cell := result.Cell{Benchmark: v.Name, Params: v.Params, Target: name}
		if !slices.ContainsFunc(c.Pilot.Trials, func(t result.Trial) bool { return t.Cell == cell && !t.Warmup && t.Status != result.Skipped }) {
			return false
		}
	}
	return true
}

// request returns the next run. The first one after those for counts is the calibration. Each run has a session of its own, so its directories, cgroups and private
// daemons are new. Every second run opens B first.
func (c *AB) request(blocks int) Request {
	n, p := c.executed, c.plan
	p.Blocks = blocks
	if n == c.traced {
		p.Name = "ab calibration"
	}
	if p.Seed != nil {
		seed := *p.Seed + uint64(n)
		p.Seed = &seed
	}
	if n%2 == 1 {
		p.Targets = []plan.Pattern{p.Targets[1], p.Targets[0]}
	}
	return Request{Plan: p}
}

// schedule returns the number of runs and of blocks in each that take at most the time left. Numbers that are not 0 are given. The
// error of a time that is too short has the times.
func (p pace) schedule(left time.Duration, runs, blocks int) (int, int, error) {
	left = withoutReserve(left)
	switch {
	case runs > 0 && blocks > 0:
	case runs > 0:
		blocks = p.blocks(left, runs)
	case blocks > 0:
		runs = abManyRuns
		if took := p.time(1, blocks); took > 0 {
			runs = min(int(left/took), abManyRuns)
		}
	default:
		runs = min(max(int(left/abRunTime), abUsualRuns), abManyRuns)
		for blocks = p.blocks(left, runs); blocks < 1 && runs > ab.LeastRuns; blocks = p.blocks(left, runs) {
			runs--
		}
	}
	if runs < ab.LeastRuns || blocks < 1 {
		return 0, 0, fmt.Errorf("after the calibration %v are left, and %d runs of %s take %v (set-up %v, block %v)",
			left.Round(time.Millisecond), max(runs, ab.LeastRuns), wording.Counted(max(blocks, 1), "block"), p.time(max(runs, ab.LeastRuns), max(blocks, 1)).Round(time.Millisecond),
			p.setUp.Round(time.Millisecond), p.block.Round(time.Millisecond))
	}
	return runs, blocks, nil
}
