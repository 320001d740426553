package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// mostSpelled is how many runs a statement names one by one; of more it gives the ends.
const mostSpelled = 4

// together is a row that two runs or more compare with the same baseline.
type together struct {
	benchmark *JointBenchmark
	metric    *JointMetric
	row       *JointRow
	// shown are the runs in which each verdict is.
	better, worse, none []int
}

// size is the largest difference from the baseline that is shown, as a logarithm.
func (t together) size() float64 {
	var size float64
	for _, i := range slices.Concat(t.better, t.worse) {
		size = max(size, math.Abs(math.Log(t.row.Cells[i].Comparison.Ratio)))
	}
	return size
}

// rows gives the rows of a joint report that are compared in two runs or more.
func (j *Joint) rows() []together {
	var all []together
	for s := range j.Suites {
		for n := range j.Suites[s].Benchmarks {
			b := &j.Suites[s].Benchmarks[n]
			if b.Baseline == "" {
				continue
			}
			for m := range b.Metrics {
				for r := range b.Metrics[m].Rows {
					t := together{benchmark: b, metric: &b.Metrics[m], row: &b.Metrics[m].Rows[r]}
					if t.collect(); len(t.better)+len(t.worse)+len(t.none) > 1 {
						all = append(all, t)
					}
				}
			}
		}
	}
	return all
}

func (t *together) collect() {
	for i, c := range t.row.Cells {
		if c.Cell == nil || c.Comparison == nil {
			continue
		}
		switch c.Comparison.Verdict {
		case stats.Faster:
			t.better = append(t.better, i)
		case stats.Slower:
			t.worse = append(t.worse, i)
		case stats.NoDifference, stats.TooNoisy, stats.TooFew, stats.NotComparable:
			t.none = append(t.none, i)
		}
	}
}

func jointFindings(j *Joint) JointFindings {
	f := JointFindings{Breaches: j.breaches()}
	rows := j.rows()
	if len(rows) == 0 {
		return f
	}
	var same, some, none int
	var opposite []together
	for _, t := range rows {
		switch {
		case len(t.better) > 0 && len(t.worse) > 0:
			opposite = append(opposite, t)
		case len(t.better)+len(t.worse) == 0:
			none++
		case len(t.none) == 0:
			same++
		default:
			some++
		}
	}
	f.Comparisons = fmt.Sprintf("Of %d comparisons with the baseline that two runs or more have, %d show the same difference in each run, %d opposite ones, "+
		"%d a difference in some runs only, and %d none, which is no proof of equality.", len(rows), same, len(opposite), some, none)
	f.Opposite = j.opposites(opposite)
	contradicted := func(t together) bool { return slices.ContainsFunc(opposite, t.sameCell) }
	f.Statements = j.statements(slices.DeleteFunc(rows, contradicted))
	return f
}

// breaches says what does not hold, with the runs in which it does not.
func (j *Joint) breaches() []string {
	type kind struct{ title, target, broken, metric string }
	var kinds []kind
	first := map[kind]Breach{}
	where := map[kind][]string{}
	for i := range j.Runs {
		for _, b := range j.Runs[i].Findings.Breaches {
			k := kind{b.Title(), b.Target, b.Metric.Bound.Broken, b.Metric.Name}
			if _, known := first[k]; !known {
				kinds = append(kinds, k)
				first[k] = b
			}
			text := j.Runs[i].Label + " (" + Quantity(b.Median, b.Metric.Unit)
			if b.Doubt != "" {
				text += ", " + b.Doubt
			}
			where[k] = append(where[k], text+")")
		}
	}
	var all []string
	for _, k := range kinds {
		b := first[k]
		all = append(all, fmt.Sprintf("%s: %s %s on %s: %s should be %s at most.",
			k.title, k.target, k.broken, strings.Join(where[k], ", "), k.metric, Quantity(b.Metric.Bound.Most, b.Metric.Unit)))
	}
	return all
}

// sameCell tells whether two rows are of one benchmark on one target.
func (t together) sameCell(other together) bool {
	return t.benchmark == other.benchmark && t.row.Target == other.row.Target
}

// opposites says of each benchmark on a target where it is better than the baseline and where it is worse, by the
// metric that speaks for it, with the others counted.
func (j *Joint) opposites(rows []together) []string {
	var leads []together
	count := map[int]int{}
	for _, t := range rows {
		at := slices.IndexFunc(leads, t.sameCell)
		if at < 0 {
			leads, at = append(leads, t), len(leads)
		} else if t.before(leads[at]) {
			leads[at] = t
		}
		count[at]++
	}
	var all []string
	for i, t := range leads {
		if i == mostFindings {
			all = append(all, fmt.Sprintf("So it is with %d more.", len(leads)-i))
			break
		}
		all = append(all, t.opposite(j, count[i]))
	}
	return all
}

// statements picks the largest differences: one for a suite on a target, as in the report of one run.
func (j *Joint) statements(rows []together) []string {
	type cell struct {
		benchmark *JointBenchmark
		target    string
	}
	lead := map[cell]together{}
	var cells []cell
	for _, t := range rows {
		if len(t.better)+len(t.worse) == 0 {
			continue
		}
		c := cell{t.benchmark, t.row.Target}
		known, has := lead[c]
		if !has {
			cells = append(cells, c)
		}
		if !has || t.before(known) {
			lead[c] = t
		}
	}
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(lead[b].size(), lead[a].size()) })
	type topic struct{ target, suite string }
	told := map[topic]bool{}
	perTarget := map[string]int{}
	var statements []string
	for _, c := range cells {
		suite, _, _ := strings.Cut(c.benchmark.Name, ".")
		about := topic{c.target, suite}
		if len(statements) == mostFindings || told[about] || perTarget[c.target] == mostPerTarget {
			continue
		}
		told[about] = true
		perTarget[c.target]++
		statements = append(statements, lead[c].statement(j))
	}
	return statements
}

// before tells whether t rather than other speaks for a benchmark on a target: the metric that there are words
// for, in their order, else the one that differs most.
func (t together) before(other together) bool {
	mine, _ := phraseOf(t.benchmark.Name, t.metric.Name)
	its, _ := phraseOf(other.benchmark.Name, other.metric.Name)
	if mine != its {
		return mine < its
	}
	return t.size() > other.size()
}

// opposite says where a target is better than the baseline and where it is worse. The metric is one of n of which
// that is so.
func (t together) opposite(j *Joint, n int) string {
	better, worse := VerdictWord(stats.Faster, t.metric.Unit), VerdictWord(stats.Slower, t.metric.Unit)
	metrics := t.metric.Name
	if n > 1 {
		metrics += fmt.Sprintf(", as %s", counted(n-1, "more metric"))
	}
	return fmt.Sprintf("%s is %s than %s in one run, %s, and %s in another, %s: %s of %s.",
		t.row.Target, better, t.benchmark.Baseline, t.ratios(j, "", t.better), worse, t.ratios(j, "", t.worse), metrics, t.benchmark.Title())
}

// statement says how a target stands to the baseline in each run.
func (t together) statement(j *Joint) string {
	runs := slices.Sorted(slices.Values(slices.Concat(t.better, t.worse, t.none)))
	_, words := phraseOf(t.benchmark.Name, t.metric.Name)
	to := "the time of " + t.benchmark.Baseline
	if words == "" {
		words, to = ": "+t.metric.Name+" is", "that of "+t.benchmark.Baseline
	} else {
		words = " " + words
	}
	ratios := t.ratios(j, to, runs)
	if len(runs) > mostSpelled {
		byRatio := slices.SortedStableFunc(slices.Values(runs), func(a, b int) int {
			return cmp.Compare(t.row.Cells[a].Comparison.Ratio, t.row.Cells[b].Comparison.Ratio)
		})
		last := len(byRatio) - 1
		ratios = fmt.Sprintf("%s up to %s, in %d runs", t.ratios(j, to, byRatio[:1]), t.ratios(j, "", byRatio[last:]), len(runs))
	}
	return fmt.Sprintf("%s%s %s (%s).", t.row.Target, words, ratios, t.benchmark.Title())
}

// ratios spells the ratios of some runs, the first with what it is to: "× 8.13 the time of native on bench1 (7.90 to
// 8.40), × 9.20 on vm (8.80 to 9.60)".
func (t together) ratios(j *Joint, to string, runs []int) string {
	var parts []string
	if to != "" {
		to = " " + to
	}
	for _, i := range runs {
		c := t.row.Cells[i].Comparison
		ratio, interval := Ratio(c.Ratio), RatioInterval(c.CI)
		text := "no ratio on " + j.Runs[i].Label
		if ratio != None {
			text = ratio + to + " on " + j.Runs[i].Label
			to = ""
		}
		var notes []string
		if interval != None {
			notes = append(notes, interval)
		}
		switch c.Verdict {
		case stats.Faster, stats.Slower:
		case stats.NoDifference, stats.TooNoisy, stats.TooFew, stats.NotComparable:
			notes = append(notes, VerdictWord(c.Verdict, t.metric.Unit))
		}
		if len(notes) > 0 {
			text += " (" + strings.Join(notes, ", ") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
