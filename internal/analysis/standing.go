package analysis

import (
	"cmp"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Standing is the targets of a run by their cost on one metric. A cost is a ratio that is above 1 for a target that is worse, for metrics of both
// directions.
type Standing struct {
	// Heading is the column of the metric in a summary, or the name of a metric that has none.
	Heading   string
	Benchmark *Benchmark
	Metric    *Metric
	// Reference is the baseline of the benchmark. Value is the value on it.
	Reference string
	Value     *stats.Summary
	// Entries are the other targets with a value, the lowest typical cost first.
	Entries []Entry

	analysis *Analysis
	run      int
}

// Entry is a target of a standing.
type Entry struct {
	Target *Target
	Value  *stats.Summary
	// Comparison is the comparison with the reference. It is nil if the two cannot be compared.
	Comparison *stats.Comparison
	// BlocksNeeded is the smallest number of blocks that can give the comparison a verdict.
	BlocksNeeded int
}

// Standings are the standings of a run: one for each column of a summary, in the order of [result.Columns]. If several metrics have the same column, it is
// the one with the most targets, or the first of these. A run without any column has one metric of each benchmark, if possible one with a phrase.
func (a *Analysis) Standings(run int) []Standing {
	var columns, rest []Standing
	for _, b := range a.Benchmarks() {
		if b.Sections[run] == nil {
			continue
		}
		first := true
		// The metrics with a phrase are the ones that the benchmark is about.
		for _, phrased := range []bool{true, false} {
			for i := range b.Metrics {
				m := &b.Metrics[i]
				if !m.IsJudged() || (m.Phrase != "") != phrased || m.Column == "" && !first {
					continue
				}
				s := a.standing(run, b, m)
				switch {
				case s.Entries == nil && s.Value == nil:
				case m.Column != "":
					columns = append(columns, s)
				default:
					rest, first = append(rest, s), false
				}
			}
		}
	}
	if columns == nil {
		return rest
	}
	var standings []Standing
	for _, c := range result.Columns() {
		match := lists.Filter(columns, func(s Standing) bool { return s.Metric.Column == c })
		if len(match) > 0 {
			standings = append(standings, slices.MaxFunc(match, func(a, b Standing) int { return cmp.Compare(len(a.Entries), len(b.Entries)) }))
		}
	}
	return standings
}

func (a *Analysis) standing(run int, b *Benchmark, m *Metric) Standing {
	r := &a.Runs[run]
	s := Standing{Heading: cmp.Or(string(m.Column), m.Name), Benchmark: b, Metric: m, Reference: b.Sections[run].Baseline, analysis: a, run: run}
	rows := m.valued(run)
	for i := range rows {
		c := &rows[i].Cells[run]
		if rows[i].Target == s.Reference {
			s.Value = c.Summary
			continue
		}
		s.Entries = append(s.Entries, Entry{Target: r.target(rows[i].Target), Value: c.Summary, Comparison: c.Comparison, BlocksNeeded: c.BlocksNeeded})
	}
	s.arrange(s.Entries)
	return s
}

// target is the target of a row.
func (r *Run) target(name string) *Target {
	return &r.Targets[slices.IndexFunc(r.Targets, func(t Target) bool { return t.Name == name })]
}

// arrange puts the lowest typical cost first.
func (s *Standing) arrange(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(s.order(a), s.order(b)) })
}

// valued are the rows with a number in a run.
func (m *Metric) valued(run int) []Row {
	return lists.Filter(m.Rows, func(row Row) bool { return row.Cells[run].Summary != nil })
}

// order is a number that is larger for a target that is worse.
func (s *Standing) order(e Entry) float64 {
	if s.Metric.Better == result.Higher {
		return -e.Value.Median
	}
	return e.Value.Median
}

// OfPart reports whether a part of the values shows the difference, and not the typical value. A difference in both directions is of several parts.
func OfPart(c *stats.Comparison) bool {
	return c.Differs() && c.Verdict != stats.Mixed && c.By != "" && c.By != stats.Typical
}

// compare compares the targets with a value that match with one of them, as one family. Comparisons that have no ratio are not among them.
func (s *Standing) compare(reference string, match func(target string) bool) map[string]*stats.Comparison {
	rows, r := s.Metric.valued(s.run), &s.analysis.Runs[s.run]
	index := slices.IndexFunc(rows, func(row Row) bool { return row.Target == reference })
	if index < 0 {
		return nil
	}
	members := lists.Filter(rows, func(row Row) bool { return match(row.Target) })
	comparisons := compareRows(&rows[index], members, s.run, s.Metric.Metric, s.Benchmark.Sections[s.run], r.Unjudged && s.Metric.OfSpeed(), s.analysis.MinEffect,
		func(target string) uint64 { return cellSeed(r.Seed, s.Benchmark.Key, target, s.Metric.Name) })
	for target, c := range comparisons {
		if !finite(c.Ratio) {
			delete(comparisons, target)
		}
	}
	return comparisons
}

// Lead is a target that costs least on a metric, as far as the run shows it: the target with the lowest typical cost, compared with each other one.
type Lead struct {
	*Standing
	Best Entry
	// Dearer are shown to cost more than Best. On Equal no difference from it is shown, or one that does not matter. Open have no verdict, or differences in both
	// directions.
	Dearer, Equal, Open []Entry
	// Lacking is the number of matching targets without a value on this metric, and with one on another metric.
	Lacking int

	comparisons map[string]*stats.Comparison // with Best
}

// Leads compares the targets that match, on each standing with at least two of them. All comparisons are one family, because a reader has them in one
// sentence. A standing without verdicts has no lead.
func Leads(standings []Standing, match func(*Target) bool) []Lead {
	var leads []Lead
	var family []*stats.Comparison
	members := map[string]bool{}
	for i := range standings {
		for _, e := range standings[i].members(match) {
			members[e.Target.Name] = true
		}
	}
	for i := range standings {
		if l := standings[i].lead(match); l != nil {
			l.Lacking = len(members) - len(l.Open) - 1
			leads = append(leads, *l)
		}
	}
	for _, l := range leads {
		for _, e := range l.Open {
			if c := l.comparisons[e.Target.Name]; c != nil {
				family = append(family, c)
			}
		}
	}
	judgeAll(family, standings)
	for i := range leads {
		leads[i].sort()
	}
	return leads
}

// judgeAll judges comparisons of several metrics as one family.
func judgeAll(family []*stats.Comparison, standings []Standing) {
	if len(family) == 0 {
		return
	}
	values := make([]stats.Comparison, len(family))
	for i, c := range family {
		values[i] = *c
	}
	for i, c := range stats.Judge(values, stats.Alpha, standings[0].analysis.MinEffect) {
		*family[i] = c
	}
}

// withheld reports whether verdicts about the metric are withheld.
func (s *Standing) withheld() bool {
	return s.analysis.Runs[s.run].Unjudged && s.Metric.OfSpeed()
}

// members are the targets with a value that match. The reference takes part without a comparison: it may cost less than all others.
func (s *Standing) members(match func(*Target) bool) []Entry {
	entries := slices.Clone(s.Entries)
	if s.Value != nil {
		entries = append(entries, Entry{Target: s.analysis.Runs[s.run].target(s.Reference), Value: s.Value})
		s.arrange(entries)
	}
	return lists.Filter(entries, func(e Entry) bool { return match(e.Target) })
}

// lead is the lead with its comparisons, and all other targets in Open.
func (s *Standing) lead(match func(*Target) bool) *Lead {
	entries := s.members(match)
	if len(entries) < 2 || s.withheld() {
		return nil
	}
	member := func(name string) bool {
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.Target.Name == name })
	}
	l := &Lead{Standing: s}
	// The order of the medians is not the order of the ratios within blocks, so another target may be shown to cost less.
	best := 0
	for range entries {
		l.comparisons = s.compare(entries[best].Target.Name, member)
		cheaper := slices.IndexFunc(entries, func(e Entry) bool {
			c := l.comparisons[e.Target.Name]
			return c != nil && c.Verdict == stats.Faster
		})
		if cheaper < 0 {
			break
		}
		best = cheaper
	}
	l.Best, l.Open = entries[best], slices.Delete(slices.Clone(entries), best, best+1)
	return l
}

// sort divides the other targets by their verdicts.
func (l *Lead) sort() {
	entries := l.Open
	l.Open = nil
	for _, e := range entries {
		list := &l.Open
		if c := l.comparisons[e.Target.Name]; c != nil {
			switch c.Verdict {
			case stats.Slower:
				list = &l.Dearer
			case stats.NoDifference, stats.TooNoisy, stats.Negligible:
				list = &l.Equal
			case stats.Faster, stats.Mixed, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Withheld:
			}
		}
		*list = append(*list, e)
	}
}

// Versus is the comparison of a target with another one on a metric.
type Versus struct {
	*Standing
	Target, Reference string
	Comparison        *stats.Comparison
}

// Pair is a target and the one that it is compared with.
type Pair struct{ Target, Reference string }

// Compare compares pairs on each standing that has values of both. All comparisons are one family, because a reader has them in one sentence. A standing
// without verdicts has no comparison.
func Compare(standings []Standing, pairs []Pair) []Versus {
	var out []Versus
	var family []*stats.Comparison
	for i := range standings {
		s := &standings[i]
		if s.withheld() {
			continue
		}
		for _, p := range pairs {
			if c := s.compare(p.Reference, func(name string) bool { return name == p.Target })[p.Target]; c != nil {
				out, family = append(out, Versus{s, p.Target, p.Reference, c}), append(family, c)
			}
		}
	}
	judgeAll(family, standings)
	return out
}

// Addition is the metric on a target minus the metric on another one, in blocks that have both. It is nil if no block has.
func (s *Standing) Addition(target, base string) *stats.Difference {
	samples := func(name string) []stats.Sample {
		for _, row := range s.Metric.valued(s.run) {
			if row.Target == name {
				return samplesOf(row.Cells[s.run].Points)
			}
		}
		return nil
	}
	total, part := samples(target), samples(base)
	if total == nil || part == nil {
		return nil
	}
	d := stats.Subtract(total, [][]stats.Sample{part})
	if !finite(d.Median) {
		return nil
	}
	return &d
}
