package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Bounds of the list of findings. More than a handful is no summary; one target that is
// slow at everything must not crowd out the others.
const (
	mostFindings  = 6
	mostPerTarget = 3
	mostGaps      = 6
	mostEqual     = 5
)

// phrase says in plain words what a metric of a benchmark tells of a target. Of a benchmark
// that has several, the first for which a difference is shown speaks for it. An N in the
// words is the last component of the benchmark's name.
type phrase struct{ benchmark, metric, words string }

// phraseOf gives the words for a metric with their place among all; without words, a place behind all.
func phraseOf(benchmark, metric string) (place int, words string) {
	all := phrases()
	for i, p := range all {
		if p.metric == metric && (benchmark == p.benchmark || strings.HasPrefix(benchmark, p.benchmark+".")) {
			return i, strings.Replace(p.words, "N", benchmark[strings.LastIndexByte(benchmark, '.')+1:], 1)
		}
	}
	return len(all), ""
}

func phrases() []phrase {
	return []phrase{
		{"operations.container.lifecycle", "CreateAndRun", "creates and starts a container in"},
		{"operations.container.lifecycle", "FirstInstruction", "brings a container to its first instruction in"},
		{"operations.container.lifecycle", "Destroy", "destroys a container in"},
		{"operations.container.exec", "Exec", "runs a further process in a container in"},
		{"operations.container.pause", "Pause", "pauses a container in"},
		{"operations.service.ready", "Ready", "answers the first request after"},
		{"scalability.runtime", "TotalTime", "starts N containers in"},
		{"scalability.runtime", "DestroyTime", "destroys N containers in"},
	}
}

// finding is a benchmark on a target with the metrics on which the same verdict is shown.
type finding struct {
	benchmark *Benchmark
	target    string
	verdict   stats.Verdict
	metrics   []shown
	compared  int // metrics of the benchmark that were compared at all
}

type shown struct {
	metric *Metric
	cell   *Cell
}

// size is how far the ratio is from 1, in either direction.
func (s shown) size() float64 { return math.Abs(math.Log(s.cell.Comparison.Ratio)) }

// findings picks the largest differences that are shown: one statement for a suite on a
// target, of its benchmark that differs most, the metric that speaks for it with the
// others counted.
func findings(m *Model) Findings {
	all := candidates(m)
	slices.SortStableFunc(all, func(a, b finding) int {
		x, _ := a.lead()
		y, _ := b.lead()
		return cmp.Compare(y.size(), x.size())
	})
	var f Findings
	type topic struct{ target, suite string }
	told := map[topic]bool{}
	perTarget := map[string]int{}
	for _, candidate := range all {
		suite, _, _ := strings.Cut(candidate.benchmark.Name, ".")
		about := topic{candidate.target, suite}
		if len(f.Statements) == mostFindings || told[about] || perTarget[candidate.target] == mostPerTarget {
			continue
		}
		told[about] = true
		perTarget[candidate.target]++
		f.Statements = append(f.Statements, candidate.String())
	}
	for _, s := range m.Suites {
		for _, b := range s.Benchmarks {
			f.Breaches = append(f.Breaches, b.Breaches...)
		}
	}
	f.Comparisons = comparisons(m)
	f.NotMeasured = notMeasured(m)
	return f
}

func candidates(m *Model) []finding {
	var all []finding
	for i := range m.Suites {
		for j := range m.Suites[i].Benchmarks {
			b := &m.Suites[i].Benchmarks[j]
			for t := range b.Targets {
				all = append(all, ofTarget(b, t)...)
			}
		}
	}
	return all
}

func ofTarget(b *Benchmark, at int) []finding {
	faster := finding{benchmark: b, target: b.Targets[at].Target, verdict: stats.Faster}
	slower := finding{benchmark: b, target: b.Targets[at].Target, verdict: stats.Slower}
	compared := 0
	for i := range b.Metrics {
		cell := &b.Metrics[i].Cells[at]
		if cell.Comparison == nil {
			continue
		}
		compared++
		switch s := (shown{&b.Metrics[i], cell}); cell.Comparison.Verdict {
		case stats.Faster:
			faster.metrics = append(faster.metrics, s)
		case stats.Slower:
			slower.metrics = append(slower.metrics, s)
		case stats.NoDifference, stats.TooNoisy, stats.TooFew, stats.NotComparable:
		}
	}
	faster.compared, slower.compared = compared, compared
	return slices.DeleteFunc([]finding{faster, slower}, func(f finding) bool { return len(f.metrics) == 0 })
}

// lead is the metric that speaks for the finding, with its words if there are any.
func (f finding) lead() (shown, string) {
	speaks := slices.MinFunc(f.metrics, func(a, b shown) int {
		first, _ := phraseOf(f.benchmark.Name, a.metric.Name)
		second, _ := phraseOf(f.benchmark.Name, b.metric.Name)
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(b.size(), a.size()))
	})
	_, words := phraseOf(f.benchmark.Name, speaks.metric.Name)
	return speaks, words
}

func (f finding) String() string {
	s, words := f.lead()
	value := Quantity(s.cell.Summary.Median, s.metric.Unit)
	relation := relation(s.cell.Comparison.Ratio, s.metric.Metric, f.benchmark.Baseline)
	var out string
	if words != "" {
		out = fmt.Sprintf("%s %s %s, %s", f.target, words, value, relation)
	} else {
		out = fmt.Sprintf("%s: %s %s, %s", f.target, s.metric.Name, value, relation)
	}
	out += fmt.Sprintf(" (95 %% interval %s; %s", RatioInterval(s.cell.Comparison.CI), f.benchmark.Title())
	word := VerdictWord(f.verdict, s.metric.Unit)
	switch {
	case len(f.metrics) == 1:
	case len(f.metrics) == f.compared:
		out += fmt.Sprintf(", %s on all %d metrics", word, f.compared)
	default:
		out += fmt.Sprintf(", %s on %d of %d metrics", word, len(f.metrics), f.compared)
	}
	out += ")."
	if slices.ContainsFunc(s.cell.Summary.Warnings, func(w stats.Warning) bool { return w.Kind == stats.Bimodal }) {
		out += " Its values lie in two groups: see the plot."
	}
	return out
}

// relation says how a value stands to the baseline's, as a factor from two on and in per
// cent below.
func relation(ratio float64, m result.Metric, baseline string) string {
	duration := m.Unit == result.Seconds
	switch {
	case duration && ratio >= 2:
		return fmt.Sprintf("%s × as long as %s", Number(ratio), baseline)
	case duration && ratio > 1:
		return fmt.Sprintf("%s longer than %s", Percent(ratio-1), baseline)
	case duration && ratio > 0.5:
		return fmt.Sprintf("%s less than %s", Percent(1-ratio), baseline)
	case duration:
		return fmt.Sprintf("%s × as fast as %s", Number(1/ratio), baseline)
	case ratio >= 2 || ratio <= 0.5:
		return fmt.Sprintf("%s × that of %s", Number(ratio), baseline)
	case ratio > 1:
		return fmt.Sprintf("%s more than %s", Percent(ratio-1), baseline)
	default:
		return fmt.Sprintf("%s less than %s", Percent(1-ratio), baseline)
	}
}

func comparisons(m *Model) string {
	count := map[stats.Verdict]int{}
	total := 0
	var targets []string
	equal := map[string]int{}
	for _, s := range m.Suites {
		for _, b := range s.Benchmarks {
			for _, metric := range b.Metrics {
				for _, c := range metric.Cells {
					if c.Comparison == nil {
						continue
					}
					total++
					count[c.Comparison.Verdict]++
					if c.Comparison.Verdict != stats.NoDifference {
						continue
					}
					if equal[c.Target] == 0 {
						targets = append(targets, c.Target)
					}
					equal[c.Target]++
				}
			}
		}
	}
	if total == 0 {
		return ""
	}
	out := fmt.Sprintf("Of %d comparisons with the baseline %d show a difference", total, count[stats.Faster]+count[stats.Slower])
	if len(targets) > 0 {
		var parts []string
		for _, t := range targets[:min(len(targets), mostEqual)] {
			parts = append(parts, fmt.Sprintf("%s %d", t, equal[t]))
		}
		if more := len(targets) - mostEqual; more > 0 {
			parts = append(parts, fmt.Sprintf("%d other targets", more))
		}
		out += fmt.Sprintf("; %d show none (%s), which is no proof of equality", count[stats.NoDifference], strings.Join(parts, ", "))
	}
	for _, rest := range []struct {
		verdict stats.Verdict
		words   string
	}{
		{stats.TooNoisy, "too noisy to tell"},
		{stats.TooFew, "of too few samples"},
		{stats.NotComparable, "not comparable"},
	} {
		if n := count[rest.verdict]; n > 0 {
			out += fmt.Sprintf("; %d are %s", n, rest.words)
		}
	}
	return out + "."
}

// notMeasured names what has no number, all with the same reason together: the first reasons,
// with the others counted.
func notMeasured(m *Model) []string {
	var gaps []gap
	for _, t := range m.Targets {
		if t.Unavailable != "" && t.OK == 0 {
			gaps = put(gaps, "", t.Unavailable, t.Name)
		}
	}
	for _, u := range m.Unmeasured {
		for _, r := range u.Reasons {
			where := named(u.Benchmarks)
			if r.Targets != nil {
				where += " on "
			}
			gaps = append(gaps, gap{where, r.Text, r.Targets})
		}
	}
	for _, miss := range m.Missing {
		if miss.Count == miss.Total && m.measured(miss) { // else there are numbers
			gaps = put(gaps, miss.Title()+" on ", StatusWord(miss.Status)+": "+miss.Reason, miss.Target)
		}
	}
	var items []string
	for _, g := range gaps[:min(len(gaps), mostGaps)] {
		items = append(items, fmt.Sprintf("%s%s (%s)", g.where, strings.Join(g.targets, ", "), g.reason))
	}
	if more := len(gaps) - mostGaps; more > 0 {
		items = append(items, fmt.Sprintf("and for %d more reasons", more))
	}
	return items
}

// gap is targets, all if there are none, that lack the same thing for the same reason.
type gap struct {
	where, reason string
	targets       []string
}

// put adds a target to its gap.
func put(gaps []gap, where, reason, target string) []gap {
	at := slices.IndexFunc(gaps, func(g gap) bool { return g.where == where && g.reason == reason })
	if at < 0 {
		return append(gaps, gap{where, reason, []string{target}})
	}
	gaps[at].targets = append(gaps[at].targets, target)
	return gaps
}
