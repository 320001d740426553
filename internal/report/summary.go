package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

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
	metrics    int // that all targets have
	// tooFew is set if the blocks are too few for a difference. apart is set if bare metal and some target have speeds, but no metric
	// and block is common to all targets.
	tooFew, apart bool
	// lost names the targets that lost so many trials that no verdict helps them.
	lost []string
	// emulated is set if the CPU is emulated, so that speeds are not compared.
	emulated bool
}

// ranked is a target of a ranking.
type ranked struct {
	name   string
	native stats.Comparison // of the cost with 1, the cost of bare metal
	cost   []stats.Sample   // the geometric mean over dimensions
	lost   float64          // the largest share of lost blocks of a benchmark
	equal  bool             // no difference from the first target is shown
}

// ranking computes a target's cost in each block: the geometric mean over dimensions of the geometric means of the slowdowns
// within the block, as SPEC combines its programs (P. J. Fleming, J. J. Wallace, "How Not to Lie with Statistics", CACM 29
// (1986) 218–221).
func (r *Report) ranking(run int) ranking {
	scores, _, _ := r.scores(run)
	scores = where(scores, func(s scored) bool { return s.Bare && s.isFactor() })
	if r.Runs[run].Unjudged {
		return ranking{emulated: len(scores) > 0}
	}
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
	out := ranking{}
	for _, d := range result.Dimensions() {
		if slices.ContainsFunc(scores, func(s scored) bool { return s.Metric.Dimension == d && shared[of(s)] == len(targets) }) {
			out.dimensions = append(out.dimensions, d)
		}
	}
	if len(out.dimensions) == 0 {
		return ranking{apart: len(scores) > 0}
	}
	for _, n := range shared {
		if n == len(targets) {
			out.metrics++
		}
	}
	for _, target := range targets {
		mine := where(scores, func(s scored) bool { return s.target == target && shared[of(s)] == len(targets) })
		cost := blockCosts(mine, out.dimensions)
		if len(cost) == 0 {
			return ranking{apart: true}
		}
		bare := make([]stats.Sample, len(cost))
		for i, c := range cost {
			bare[i] = stats.Sample{Block: c.Block, Value: 1}
		}
		compared := stats.Compare(bare, cost, stats.Lower, cellSeed(r.Runs[run].Seed, Key{}, target, ""))
		one := ranked{name: target, native: compared.AtLook(r.Runs[run].look(compared.N)), cost: cost}
		for _, s := range mine {
			one.lost = max(one.lost, s.lost.Other)
		}
		if one.lost > stats.MostLost {
			out.lost = append(out.lost, target)
		}
		out.targets = append(out.targets, one)
	}
	slices.SortStableFunc(out.targets, func(a, b ranked) int { return cmp.Compare(a.native.Ratio, b.native.Ratio) })
	var family []stats.Comparison
	for _, t := range out.targets[1:] {
		compared := stats.Compare(out.targets[0].cost, t.cost, stats.Lower, r.Runs[run].Seed)
		compared = compared.AtLook(r.Runs[run].look(compared.N))
		compared.Lost = stats.Losses{Baseline: out.targets[0].lost, Other: t.lost}
		family = append(family, compared)
	}
	out.targets[0].equal = true
	for i, c := range stats.Judge(family, stats.Alpha, 0) {
		out.targets[i+1].equal = c.Verdict != stats.Slower && c.Verdict != stats.Mixed
		out.tooFew = out.tooFew || !judged(c)
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
				if log := math.Log(slowdown(p.Value/bare[p.Block], s.Metric)); finite(log) {
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
	switch {
	case k.emulated:
		return "No target is said to cost least, because that is a verdict about speed: see the note on the emulated CPU at the top."
	case k.lost != nil:
		return "No target is said to cost least, because more than 5 % of the trials are lost on " + quantity.Listed(k.lost) + "."
	case k.apart:
		return "No target is said to cost least: no metric of speed has values on bare metal and on all targets in the same block."
	case len(k.targets) == 0:
		return ""
	}
	var dimensions []string
	for _, d := range k.dimensions {
		dimensions = append(dimensions, string(d))
	}
	over := "in " + quantity.Listed(dimensions)
	if k.metrics > 1 {
		over = fmt.Sprintf("over %s (geometric mean of %d metrics)", quantity.Listed(dimensions), k.metrics)
	}
	best := where(k.targets, func(t ranked) bool { return t.equal })
	switch {
	case best[0].native.CI == nil:
		return "Too few blocks to show a share of native speed " + over + "."
	case len(k.targets) == 1:
		return fmt.Sprintf("%s: programs have %s of native speed %s.", best[0].name, best[0].share(), over)
	case k.tooFew:
		return fmt.Sprintf("Too few blocks to show which target costs least %s.", over)
	case len(best) == 1:
		return fmt.Sprintf("%s costs least: programs have %s of native speed %s.", best[0].name, best[0].share(), over)
	default:
		return fmt.Sprintf("%s cost least by the share of native speed %s: no difference from %s is shown.", shares(best), over, best[0].name)
	}
}

// shares lists targets with their shares of native speed.
func shares(targets []ranked) string {
	var texts []string
	for _, t := range targets {
		texts = append(texts, t.name+" with "+t.share())
	}
	return quantity.Listed(texts)
}

// share spells the share of native speed and its interval.
func (t ranked) share() string {
	return fmt.Sprintf("%s (%s to %s)", quantity.Percent(1/t.native.Ratio), strings.TrimSuffix(quantity.Percent(1/t.native.CI.Hi), " %"), quantity.Percent(1/t.native.CI.Lo))
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
		case NotShown, NotMeasured, NoVerdict, EmulatedScore:
		}
	}
	slices.SortStableFunc(missed, func(a, b cost) int { return cmp.Compare(b.size, a.size) })
	var texts []string
	for _, m := range missed[:min(len(missed), mostCosts)] {
		texts = append(texts, m.text)
	}
	if more := len(missed) - mostCosts; more > 0 {
		texts = append(texts, quantity.Counted(more, "more dimension"))
	}
	var parts []string
	if texts != nil {
		parts = append(parts, "The price is in "+quantity.Listed(texts)+".")
	}
	if met != nil {
		parts = append(parts, "It meets the ideal state in "+quantity.Listed(met)+".")
	}
	return strings.Join(parts, " ")
}

// untold states which goals have no verdict, by reason, and which dimensions have no value.
func (c *Scorecard) untold() []string {
	var open, partial, unbased, lost, emulated, bare, missing []string
	for _, row := range c.Rows {
		if row.Unmeasured() && row.OnBareMetal {
			bare = append(bare, string(row.Dimension))
			continue
		}
		if row.Unmeasured() {
			missing = append(missing, string(row.Dimension))
			continue
		}
		add := func(list *[]string, match func(Score) bool) {
			if on := c.on(row, match); on != "" {
				*list = append(*list, string(row.Dimension)+" on "+on)
			}
		}
		add(&open, func(s Score) bool { return s.Verdict == NotShown && s.Bare && s.Lacking == 0 && !s.TrialsLost })
		add(&partial, func(s Score) bool { return s.Verdict == NotShown && s.Bare && s.Lacking > 0 && !s.TrialsLost })
		add(&lost, func(s Score) bool { return s.Verdict == NotShown && s.TrialsLost })
		add(&unbased, func(s Score) bool { return s.Verdict == NotShown && !s.Bare })
		add(&emulated, func(s Score) bool { return s.Verdict == EmulatedScore })
	}
	var all []string
	for _, part := range []struct {
		items         []string
		before, after string
	}{
		{open, "Neither met nor missed is shown for ", ". More blocks may show it."},
		{partial, "No verdict without a value of every metric: ", "."},
		{unbased, "No verdict without a value on bare metal: ", "."},
		{lost, "No verdict after the loss of more than 5 % of the trials: ", "."},
		{emulated, "No verdict on an emulated CPU: ", "."},
	} {
		if part.items != nil {
			all = append(all, part.before+strings.Join(part.items, "; ")+part.after)
		}
	}
	if bare != nil {
		all = append(all, "Only bare metal has values of "+quantity.Listed(bare)+".")
	}
	if missing != nil {
		all = append(all, "This run did not measure "+quantity.Listed(missing)+".")
	}
	return all
}

// on lists the targets whose scores match, empty without one.
func (c *Scorecard) on(row ScoreRow, match func(Score) bool) string {
	var targets []string
	for i, s := range row.Scores {
		if match(s) {
			targets = append(targets, c.Targets[i])
		}
	}
	if len(targets) == len(c.Targets) && len(targets) > 1 {
		return "all targets"
	}
	return quantity.Listed(targets)
}
