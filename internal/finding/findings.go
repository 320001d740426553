// Package finding states in sentences what an analysis supports: findings, the summary of the scorecard, warnings and notes. Each sentence follows from
// the analysis by a rule, and the package computes no statistics. Layouts add no sentence about results of their own.
package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Limits of the list of findings. One target that differs everywhere must not displace the
// others. The last two limit lists of targets and runs in a sentence.
const (
	mostFindings  = 6
	mostBeside    = 3 // beside answers
	mostPerTarget = 3
	mostGaps      = 6
	mostEqual     = 5
	mostSpelled   = 4
)

// Findings are the clearest statements that the runs support.
type Findings struct {
	// Breaches are bounds that medians exceed. They come first and need no comparison.
	Breaches []string
	// Answers answer the questions that people bring to a single run. They are empty for several runs.
	Answers []Answer
	// Open is the goals of the scorecard without a verdict, and the dimensions without a value. It is empty without a scorecard.
	Open []string
	// Opposite are targets that are better than the baseline in one run and worse in another.
	Opposite []string
	// Statements are the largest differences that are shown.
	Statements []string
	// Comparisons counts the comparisons by verdict; with several runs, by agreement of the runs. It is empty if there are
	// none.
	Comparisons string
	// Failures are the shares of failed calls, by target.
	Failures []string
	// NotMeasured lists the gaps of a single run by reason.
	NotMeasured []string
	// Withheld counts the comparisons without a verdict because a CPU is emulated. It is empty without such comparisons.
	Withheld string
}

// evidence is a row with a comparison in some run.
type evidence struct {
	benchmark *analysis.Benchmark
	metric    *analysis.Metric
	row       *analysis.Row
	// The runs by verdict: better, worse, different in both directions, and no difference shown.
	better, worse, mixed, none []int
}

// collect lists the rows of all metrics that were compared in at least one run, in two of several. A benchmark without a
// common baseline has none.
func collect(a *analysis.Analysis) []evidence {
	var rows []evidence
	for _, b := range a.Benchmarks() {
		if b.Baseline == "" {
			continue
		}
		for m := range b.Metrics {
			for n := range b.Metrics[m].Rows {
				e := evidence{benchmark: b, metric: &b.Metrics[m], row: &b.Metrics[m].Rows[n]}
				for run, c := range e.row.Cells {
					if c.Comparison == nil {
						continue
					}
					switch c.Comparison.Verdict {
					case stats.Faster:
						e.better = append(e.better, run)
					case stats.Slower:
						e.worse = append(e.worse, run)
					case stats.Mixed:
						e.mixed = append(e.mixed, run)
					case stats.NoDifference, stats.TooNoisy, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Negligible:
						e.none = append(e.none, run)
					case stats.Withheld:
					}
				}
				if len(e.runs()) >= min(2, len(a.Runs)) && len(e.runs()) > 0 {
					rows = append(rows, e)
				}
			}
		}
	}
	return rows
}

// runs are all runs with a comparison.
func (e evidence) runs() []int {
	return slices.Sorted(slices.Values(slices.Concat(e.better, e.worse, e.mixed, e.none)))
}

// shown are the runs that show a difference.
func (e evidence) shown() []int { return slices.Concat(e.better, e.worse, e.mixed) }

// size is the largest difference that is shown, as a logarithm.
func (e evidence) size() float64 {
	var size float64
	for _, i := range e.shown() {
		size = max(size, math.Abs(math.Log(e.row.Cells[i].Comparison.DecidingRatio())))
	}
	return size
}

// everywhere reports whether the difference is shown over all comparisons of some run.
func (e evidence) everywhere() bool {
	return slices.ContainsFunc(e.shown(), func(i int) bool { return e.row.Cells[i].Comparison.Everywhere })
}

// verdict is the difference that the runs show: in both directions only if no run has a better or worse one. It is NoDifference without a difference.
func (e evidence) verdict() stats.Verdict {
	switch {
	case len(e.better) > 0:
		return stats.Faster
	case len(e.worse) > 0:
		return stats.Slower
	case len(e.mixed) > 0:
		return stats.Mixed
	}
	return stats.NoDifference
}

// finding is the evidence of one benchmark on one target with the same verdict.
type finding struct {
	evidence []evidence
	verdict  stats.Verdict
	compared int // metrics of the benchmark on the target with a comparison
}

// lead is the evidence that represents the finding: a difference that is shown over all comparisons of its run, then the first metric with a
// phrase, else the metric that differs most.
func (f finding) lead() evidence {
	return slices.MinFunc(f.evidence, func(a, b evidence) int {
		return cmp.Or(falseLast(a.everywhere(), b.everywhere()), cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.size(), a.size()))
	})
}

// rank is the place of the metric in its benchmark. A metric without a phrase ranks behind all others.
func (e evidence) rank() int {
	if e.metric.Phrase == "" {
		return len(e.benchmark.Metrics)
	}
	return slices.IndexFunc(e.benchmark.Metrics, func(m analysis.Metric) bool { return m.Name == e.metric.Name && m.Unit == e.metric.Unit })
}

// New states the largest differences that are shown: one for each suite and target.
func New(a *analysis.Analysis) Findings {
	f := Findings{Breaches: breaches(a), Failures: failures(a), Withheld: withheld(a)}
	rows := collect(a)
	if len(a.Runs) == 1 {
		f.Answers = Answers(a, 0)
		f.Open = untold(&a.Runs[0].Scorecard)
		f.Comparisons = verdicts(a)
		f.NotMeasured = notMeasured(&a.Runs[0])
	} else {
		f.Comparisons = agreement(rows)
	}
	var opposite, candidates []finding
	for _, group := range byTarget(rows) {
		if odd := lists.Filter(group, func(e evidence) bool { return len(e.better) > 0 && len(e.worse) > 0 }); len(odd) > 0 {
			opposite = append(opposite, finding{evidence: odd})
			continue
		}
		for _, v := range []stats.Verdict{stats.Faster, stats.Slower, stats.Mixed} {
			if match := lists.Filter(group, func(e evidence) bool { return e.verdict() == v }); len(match) > 0 {
				candidates = append(candidates, finding{match, v, len(group)})
			}
		}
	}
	f.Opposite = opposites(a, opposite)
	slices.SortStableFunc(candidates, func(a, b finding) int {
		return cmp.Or(falseLast(a.lead().everywhere(), b.lead().everywhere()), cmp.Compare(b.lead().size(), a.lead().size()))
	})
	type topic struct{ target, suite string }
	topics := map[topic]bool{}
	perTarget := map[string]int{}
	limit := mostFindings
	if f.Answers != nil {
		limit = mostBeside
	}
	for _, c := range candidates {
		lead := c.lead()
		suite, _, _ := strings.Cut(lead.benchmark.Name, ".")
		subject := topic{lead.row.Target, suite}
		if len(f.Statements) == limit || topics[subject] || perTarget[lead.row.Target] == mostPerTarget {
			continue
		}
		topics[subject] = true
		perTarget[lead.row.Target]++
		f.Statements = append(f.Statements, statement(a, c))
	}
	return f
}

// falseLast orders true before false.
func falseLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// withheld counts the comparisons without a verdict because a CPU is emulated.
func withheld(a *analysis.Analysis) string {
	var parts []string
	for i := range a.Runs {
		run := &a.Runs[i]
		if run.Withheld == 0 {
			continue
		}
		text := wording.Counted(run.Withheld, "comparison") + " of speed"
		if len(a.Runs) > 1 {
			text += " on " + run.Label
		}
		parts = append(parts, text)
	}
	if parts == nil {
		return ""
	}
	return "No verdict on " + wording.Listed(parts) + ": see the note on the emulated CPU at the top."
}

// byTarget groups evidence by benchmark and target.
func byTarget(rows []evidence) [][]evidence {
	var groups [][]evidence
	for _, e := range rows {
		g := lists.Place(&groups, func(g *[]evidence) bool {
			return (*g)[0].benchmark == e.benchmark && (*g)[0].row.Target == e.row.Target
		}, nil)
		*g = append(*g, e)
	}
	return groups
}

// statement spells a finding: "oci/runc creates and starts a container in 25.5 ms, 28.1 × slower than native (…)". With
// several runs it has a cost in each of them.
func statement(a *analysis.Analysis, f finding) string {
	e := f.lead()
	if len(a.Runs) > 1 {
		return fmt.Sprintf("%s: %s costs %s (%s).", e.row.Target, e.metric.Name, e.costs(a), e.benchmark.Title())
	}
	c := &e.row.Cells[0]
	lead := e.row.Target + ": " + e.metric.Name
	if e.metric.Phrase != "" {
		lead = e.row.Target + " " + e.metric.Phrase
	}
	factor := quantity.AddBaseline(quantity.Ratio(c.Comparison, e.metric.Metric), e.benchmark.Baseline) + " (95 % interval " + quantity.FactorInterval(c.Comparison)
	if part := quantity.Parts(c.Comparison, e.metric.Metric, quantity.Factor); part != "" {
		reason := "the typical value is not shown to differ"
		if f.verdict == stats.Mixed {
			reason = "its parts differ in both directions"
		}
		factor = quantity.AddBaseline(part, e.benchmark.Baseline) + " (" + reason
	}
	out := fmt.Sprintf("%s %s, %s; %s", lead, quantity.Text(c.Summary.Median, e.metric.Unit), factor, e.benchmark.Title())
	word := quantity.VerdictWord(f.verdict, e.metric.Metric)
	switch {
	case len(f.evidence) == 1:
	case len(f.evidence) == f.compared:
		out += fmt.Sprintf(", %s on all %d metrics", word, f.compared)
	default:
		out += fmt.Sprintf(", %s on %d of %d metrics", word, len(f.evidence), f.compared)
	}
	if tier := quantity.Tier(c.Comparison); tier != "" {
		out += "; shown in " + tier
	}
	out += ")."
	if slices.ContainsFunc(c.Summary.Warnings, func(w stats.Warning) bool { return w.Kind == stats.Bimodal }) {
		out += " Its values lie in two groups: see the plot."
	}
	return out
}

// costs spells the costs in all runs, or the smallest and the largest cost of many.
func (e evidence) costs(a *analysis.Analysis) string {
	runs := e.runs()
	if len(runs) <= mostSpelled {
		return e.spelled(a, runs, e.benchmark.Baseline)
	}
	slices.SortStableFunc(runs, func(a, b int) int {
		return cmp.Compare(e.metric.Cost(e.row.Cells[a].Comparison.Ratio), e.metric.Cost(e.row.Cells[b].Comparison.Ratio))
	})
	return fmt.Sprintf("between %s and %s, in %d runs", e.spelled(a, runs[:1], e.benchmark.Baseline), e.spelled(a, runs[len(runs)-1:], ""), len(runs))
}

// spelled spells the costs in some runs, the first with the baseline: "8.13 × native on bench1 (7.90 to 8.40), 9.20 × on vm (8.80 to 9.60)". The costs of a
// sentence have one direction, as in a row of a table.
func (e evidence) spelled(a *analysis.Analysis, runs []int, baseline string) string {
	var parts []string
	for _, i := range runs {
		c := e.row.Cells[i].Comparison
		place := " on " + a.Runs[i].Label
		text := "an unknown amount" + place
		if cost := quantity.Cost(c.Ratio, e.metric.Metric); cost != quantity.None {
			text = strings.TrimSuffix(cost+" "+baseline, " ") + place
			baseline = ""
		}
		var notes []string
		if c.CI != nil {
			notes = append(notes, quantity.CostInterval(c.CI, e.metric.Metric))
		}
		if !c.Differs() {
			notes = append(notes, quantity.VerdictWord(c.Verdict, e.metric.Metric))
		}
		if part := quantity.Parts(c, e.metric.Metric, quantity.Cost); part != "" {
			notes = append(notes, "shown for the "+part)
		}
		if len(notes) > 0 {
			text += " (" + strings.Join(notes, ", ") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// opposites describes the benchmarks on targets that are better than the baseline in one run and worse in another.
func opposites(a *analysis.Analysis, findings []finding) []string {
	var texts []string
	for i, f := range findings {
		if i == mostFindings {
			return append(texts, fmt.Sprintf("The same holds for %s more.", wording.Counted(len(findings)-i, "target")))
		}
		e := f.lead()
		rest := ""
		if n := len(f.evidence) - 1; n > 0 {
			rest = " and " + wording.Counted(n, "more metric")
		}
		texts = append(texts, fmt.Sprintf("%s: %s costs %s, but %s (%s%s of %s).", e.row.Target, e.metric.Name,
			e.spelled(a, e.better, e.benchmark.Baseline), e.spelled(a, e.worse, ""), e.metric.Name, rest, e.benchmark.Title()))
	}
	return texts
}

// agreement counts the comparisons of several runs by agreement.
func agreement(rows []evidence) string {
	if len(rows) == 0 {
		return ""
	}
	var agreeing, partial, equal, opposite, conflicts int
	for _, e := range rows {
		switch {
		case len(e.better) > 0 && len(e.worse) > 0:
			opposite++
		case len(e.mixed) > 0:
			conflicts++
		case len(e.better)+len(e.worse) == 0:
			equal++
		case len(e.none) == 0:
			agreeing++
		default:
			partial++
		}
	}
	clause := ""
	if conflicts > 0 {
		clause = fmt.Sprintf("%d with parts that differ in both directions, ", conflicts)
	}
	return fmt.Sprintf("Two runs or more share %d comparisons with the baseline: %d show the same difference in each run, %d opposite ones, "+
		"%s%d a difference in some runs only, and %d none, which is no proof of equality.", len(rows), agreeing, opposite, clause, partial, equal)
}

// verdicts counts the comparisons of a single run by verdict.
func verdicts(a *analysis.Analysis) string {
	count := map[stats.Verdict]int{}
	total := 0
	var targets []string
	equal := map[string]int{}
	for _, b := range a.Benchmarks() {
		for _, m := range b.Metrics {
			for _, row := range m.Rows {
				c := row.Cells[0].Comparison
				if c == nil || c.Verdict == stats.Withheld {
					continue
				}
				total++
				count[c.Verdict]++
				if c.Verdict != stats.NoDifference {
					continue
				}
				if equal[row.Target] == 0 {
					targets = append(targets, row.Target)
				}
				equal[row.Target]++
			}
		}
	}
	if total == 0 {
		return ""
	}
	out := fmt.Sprintf("Of %d comparisons with the baseline %d show a difference", total, count[stats.Faster]+count[stats.Slower]+count[stats.Mixed])
	if len(targets) > 0 {
		var parts []string
		for _, t := range targets[:min(len(targets), mostEqual)] {
			parts = append(parts, fmt.Sprintf("%s %d", t, equal[t]))
		}
		if surplus := len(targets) - mostEqual; surplus > 0 {
			parts = append(parts, wording.Counted(surplus, "other target"))
		}
		out += fmt.Sprintf("; %d show none (%s), which is no proof of equality", count[stats.NoDifference], strings.Join(parts, ", "))
	}
	for _, rest := range []struct {
		verdict   stats.Verdict
		one, many string
	}{
		{stats.Negligible, "is too small to matter", "are too small to matter"},
		{stats.TooNoisy, "is too noisy for a verdict", "are too noisy for a verdict"},
		{stats.TooFew, "has too few samples", "have too few samples"},
		{stats.NotComparable, "is not comparable", "are not comparable"},
		{stats.TrialsLost, "has no verdict because of lost trials", "have no verdict because of lost trials"},
	} {
		switch n := count[rest.verdict]; n {
		case 0:
		case 1:
			out += "; 1 " + rest.one
		default:
			out += fmt.Sprintf("; %d %s", n, rest.many)
		}
	}
	out += "."
	if tiers := tiersNote(&a.Runs[0]); tiers != "" {
		out += " " + tiers
	}
	return out
}

// notMeasured lists the gaps of a run by reason: the first reasons, and the number of the others.
func notMeasured(r *analysis.Run) []string {
	var gaps []gap
	for _, t := range r.Targets {
		if t.Unavailable != "" && t.OK == 0 {
			gaps = put(gaps, "", t.Unavailable, t.Name)
		}
	}
	for _, u := range r.Unmeasured {
		for _, reason := range u.Reasons {
			scope := wording.Shortlist(u.Benchmarks, "benchmarks")
			if reason.Targets != nil {
				scope += " on "
			}
			gaps = append(gaps, gap{scope, reason.Text, reason.Targets})
		}
	}
	for _, miss := range r.Missing {
		if miss.Count == miss.Total && r.Measured(&miss) { // else there are numbers
			gaps = put(gaps, miss.Title()+" on ", quantity.StatusWord(miss.Status)+": "+miss.Reason, miss.Target)
		}
	}
	var items []string
	for _, g := range gaps[:min(len(gaps), mostGaps)] {
		items = append(items, fmt.Sprintf("%s%s (%s)", g.where, strings.Join(g.targets, ", "), g.reason))
	}
	if rest := len(gaps) - mostGaps; rest > 0 {
		items = append(items, fmt.Sprintf("and for %d more reasons", rest))
	}
	return items
}

// gap is the targets without the same thing for the same reason. No targets means all of them.
type gap struct {
	where, reason string
	targets       []string
}

// put adds a target to its gap.
func put(gaps []gap, scope, reason, target string) []gap {
	g := lists.Place(&gaps, func(g *gap) bool { return g.where == scope && g.reason == reason }, gap{where: scope, reason: reason})
	g.targets = append(g.targets, target)
	return gaps
}
