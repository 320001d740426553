// Package sides compares two sides, A and B: each is one run or several runs of the same plan. It is the model of `touchstone compare`.
//
// The runs are the observations. Every start of a run draws new conditions that all of its trials share: addresses, caches, neighbours, the state of
// daemons. So one run a side shows nothing of the variation between runs, and no verdict says slower or faster then. With several runs a side each
// run has one value of a metric, the median of its trials, and [stats.CompareRuns] compares these values.
//
// Cells are matched by benchmark, parameters and target, and metrics by name. A cell of one side only is listed with the reason. Facts that differ
// between the runs are named, and the comparison refuses them with a *[DifferError] unless the user has allowed their class.
//
// A verdict slower or faster holds over the whole comparison, by Holm's correction. A smaller difference that only its own test shows is marked
// as shown in this metric alone.
//
// A gate is a margin for some metrics ([Gate]). It has three answers, and never passes in silence: worse than the margin, not worse by the
// margin, or inconclusive.
package sides

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Side is one side of a comparison.
type Side struct {
	// Name is the name of the user for it, such as a file.
	Name string
	Runs []result.Run
}

// Options are the choices of the user.
type Options struct {
	// AcrossMachines allows runs of different machines, and Allow other classes of differences.
	AcrossMachines bool
	Allow          []Class
	// EmulatedVerdicts gives verdicts about speed for machines with an emulated CPU too.
	EmulatedVerdicts bool
	Gates            []Gate
	CountGates       []counts.Gate
	// Learned returns the knowledge of a selfcheck about the counts of a target. It may be nil.
	Learned func(target string) *counts.Learned
}

// MaybeRun is the verdict on a difference between one run and one run. The runs may be its cause.
const MaybeRun stats.Verdict = "differs, and the cause may be the run"

// otherUnit is the reason of stats.NotComparable for a metric with two units.
const otherUnit = "the runs have different units or directions: %s with %s values better, and %s with %s values better"

// Comparison is the result.
type Comparison struct {
	A, B []Run
	// NameA and NameB are the names of the sides.
	NameA, NameB string
	// Single is set if each side has one run.
	Single bool
	// Differences are the facts that differ between the runs.
	Differences []Difference
	// Notes are statements about the runs that a reader must know.
	Notes []string
	// Cells are the compared metrics, in the order of side A.
	Cells    []Cell
	OneSided []OneSided
	// Compared counts the cells with a test, Shown those that differ over the whole comparison, Alone those that differ in their metric alone.
	Compared, Shown, Alone int
	Gates                  []Check
	// Counts are the counts of the traces; nil if the sides have no traced cell in common and no gate is about counts.
	Counts *counts.Comparison
}

// Run is a run of a side.
type Run struct {
	ID, Plan, Host, Started string
	State                   result.State
	// Trials counts the ok trials without warm-up.
	Trials int
}

// Cell is a metric of a cell that both sides have.
type Cell struct {
	result.Cell
	// ParamsB are the parameters of side B if they differ; see ClassParams.
	ParamsB string
	Metric  result.Metric
	A, B    Values
	// Ratio is B / A, NaN if it does not exist. CI is its 95 % interval, nil without one.
	Ratio float64
	CI    *stats.Interval
	// MeanRatio is B / A of the means of the trials, and MeanCI its 95 % interval between runs. A runtime with two speeds has a mean between
	// them, and its median is one of them: the cost of many containers follows the mean. They have no verdict. MeanRatio is NaN
	// without a ratio, MeanCI nil without several runs.
	MeanRatio float64
	MeanCI    *stats.Interval
	// P is the p-value of the test, Adjusted after Holm's correction over all cells. Both are NaN without a test.
	P, Adjusted float64
	Verdict     stats.Verdict
	// Alone is set if the verdict holds in this metric alone, and not over the whole comparison.
	Alone bool
	// Why is the reason of a verdict without a test.
	Why string
	// Detectable is the smallest relative difference that the runs would have shown in this metric alone.
	Detectable float64

	runs stats.RunsComparison
	// zero is set if all values of both sides are 0.
	zero bool
}

// Title is the benchmark with its parameters.
func (c *Cell) Title() string {
	title := analysis.Key{Name: c.Benchmark, Params: c.Params}.Title()
	if c.ParamsB != "" {
		title += " (B: " + c.ParamsB + ")"
	}
	return title
}

// Values are the values of a metric on one side.
type Values struct {
	// Runs are the medians of the runs in their order, Median the geometric mean of them, NaN if it does not exist. Means are the means
	// of the runs.
	Runs, Means []float64
	Median      float64
	Trials      int
	// Lost is the largest share of blocks that a run has lost.
	Lost float64
}

// OneSided is a cell with metrics that only one side has.
type OneSided struct {
	result.Cell
	// Has is "A" or "B".
	Has string
	// Metrics are the metrics. Whole is set if the other side has no metric of the cell.
	Metrics []result.Metric
	Whole   bool
	Why     string
}

// Title is the benchmark with its parameters, and the metrics unless they are all.
func (o *OneSided) Title() string {
	title := analysis.Key{Name: o.Benchmark, Params: o.Params}.Title()
	if o.Whole {
		return title
	}
	var names []string
	for _, m := range o.Metrics {
		names = append(names, m.Name)
	}
	return title + ": " + strings.Join(names, ", ")
}

// measured is the runs of one side by metric.
type measured struct {
	cells []analysis.Measured // of one run each
	run   []int               // the index of the run of each
}

// identity identifies a metric of a cell.
type identity struct {
	result.Cell
	metric string
}

// New compares two sides. The error is a *[DifferError] if facts differ that are not allowed, a *[GateError] for gates that contradict, or a
// *[NothingError] without a common metric.
func New(a, b Side, o Options) (c *Comparison, err error) {
	if err := distinctRuns(a, b); err != nil {
		return nil, err
	}
	c = &Comparison{A: describe(a.Runs), B: describe(b.Runs), NameA: a.Name, NameB: b.Name, Single: len(a.Runs) == 1 && len(b.Runs) == 1}
	orderA, cellsA := collect(a.Runs)
	orderB, cellsB := collect(b.Runs)
	c.Differences = Differences(a.Runs, b.Runs)
	otherParams := paramsDiffer(orderA, orderB)
	c.Differences = append(c.Differences, otherParams...)
	if err := refused(c.Differences, o); err != nil {
		return nil, err
	}
	pairs := match(orderA, cellsA, orderB, cellsB, len(otherParams) > 0)
	emulated := !o.EmulatedVerdicts && slices.ContainsFunc(slices.Concat(a.Runs, b.Runs), func(r result.Run) bool { return r.Host.MayBeEmulated() })
	for _, p := range pairs {
		if x, y := cellsA[p[0]], cellsB[p[1]]; x.any() && y.any() {
			c.Cells = append(c.Cells, compare(p, x, y, a.Runs, b.Runs, emulated))
		}
	}
	c.oneSided(pairs, orderA, cellsA, orderB, cellsB, a.Runs, b.Runs)
	if len(c.Cells) == 0 {
		return nil, &NothingError{A: a.Name, B: b.Name, OneSided: c.OneSided}
	}
	c.judge()
	c.Notes = slices.Concat(notes(a, b, c.Single), c.gaps("A", orderA, cellsA, a.Runs), c.gaps("B", orderB, cellsB, b.Runs), conditions(orderA, cellsA, orderB, cellsB))
	if c.Gates, err = c.check(o.Gates); err != nil {
		return nil, err
	}
	c.Counts, err = compareCounts(a, b, o)
	return c, err
}

// NothingError is the error for sides without a common metric.
type NothingError struct {
	A, B     string
	OneSided []OneSided
}

func (e *NothingError) Error() string {
	const limit = 6
	var cells []string
	for _, s := range e.OneSided {
		cells = append(cells, fmt.Sprintf("%s on %s only in %s", s.Title(), s.Target, s.Has))
	}
	text := fmt.Sprintf("%s and %s have no benchmark with the same parameters and the same target in common", e.A, e.B)
	if len(cells) == 0 {
		return text + ": they have no results"
	}
	rest := ""
	if len(cells) > limit {
		rest = fmt.Sprintf("; and %d more", len(cells)-limit)
		cells = cells[:limit]
	}
	return text + ": " + strings.Join(cells, "; ") + rest + "; compare runs of one plan"
}

func distinctRuns(a, b Side) error {
	names := map[string]string{}
	for _, side := range []Side{a, b} {
		if len(side.Runs) == 0 {
			return fmt.Errorf("%s has no run; give runs with results", side.Name)
		}
		for _, r := range side.Runs {
			if first, duplicate := names[r.ID]; duplicate {
				return fmt.Errorf("run %s is given twice, by %s and %s; leave out one of them", r.ID, first, side.Name)
			}
			names[r.ID] = side.Name
		}
	}
	return nil
}

func describe(runs []result.Run) (list []Run) {
	for i := range runs {
		r := &runs[i]
		ok := 0
		for _, t := range r.Trials {
			if t.Status == result.OK && !t.Warmup {
				ok++
			}
		}
		start := "at an unknown time"
		if !r.Started.IsZero() {
			start = r.Started.UTC().Format("2006-01-02 15:04")
		}
		list = append(list, Run{ID: r.ID, Plan: r.Name, Host: r.Host.Hostname, Started: start, State: r.State, Trials: ok})
	}
	return list
}

// collect lists the metrics of the runs of a side in the order of their first occurrence.
func collect(runs []result.Run) (order []identity, cells map[identity]measured) {
	cells = map[identity]measured{}
	for i := range runs {
		for _, m := range analysis.MeasuredIn(&runs[i]) {
			id := identity{m.Cell, m.Metric.Name}
			entry, ok := cells[id]
			if !ok {
				order = append(order, id)
			}
			cells[id] = measured{append(entry.cells, m), append(entry.run, i)}
		}
	}
	return order, cells
}

// any reports whether some run has a value.
func (m measured) any() bool {
	return slices.ContainsFunc(m.cells, func(c analysis.Measured) bool { return len(c.Values) > 0 })
}

// why is the reason of a cell without a value.
func (m measured) why() string {
	for _, c := range m.cells {
		if c.Why != "" {
			return c.Why
		}
	}
	return ""
}

// compare compares one metric.
func compare(p [2]identity, x, y measured, runsA, runsB []result.Run, emulated bool) Cell {
	first := x.cells[0].Metric
	c := Cell{
		Cell: p[0].Cell, Metric: first, A: valuesOf(x), B: valuesOf(y),
		Ratio: math.NaN(), MeanRatio: math.NaN(), P: math.NaN(), Adjusted: math.NaN(), Detectable: math.Inf(1),
	}
	if p[1].Params != p[0].Params {
		c.ParamsB = p[1].Params
	}
	for _, cell := range slices.Concat(x.cells, y.cells) {
		if cell.Metric.Unit != first.Unit || cell.Metric.Better != first.Better {
			return c.notComparable(fmt.Sprintf(otherUnit, first.Unit, first.Better, cell.Metric.Unit, cell.Metric.Better))
		}
	}
	if c.zero = allZero(x) && allZero(y); c.zero {
		c.Verdict, c.Why = stats.NoDifference, "all values of both sides are 0"
		return c
	}
	for _, side := range []struct {
		of   measured
		runs []result.Run
	}{{x, runsA}, {y, runsB}} {
		for i, cell := range side.of.cells {
			for _, v := range cell.Values {
				if v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
					return c.notComparable(fmt.Sprintf("a ratio needs values above 0, and run %s has %v %s", side.runs[side.of.run[i]].ID, v, first.Unit))
				}
			}
			if len(cell.Values) > 0 && stats.Median(cell.Values) == 0 {
				return c.notComparable(fmt.Sprintf("a ratio needs values above 0, and the median of run %s is 0", side.runs[side.of.run[i]].ID))
			}
		}
	}
	if len(c.A.Runs) == 1 && len(c.B.Runs) == 1 {
		comparison := stats.CompareUnpaired(only(x), only(y), stats.Direction(first.Better))
		c.Ratio, c.CI, c.P, c.Verdict = comparison.Ratio, comparison.CI, comparison.P, comparison.Verdict
	} else {
		c.runs = stats.CompareRuns(c.A.Runs, c.B.Runs)
		c.Ratio, c.CI, c.P, c.Detectable = c.runs.Ratio, c.runs.CI, c.runs.P, c.runs.Detectable
	}
	means := stats.CompareRuns(c.A.Means, c.B.Means)
	c.MeanRatio, c.MeanCI = means.Ratio, means.CI
	if emulated && first.OfSpeed() {
		c.P, c.Verdict, c.Why, c.runs = math.NaN(), stats.Withheld, quantity.EmulatedCPU, stats.RunsComparison{}
		c.Detectable = math.Inf(1)
	}
	return c
}

// notComparable is the cell without a ratio.
func (c Cell) notComparable(reason string) Cell {
	c.Verdict, c.Why = stats.NotComparable, reason
	return c
}

// valuesOf gives one value for each run.
func valuesOf(m measured) Values {
	var v Values
	logs := 0.0
	for _, cell := range m.cells {
		v.Lost = max(v.Lost, cell.Lost)
		if len(cell.Values) == 0 {
			continue
		}
		median := stats.Median(cell.Values)
		v.Runs, v.Means = append(v.Runs, median), append(v.Means, stat.Mean(cell.Values, nil))
		v.Trials += len(cell.Values)
		logs += math.Log(median)
	}
	v.Median = math.Exp(logs / float64(len(v.Runs))) // NaN for negative values
	if len(v.Runs) == 1 {
		v.Median = v.Runs[0]
	}
	return v
}

// only gives the values of the one run that has some.
func only(m measured) []float64 {
	index := slices.IndexFunc(m.cells, func(c analysis.Measured) bool { return len(c.Values) > 0 })
	return m.cells[index].Values
}

func allZero(m measured) bool {
	return !slices.ContainsFunc(m.cells, func(c analysis.Measured) bool {
		return slices.ContainsFunc(c.Values, func(v float64) bool { return v != 0 })
	})
}

// tooWide is the limit of the half-width of an interval, as a factor minus 1. Above it a comparison without a difference is too noisy. Comparisons
// within a run have the same limit: see [stats.Judge].
const tooWide = 0.25

// judge sets the verdicts that depend on the whole comparison.
func (c *Comparison) judge() {
	p := make([]float64, len(c.Cells))
	for i := range c.Cells {
		p[i] = c.Cells[i].P
	}
	for i, adjusted := range stats.Holm(p) {
		cell := &c.Cells[i]
		cell.Adjusted = adjusted
		if math.IsNaN(adjusted) {
			continue
		}
		c.Compared++
		cell.verdict()
		differs := cell.Verdict == stats.Slower || cell.Verdict == stats.Faster || cell.Verdict == MaybeRun && c.Single
		switch {
		case differs && cell.Alone:
			c.Alone++
		case differs:
			c.Shown++
		}
	}
}

// Notable reports whether a reader must see the cell: it shows a difference, also between two single runs, or a difference that lost trials put in doubt.
func (c *Cell) Notable() bool {
	return c.Verdict == stats.Slower || c.Verdict == stats.Faster || c.Verdict == MaybeRun || c.Verdict == stats.TrialsLost
}

// verdict decides about a cell with a test.
func (c *Cell) verdict() {
	single := len(c.A.Runs) == 1 && len(c.B.Runs) == 1
	isShown := c.P < stats.Alpha && c.CI != nil && (c.CI.Lo > 1 || c.CI.Hi < 1)
	isBetter := (c.Ratio < 1) == (c.Metric.Better == result.Lower)
	c.Alone = isShown && c.Adjusted >= stats.Alpha
	switch {
	case isShown && single:
		c.Verdict = MaybeRun
	case isShown && stats.Losses{Baseline: c.A.Lost, Other: c.B.Lost}.OfBetter(isBetter) > 0:
		c.Verdict, c.Alone = stats.TrialsLost, false
	case isShown && isBetter:
		c.Verdict = stats.Faster
	case isShown:
		c.Verdict = stats.Slower
	case c.CI != nil && math.Sqrt(c.CI.Hi/c.CI.Lo)-1 > tooWide:
		c.Verdict = stats.TooNoisy
	default:
		c.Verdict = stats.NoDifference
		if !single {
			c.Why = c.detectable()
		}
	}
}

// detectable states the smallest difference that the runs would have shown with a power of 80 %.
func (c *Cell) detectable() string {
	switch {
	case math.IsInf(c.Detectable, 1):
		return "so few runs cannot show any"
	case c.Detectable == 0:
		return "any difference would have been shown"
	}
	return quantity.Percent(c.Detectable) + " would mostly have been shown"
}

// Word spells the verdict: "slower", "more, in this metric alone", "not comparable".
func (c *Cell) Word() string {
	word := quantity.VerdictWord(c.Verdict, c.Metric)
	if c.Verdict == stats.TooFew {
		word = string(stats.TooFew)
	}
	if c.Alone && c.Verdict != MaybeRun {
		word += ", in this metric alone"
	}
	return word
}

// shortRun is the largest factor between the numbers of trials of two runs. Above it the shorter run is named.
const shortRun = 4

// notes are statements about the sides.
func notes(a, b Side, single bool) []string {
	var list []string
	switch {
	case single:
		list = append(list, "Each side has one run. One run shows nothing of the variation between runs, so no difference here is shown to be a change: "+
			"if runs vary by 3 %, one run each differs by chance in a quarter to a half of all comparisons. Give several runs a side: at least 3, better 5 or more.")
	case len(a.Runs) == 1 || len(b.Runs) == 1:
		one, second := "A", "B"
		if len(b.Runs) == 1 {
			one, second = "B", "A"
		}
		list = append(list, fmt.Sprintf("Side %s has one run. The comparison assumes that its runs vary as the runs of side %s do. Give several runs of side %s to drop the assumption.", one, second, one))
	case min(len(a.Runs), len(b.Runs)) < 3:
		list = append(list, "A side has two runs. Two runs show little of the variation between runs, so intervals are wide. Give at least 3 runs a side, better 5 or more.")
	}
	maximum := 0
	for _, r := range slices.Concat(describe(a.Runs), describe(b.Runs)) {
		maximum = max(maximum, r.Trials)
	}
	for _, side := range []struct {
		name string
		runs []result.Run
	}{{"A", a.Runs}, {"B", b.Runs}} {
		for i, d := range describe(side.runs) {
			r := &side.runs[i]
			if shortRun*d.Trials < maximum {
				list = append(list, fmt.Sprintf("Run %s (side %s) has %s, and another run has %d. Each run counts the same, so a short run widens the intervals.", r.ID, side.name, wording.Counted(d.Trials, "ok trial"), maximum))
			}
			if !r.Ended.IsZero() && r.Ended.Before(r.Started) || backwards(r) {
				list = append(list, fmt.Sprintf("The clock of run %s (side %s) was set back while it ran. Its values do not depend on that clock.", r.ID, side.name))
			}
			if !r.Host.IsKnown() && len(r.Caveats) > 0 {
				list = append(list, fmt.Sprintf("Run %s (side %s): %s.", r.ID, side.name, r.Caveats[0]))
			}
			if r.State != result.Complete {
				list = append(list, fmt.Sprintf("Run %s (side %s) is %s: its plan was not completed.", r.ID, side.name, r.State))
			}
		}
	}
	return list
}

// backwards reports whether the trials of a run begin before their predecessors.
func backwards(r *result.Run) bool {
	for i := 1; i < len(r.Trials); i++ {
		if start := r.Trials[i-1].Started; !start.IsZero() && !r.Trials[i].Started.IsZero() && r.Trials[i].Started.Before(start) {
			return true
		}
	}
	return false
}
