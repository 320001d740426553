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

// The ideal state of a runtime (sateri, section 3.2): a program has at least 95 % of its native speed, and a container takes at
// most 1 % of the machine's memory.
const (
	idealSpeed  = 0.95
	idealMemory = 0.01
)

// Goal is the criterion of the ideal state for a dimension. Dimensions without a criterion have values and no verdict.
type Goal string

// The goals.
const (
	NoGoal     Goal = ""
	SpeedGoal  Goal = "≥ 95 % of native speed"
	MemoryGoal Goal = "≤ 1 % of memory"
)

func goalOf(d result.Dimension) Goal {
	switch d {
	case result.DimensionCPU, result.DimensionMemorySpeed, result.DimensionDisk, result.DimensionNetwork, result.DimensionSystemCalls:
		return SpeedGoal
	case result.DimensionMemoryOverhead:
		return MemoryGoal
	case result.DimensionStartUp, result.DimensionDensity, result.DimensionIsolation, result.DimensionFootprint:
	}
	return NoGoal
}

// ScoreVerdict says whether a target meets a goal.
type ScoreVerdict string

// The verdicts of a scorecard.
const (
	// Met means that the whole interval of every metric of the dimension is within the goal.
	Met ScoreVerdict = "met"
	// Missed means that a metric has a shown difference, and its whole interval is beyond the goal.
	Missed ScoreVerdict = "missed"
	// NotShown means that there is evidence, and it is too weak for either.
	NotShown ScoreVerdict = "not shown"
	// NotMeasured means that the run has no value.
	NotMeasured ScoreVerdict = "not measured"
	// NoVerdict is the verdict on a value without a goal.
	NoVerdict ScoreVerdict = ""
)

// Scorecard is the cost of each target of one run by dimension, after sateri, chapter 5.
//
// A dimension may have several metrics. The score of a target is then the metric that costs it most: a runtime that computes
// fast and decodes slowly has no fast CPU. No family is corrected a second time. A missed goal needs the verdict of the metric's own
// family, and a met goal needs every interval within the goal, which an intersection-union test allows without a correction
// (R. L. Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 24 (1982) 295–300).
type Scorecard struct {
	// Targets are the columns: the targets of the run with a value, without bare metal.
	Targets []string
	Rows    []ScoreRow
}

// ScoreRow is one dimension on all targets.
type ScoreRow struct {
	Dimension result.Dimension
	Goal      Goal
	Scores    []Score // by target
}

// Score is one dimension on one target. Without a value only Verdict is set.
type Score struct {
	Verdict ScoreVerdict
	// Benchmark and Metric are the source of the score.
	Benchmark Key
	Metric    result.Metric
	// Baseline is the target of the ratio.
	Baseline string
	Value    *stats.Summary
	// Comparison is the comparison with the baseline; nil without one.
	Comparison *stats.Comparison
	// Memory is the memory overhead, runtime − native (sateri 5.4), in bytes, and Share is its share of the machine's memory.
	// Memory is nil in other dimensions.
	Memory *stats.Difference
	Share  float64
	// Metrics is the number of metrics of the dimension with a value on the target.
	Metrics int
}

// ScorecardNote explains a scorecard.
const ScorecardNote = "A score compares a target with bare metal, with its 95 % interval. If a dimension has several metrics, the score is the one that " +
	"costs the target most. The goals are the ideal state of sateri, section 3.2. Met needs all intervals within the goal. Missed needs one interval beyond it and a shown difference."

// Unmeasured reports whether no target has a value.
func (r *ScoreRow) Unmeasured() bool {
	return !slices.ContainsFunc(r.Scores, func(s Score) bool { return s.Value != nil })
}

// Sources names the source of each score of a row, with its targets if they differ: "performance.cpu.time, TotalTime (oci/runc); …".
func (c *Scorecard) Sources(r *ScoreRow) string {
	type source struct {
		name    string
		targets []string
	}
	var all []source
	for i := range r.Scores {
		if name := r.Scores[i].Source(); name != "" {
			s := place(&all, func(s *source) bool { return s.name == name }, source{name: name})
			s.targets = append(s.targets, c.Targets[i])
		}
	}
	var parts []string
	for _, s := range all {
		if len(all) == 1 {
			return s.name
		}
		parts = append(parts, s.name+" ("+strings.Join(s.targets, ", ")+")")
	}
	return strings.Join(parts, "; ")
}

// Text spells the score: a factor for a goal of speed, else the value with its factor.
func (s *Score) Text() string {
	switch {
	case s.Value == nil:
		return string(s.Verdict)
	case s.Memory != nil:
		return fmt.Sprintf("%s (%s)", Quantity(s.Memory.Median, result.Bytes), Percent(s.Share))
	case goalOf(s.Metric.Dimension) == SpeedGoal && s.Comparison != nil:
		return Factor(s.Comparison.Ratio, s.Metric)
	case s.Comparison != nil && finite(s.Comparison.Ratio):
		factor := Factor(s.Comparison.Ratio, s.Metric)
		if !Shown(s.Comparison) {
			factor += ", " + VerdictWord(s.Comparison.Verdict, s.Metric)
		}
		return fmt.Sprintf("%s (%s)", Quantity(s.Value.Median, s.Metric.Unit), factor)
	}
	return Quantity(s.Value.Median, s.Metric.Unit)
}

// Interval spells the 95 % interval of the number that Text begins with, or None.
func (s *Score) Interval() string {
	switch {
	case s.Value == nil:
		return None
	case s.Memory != nil:
		return quantities(s.Memory.CI, result.Bytes)
	case goalOf(s.Metric.Dimension) == SpeedGoal && s.Comparison != nil:
		return FactorInterval(s.Comparison)
	}
	return quantities(s.Value.CI, s.Metric.Unit)
}

// Source names the benchmark and the metric of the score.
func (s *Score) Source() string {
	if s.Value == nil {
		return ""
	}
	return s.Benchmark.Title() + ", " + s.Metric.Name
}

// quantities spells an interval in the scale of its upper end.
func quantities(ci *stats.Interval, unit result.Unit) string {
	if ci == nil {
		return None
	}
	scale := ScaleFor(ci.Hi, unit)
	return scale.Number(ci.Lo) + " to " + scale.with(scale.Number(ci.Hi))
}

// leastDimensions is the smallest number of dimensions in a scorecard. The table of a single benchmark says more than one row.
const leastDimensions = 2

// scorecard makes the scorecard of a run. It is empty if the run measured fewer than leastDimensions.
func (r *Report) scorecard(run int) Scorecard {
	var card Scorecard
	of := &r.Runs[run]
	scores := r.scores(run)
	for _, t := range of.Targets {
		if t.Kind != result.KindNative && slices.ContainsFunc(scores, func(s scored) bool { return s.target == t.Name }) {
			card.Targets = append(card.Targets, t.Name)
		}
	}
	measured := map[result.Dimension]bool{}
	for _, s := range scores {
		measured[s.Metric.Dimension] = true
	}
	if card.Targets == nil || len(measured) < leastDimensions {
		return Scorecard{}
	}
	for _, d := range result.Dimensions() {
		row := ScoreRow{Dimension: d, Goal: goalOf(d)}
		for _, target := range card.Targets {
			row.Scores = append(row.Scores, combine(where(scores, func(s scored) bool { return s.target == target && s.Metric.Dimension == d })))
		}
		card.Rows = append(card.Rows, row)
	}
	return card
}

// scored is the score of one metric on one target.
type scored struct {
	Score
	target string
	cost   float64 // larger is worse, for metrics with the same goal
	points []Point // of the target, and of bare metal
	native []Point
}

// scores lists the scores of all metrics with a dimension.
func (r *Report) scores(run int) []scored {
	of := &r.Runs[run]
	native := ""
	for _, t := range of.Targets {
		if t.Kind == result.KindNative {
			native = t.Name
		}
	}
	var all []scored
	for _, b := range r.Benchmarks() {
		section := b.Sections[run]
		if section == nil {
			continue
		}
		for i := range b.Metrics {
			m := &b.Metrics[i]
			if m.Dimension == "" {
				continue
			}
			var bare []Point
			for _, row := range m.Rows {
				if row.Target == native {
					bare = row.Cells[run].Points
				}
			}
			for _, row := range m.Rows {
				c := &row.Cells[run]
				if c.Summary == nil || row.Target == native {
					continue
				}
				s := scored{target: row.Target, points: c.Points, native: bare, Score: Score{
					Benchmark: b.Key, Metric: m.Metric, Baseline: section.Baseline, Value: c.Summary, Comparison: c.Comparison, Metrics: 1,
				}}
				s.judge(section.Baseline == native && native != "", float64(of.Host.Memory), of.Seed)
				all = append(all, s)
			}
		}
	}
	return all
}

// judge sets the verdict on one metric. against reports whether the comparison is with bare metal.
func (s *scored) judge(against bool, memory float64, seed uint64) {
	switch goalOf(s.Metric.Dimension) {
	case NoGoal:
		s.Verdict = NoVerdict
	case SpeedGoal:
		s.judgeSpeed(against)
	case MemoryGoal:
		s.judgeMemory(memory, seed)
	}
}

func (s *scored) judgeSpeed(against bool) {
	s.Verdict = NotShown
	c := s.Comparison
	if c == nil || !against || !finite(c.Ratio) {
		return
	}
	slowdown := func(ratio float64) float64 {
		if s.Metric.Better == result.Higher {
			return 1 / ratio
		}
		return ratio
	}
	s.cost = slowdown(c.Ratio)
	if c.CI == nil {
		return
	}
	lo, hi := slowdown(c.CI.Lo), slowdown(c.CI.Hi)
	lo, hi = min(lo, hi), max(lo, hi)
	switch {
	case hi <= 1/idealSpeed:
		s.Verdict = Met
	case lo > 1/idealSpeed && c.Verdict == stats.Slower:
		s.Verdict = Missed
	}
}

func (s *scored) judgeMemory(memory float64, seed uint64) {
	s.Verdict = NotShown
	var less [][]stats.Sample
	if s.native != nil {
		less = append(less, samplesOf(s.native))
	}
	d := stats.Subtract(samplesOf(s.points), less, seed)
	if !finite(d.Median) || memory <= 0 {
		return
	}
	s.Memory, s.Share, s.cost = &d, d.Median/memory, d.Median
	if d.CI == nil {
		return
	}
	switch {
	case d.CI.Hi <= idealMemory*memory:
		s.Verdict = Met
	case d.CI.Lo > idealMemory*memory:
		s.Verdict = Missed
	}
}

func samplesOf(points []Point) []stats.Sample {
	var all []stats.Sample
	for _, p := range points {
		all = append(all, stats.Sample{Block: p.Block, Value: p.Value})
	}
	return all
}

// combine makes the score of a dimension from the scores of its metrics.
func combine(all []scored) Score {
	if len(all) == 0 {
		return Score{Verdict: NotMeasured}
	}
	// A missed goal decides, then a goal that is not shown. Within a verdict the largest cost decides, and the first
	// metric in dimensions without a goal.
	rank := []ScoreVerdict{Missed, NotShown, Met, NoVerdict}
	worst := slices.MinFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.Verdict), slices.Index(rank, b.Verdict)), cmp.Compare(b.cost, a.cost))
	})
	worst.Metrics = len(all)
	return worst.Score
}

// summary states the scorecard in sentences: the target that costs least, the cost of each target with more isolation, and
// the scores that are not shown.
func (r *Report) summary(run int) []string {
	card := &r.Runs[run].Scorecard
	if card.Targets == nil {
		return nil
	}
	var all []string
	ranking := r.ranking(run)
	if s := ranking.sentence(); s != "" {
		all = append(all, s)
	}
	all = append(all, r.safer(run, ranking)...)
	return append(all, card.untold()...)
}

// ranking orders targets by the speed of programs, over all metrics that all of them have.
type ranking struct {
	targets    []ranked // the fastest first
	dimensions []result.Dimension
}

// ranked is a target of a ranking.
type ranked struct {
	name  string
	speed float64 // share of native speed: the geometric mean over dimensions
	cost  []stats.Sample
	equal bool // no difference from the first target is shown
}

// ranking computes a target's cost in each block: the geometric mean over dimensions of the geometric means of the slowdowns
// within the block, as SPEC combines its programs (P. J. Fleming, J. J. Wallace, "How Not to Lie with Statistics", CACM 29
// (1986) 218–221).
func (r *Report) ranking(run int) ranking {
	scores := where(r.scores(run), func(s scored) bool { return s.cost > 0 && goalOf(s.Metric.Dimension) == SpeedGoal })
	targets := r.Runs[run].Scorecard.Targets
	type source struct {
		Key
		metric string
	}
	of := func(s scored) source { return source{s.Benchmark, s.Metric.Name} }
	shared := map[source]int{}
	for _, s := range scores {
		shared[of(s)]++
	}
	var out ranking
	for _, d := range result.Dimensions() {
		if slices.ContainsFunc(scores, func(s scored) bool { return s.Metric.Dimension == d && shared[of(s)] == len(targets) }) {
			out.dimensions = append(out.dimensions, d)
		}
	}
	if len(out.dimensions) == 0 {
		return out
	}
	for _, target := range targets {
		mine := where(scores, func(s scored) bool { return s.target == target && shared[of(s)] == len(targets) })
		cost := blockCosts(mine, out.dimensions)
		if len(cost) == 0 {
			return ranking{} // no block has all metrics
		}
		var values []float64
		for _, c := range cost {
			values = append(values, c.Value)
		}
		out.targets = append(out.targets, ranked{name: target, speed: 1 / stats.Median(values), cost: cost})
	}
	slices.SortStableFunc(out.targets, func(a, b ranked) int { return cmp.Compare(b.speed, a.speed) })
	var family []stats.Comparison
	for _, t := range out.targets[1:] {
		family = append(family, stats.Compare(out.targets[0].cost, t.cost, stats.Lower, r.Runs[run].Seed))
	}
	out.targets[0].equal = true
	for i, c := range stats.Judge(family, stats.Alpha) {
		out.targets[i+1].equal = c.Verdict != stats.Slower
	}
	return out
}

// blockCosts gives the cost of a target in each block with all metrics.
func blockCosts(scores []scored, dimensions []result.Dimension) []stats.Sample {
	costs := map[int]float64{} // logarithm by block
	metrics := map[int]int{}
	for _, d := range dimensions {
		in := where(scores, func(s scored) bool { return s.Metric.Dimension == d })
		for _, s := range in {
			bare := map[int]float64{}
			for _, p := range s.native {
				bare[p.Block] = p.Value
			}
			for _, p := range s.points {
				slowdown := p.Value / bare[p.Block]
				if s.Metric.Better == result.Higher {
					slowdown = 1 / slowdown
				}
				if log := math.Log(slowdown); finite(log) {
					costs[p.Block] += log / float64(len(in)*len(dimensions))
					metrics[p.Block]++
				}
			}
		}
	}
	var all []stats.Sample
	for block, log := range costs {
		if metrics[block] == len(scores) {
			all = append(all, stats.Sample{Block: block, Value: math.Exp(log)})
		}
	}
	slices.SortFunc(all, func(a, b stats.Sample) int { return cmp.Compare(a.Block, b.Block) })
	return all
}

// sentence names the targets that cost least.
func (k ranking) sentence() string {
	if len(k.targets) == 0 {
		return ""
	}
	best := where(k.targets, func(t ranked) bool { return t.equal })
	var names, dimensions []string
	for _, t := range best {
		names = append(names, t.name)
	}
	for _, d := range k.dimensions {
		dimensions = append(dimensions, string(d))
	}
	over := "in " + listed(dimensions)
	if len(dimensions) > 1 {
		over = "over " + listed(dimensions) + " (geometric mean)"
	}
	speed := Percent(best[0].speed) + " of native speed " + over
	switch {
	case len(k.targets) == 1:
		return fmt.Sprintf("%s: programs have %s.", names[0], speed)
	case len(best) == 1:
		return fmt.Sprintf("%s costs least: programs have %s.", names[0], speed)
	default:
		return fmt.Sprintf("%s cost least, and no difference between them is shown: programs have %s.", listed(names), speed)
	}
}

// Limits of the sentences about safer targets.
const (
	mostSafer = 2
	mostCosts = 3
)

// safer states the cost of the targets with a sandbox, the fastest first.
func (r *Report) safer(run int, k ranking) []string {
	of := &r.Runs[run]
	place := func(name string) int {
		return slices.IndexFunc(k.targets, func(t ranked) bool { return t.name == name })
	}
	targets := where(of.Targets, func(t Target) bool { return t.Sandboxed() && slices.Contains(of.Scorecard.Targets, t.Name) })
	slices.SortStableFunc(targets, func(a, b Target) int { return cmp.Compare(place(a.Name), place(b.Name)) })
	var all []string
	for _, t := range targets[:min(len(targets), mostSafer)] {
		if text := of.Scorecard.price(slices.Index(of.Scorecard.Targets, t.Name)); text != "" {
			all = append(all, fmt.Sprintf("%s isolates containers by a %s. %s", t.Name, t.Isolation, text))
		}
	}
	return all
}

// price spells where a target misses the ideal state, and where it meets it.
func (c *Scorecard) price(target int) string {
	type cost struct {
		text string
		size float64
	}
	var missed []cost
	var met []string
	for _, row := range c.Rows {
		s := &row.Scores[target]
		switch s.Verdict {
		case Missed:
			size := math.Inf(1)
			if s.Memory == nil {
				size = math.Abs(math.Log(s.Comparison.Ratio))
			}
			missed = append(missed, cost{fmt.Sprintf("%s (%s)", row.Dimension, s.Text()), size})
		case Met:
			met = append(met, string(row.Dimension))
		case NotShown, NotMeasured, NoVerdict:
		}
	}
	slices.SortStableFunc(missed, func(a, b cost) int { return cmp.Compare(b.size, a.size) })
	var texts []string
	for _, m := range missed[:min(len(missed), mostCosts)] {
		texts = append(texts, m.text)
	}
	if more := len(missed) - mostCosts; more > 0 {
		texts = append(texts, counted(more, "more dimension"))
	}
	var parts []string
	if texts != nil {
		parts = append(parts, "The price is in "+listed(texts)+".")
	}
	if met != nil {
		parts = append(parts, "It meets the ideal state in "+listed(met)+".")
	}
	return strings.Join(parts, " ")
}

// untold states which goals are not shown, and which dimensions have no value.
func (c *Scorecard) untold() []string {
	var open, missing []string
	for _, row := range c.Rows {
		var targets []string
		measured := false
		for i, s := range row.Scores {
			measured = measured || s.Verdict != NotMeasured
			if s.Verdict == NotShown {
				targets = append(targets, c.Targets[i])
			}
		}
		switch {
		case !measured:
			missing = append(missing, string(row.Dimension))
		case len(targets) == len(c.Targets) && len(targets) > 1:
			open = append(open, string(row.Dimension)+" on all targets")
		case targets != nil:
			open = append(open, string(row.Dimension)+" on "+listed(targets))
		}
	}
	var all []string
	if open != nil {
		all = append(all, "Neither met nor missed is shown for "+strings.Join(open, "; ")+". More blocks may show it.")
	}
	if missing != nil {
		all = append(all, "This run did not measure "+listed(missing)+".")
	}
	return all
}

// listed joins words as a sentence does: "a, b and c".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
