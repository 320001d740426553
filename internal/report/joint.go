package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// MostRuns is how many runs a report can have side by side: more of them are no picture any more.
const MostRuns = 12

// JointOptions say how a report of several runs is made.
type JointOptions struct {
	// AcrossMachines compares absolute values of the runs too, with those of the first.
	AcrossMachines bool
}

// Joint is all that a report of several runs says. Its rules, beside those of a report of one run:
//
//   - What the runs have in common is the ratio to a baseline within each run, with the interval and the
//     verdict that the run's own report has. A benchmark whose runs have different baselines takes the first target that
//     all of them have; if there is none, its ratios stand under the baselines they are to, and nothing is said
//     of them together.
//   - Absolute values of different machines are shown as what each machine measured, and never compared: no
//     ratio, no verdict, no common axis. Only [JointOptions].AcrossMachines gives ratios of them, with an interval
//     and without a verdict. Which runs are of one machine, [result.Host.SameMachine] says.
//   - Absolute values of runs of one machine may share an axis. There is no verdict between them either: that one
//     run is faster than the other is said by a comparison of runs, which has to know what changes from
//     run to run.
//   - Benchmarks are the same if name and parameters are, metrics if name, unit and direction are.
//   - Nothing is left out because a run lacks it: the reason stands in its place.
type Joint struct {
	// Runs stand machine by machine, the machines in the order of their first run. The first is the reference.
	Runs     []JointRun
	Machines []Machine
	// Facts are those of the machines and the runs, Versions those of the targets, by run.
	Facts, Versions []Fact
	Suites          []JointSuite
	Coverage        []Coverage
	Findings        JointFindings
	AcrossMachines  bool
	// Families counts the families of comparisons that were judged in all runs: see Model.Families.
	Families int
}

// JointRun is a run of a joint report.
type JointRun struct {
	Model
	// Label names the run in the report: its machine, with a number where that does not tell it apart.
	Label string
	// Machine is its place in Joint.Machines.
	Machine int
}

// Machine is a machine with its runs.
type Machine struct {
	// Name is the host's, as the first run has it, Nature what it is in words.
	Name, Nature string
	// Runs are places in Joint.Runs.
	Runs []int
}

// Fact is something known of each run, in the order of Joint.Runs; empty where it is not known.
type Fact struct {
	Name   string
	Values []string
	// Differs tells that the runs differ in it though they need not.
	Differs bool
}

// FactGroup is runs that have a fact in common.
type FactGroup struct {
	Value string
	Runs  []int
}

// Groups puts the runs together that have the same value.
func (f *Fact) Groups() []FactGroup {
	var groups []FactGroup
	for i, v := range f.Values {
		at := slices.IndexFunc(groups, func(g FactGroup) bool { return g.Value == v })
		if at < 0 {
			groups, at = append(groups, FactGroup{Value: v}), len(groups)
		}
		groups[at].Runs = append(groups[at].Runs, i)
	}
	return groups
}

// JointSuite is the benchmarks of one context.
type JointSuite struct {
	Name       string
	Benchmarks []JointBenchmark
}

// JointBenchmark is one benchmark with its parameters, in all runs.
type JointBenchmark struct {
	Name, Params    string
	Summary, Source string
	// Runs has the benchmark of each run, nil where it has no section in the run's own report.
	Runs []*Benchmark
	// Baseline is the one that the ratios of all runs are to, empty if there is none; Note says what is special about it.
	Baseline, Note string
	Metrics        []JointMetric
	// Conditions are what it was measured under, by run.
	Conditions []Fact
}

// Title is the benchmark's name with its parameters.
func (b *JointBenchmark) Title() string { return title(b.Name, b.Params) }

// JointMetric is a metric in all runs.
type JointMetric struct {
	result.Metric
	// Unbased tells that the baseline has no value of it in any run, so that there are no ratios.
	Unbased bool
	Rows    []JointRow
}

// JointRow is a metric on one target.
type JointRow struct {
	Target string
	// Baseline tells that it is the target that the others are compared with, in all runs.
	Baseline bool
	// Cells stand in the order of Joint.Runs.
	Cells []JointCell
}

// JointCell is a metric on one target in one run.
type JointCell struct {
	// Cell is nil if the run has nothing of it.
	*Cell
	// Lack says in a word or two why there is no number, Why in full; both are empty if there is one, and
	// if the metric is optional and this target has none.
	Lack, Why string
	// Across is the ratio of the absolute median to that of the first run, nil unless that was asked for. It has no
	// verdict.
	Across *stats.Comparison
}

// Has tells whether there is a number.
func (c *JointCell) Has() bool { return c.Cell != nil && c.Summary != nil }

// Coverage is what there is of one benchmark in each run.
type Coverage struct {
	Benchmark, Params string
	Cells             []Covered
	// Differs tells that the runs differ in it.
	Differs bool
}

// Title is the benchmark's name with its parameters.
func (c *Coverage) Title() string { return title(c.Benchmark, c.Params) }

// Covered is what there is of one benchmark in one run.
type Covered struct {
	// Targets are those with a trial that is ok, Lacking the others that were tried.
	Targets, Lacking []string
	// Blocks counts the measured blocks.
	Blocks int
	// Reason says why there is no number at all, empty if there is one.
	Reason string
}

// String says it in a few words: "4 targets, 10 blocks; not youki".
func (c *Covered) String() string {
	if c.Reason != "" {
		return c.Reason
	}
	out := fmt.Sprintf("%s, %s", counted(len(c.Targets), "target"), counted(c.Blocks, "block"))
	if len(c.Lacking) > 0 {
		out += "; not " + named(c.Lacking)
	}
	return out
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// JointFindings are what the runs say together.
type JointFindings struct {
	// Breaches are what does not hold, with the run.
	Breaches []string
	// Opposite are targets that are better than the baseline in one run and worse in another.
	Opposite []string
	// Statements are the largest differences that are shown, in all runs.
	Statements []string
	// Comparisons counts how far the runs agree; empty if there is nothing that two of them have.
	Comparisons string
}

// Labels names runs by their places.
func (j *Joint) Labels(runs []int) string {
	var names []string
	for _, i := range runs {
		names = append(names, j.Runs[i].Label)
	}
	return strings.Join(names, ", ")
}

// Heading says what the report is of.
func (j *Joint) Heading() string {
	if len(j.Machines) == 1 {
		return fmt.Sprintf("%d runs of one machine", len(j.Runs))
	}
	return fmt.Sprintf("%d runs of %d machines", len(j.Runs), len(j.Machines))
}

// AbsoluteNote says in a sentence what becomes of absolute values.
func (j *Joint) AbsoluteNote() string {
	switch {
	case j.AcrossMachines:
		return "Absolute values of different runs are compared because --across-machines asks for it: as the ratio to " + j.Runs[0].Label +
			", with an interval that covers the noise within the two runs and not what else differs between them, and without a verdict."
	case len(j.Machines) == 1:
		return "All runs are of one machine, so that absolute values share a scale; whether a run is faster than another is not judged here."
	}
	return "Absolute values are what each machine measured and are not compared across machines: no ratio, no verdict and no axis is common to them (--across-machines would compare them)."
}

// longestLabel is how much of a host's name a column has room for.
const longestLabel = 18

// labels names runs by their hosts, which several may share.
func labels(runs []result.Run) []string {
	names := make([]string, len(runs))
	count := map[string]int{}
	for i, r := range runs {
		name := r.Host.Hostname
		if name == "" {
			name = "unnamed"
		}
		if utf8.RuneCountInString(name) > longestLabel {
			name = string([]rune(name)[:longestLabel-1]) + "…"
		}
		names[i] = name
		count[name]++
	}
	next := map[string]int{}
	for i, name := range names {
		if count[name] > 1 {
			next[name]++
			names[i] = fmt.Sprintf("%s #%d", name, next[name])
		}
	}
	return names
}

// byMachine gives the runs machine by machine, with the machines. A machine is told by its first run.
func byMachine(runs []result.Run) ([]result.Run, []Machine) {
	var groups [][]result.Run
	for _, r := range runs {
		at := slices.IndexFunc(groups, func(g []result.Run) bool { return g[0].Host.SameMachine(&r.Host) })
		if at < 0 {
			groups, at = append(groups, nil), len(groups)
		}
		groups[at] = append(groups[at], r)
	}
	var sorted []result.Run
	var machines []Machine
	for _, g := range groups {
		m := Machine{Name: g[0].Host.Hostname, Nature: g[0].Host.NatureText()}
		for range g {
			m.Runs = append(m.Runs, len(sorted)+len(m.Runs))
		}
		sorted = append(sorted, g...)
		machines = append(machines, m)
	}
	return sorted, machines
}
