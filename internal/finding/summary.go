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
)

// summary states the scorecard in sentences: the target that costs least, the cost of each target with more isolation, and
// the scores that are not shown.
func summary(a *analysis.Analysis, run int) []string {
	card := &a.Runs[run].Scorecard
	if card.Targets == nil {
		return nil
	}
	var texts []string
	ranking := a.Ranking(run)
	if s := cheapest(ranking); s != "" {
		texts = append(texts, s)
	}
	texts = append(texts, safer(a, run, ranking)...)
	return append(texts, untold(card)...)
}

// cheapest names the targets that cost least.
func cheapest(k analysis.Ranking) string {
	switch {
	case k.Emulated:
		return "No target is said to cost least, because that is a verdict about speed: see the note on the emulated CPU at the top."
	case k.Lost != nil:
		return "No target is said to cost least, because more than 5 % of the trials are lost on " + quantity.Listed(k.Lost) + "."
	case k.Apart:
		return "No target is said to cost least: no metric of speed has values on bare metal and on all targets in the same block."
	case len(k.Targets) == 0:
		return ""
	}
	var dimensions []string
	for _, d := range k.Dimensions {
		dimensions = append(dimensions, string(d))
	}
	scope := "in " + quantity.Listed(dimensions)
	if k.Metrics > 1 {
		scope = fmt.Sprintf("over %s (geometric mean of %d metrics)", quantity.Listed(dimensions), k.Metrics)
	}
	best := lists.Filter(k.Targets, func(t analysis.Ranked) bool { return t.Equal })
	switch {
	case best[0].Native.CI == nil:
		return "Too few blocks to show a share of native speed " + scope + "."
	case len(k.Targets) == 1:
		return fmt.Sprintf("%s: programs have %s of native speed %s.", best[0].Name, share(best[0]), scope)
	case k.TooFew:
		return fmt.Sprintf("Too few blocks to show which target costs least %s.", scope)
	case len(best) == 1:
		return fmt.Sprintf("%s costs least: programs have %s of native speed %s.", best[0].Name, share(best[0]), scope)
	default:
		return fmt.Sprintf("%s cost least by the share of native speed %s: no difference from %s is shown.", shares(best), scope, best[0].Name)
	}
}

// shares lists targets with their shares of native speed.
func shares(targets []analysis.Ranked) string {
	var texts []string
	for _, t := range targets {
		texts = append(texts, t.Name+" with "+share(t))
	}
	return quantity.Listed(texts)
}

// share spells the share of native speed and its interval.
func share(t analysis.Ranked) string {
	return fmt.Sprintf("%s (%s to %s)", quantity.Percent(1/t.Native.Ratio), strings.TrimSuffix(quantity.Percent(1/t.Native.CI.Hi), " %"), quantity.Percent(1/t.Native.CI.Lo))
}

// Limits of the sentences about safer targets.
const (
	mostSafer = 2
	mostCosts = 3
)

// safer states the cost of the targets with a sandbox, the fastest first.
func safer(a *analysis.Analysis, run int, k analysis.Ranking) []string {
	r := &a.Runs[run]
	place := func(name string) int {
		return slices.IndexFunc(k.Targets, func(t analysis.Ranked) bool { return t.Name == name })
	}
	targets := lists.Filter(r.Targets, func(t analysis.Target) bool { return t.Sandboxed() && slices.Contains(r.Scorecard.Targets, t.Name) })
	slices.SortStableFunc(targets, func(a, b analysis.Target) int { return cmp.Compare(place(a.Name), place(b.Name)) })
	var texts []string
	for _, t := range targets[:min(len(targets), mostSafer)] {
		if text := price(&r.Scorecard, slices.Index(r.Scorecard.Targets, t.Name)); text != "" {
			texts = append(texts, fmt.Sprintf("%s isolates containers by a %s. %s", t.Name, t.Isolation, text))
		}
	}
	return texts
}

// price spells where a target misses the ideal state, and where it meets it.
func price(c *analysis.Scorecard, target int) string {
	type cost struct {
		text string
		size float64
	}
	var costs []cost
	var dimensions []string
	for _, row := range c.Rows {
		s := &row.Scores[target]
		switch s.Verdict {
		case analysis.Missed:
			size := math.Inf(1)
			if s.Memory == nil {
				size = math.Abs(math.Log(s.Comparison.Ratio))
			}
			costs = append(costs, cost{fmt.Sprintf("%s (%s)", row.Dimension, Score(s)), size})
		case analysis.Met:
			dimensions = append(dimensions, string(row.Dimension))
		case analysis.NotShown, analysis.NotMeasured, analysis.NoVerdict, analysis.EmulatedScore:
		}
	}
	slices.SortStableFunc(costs, func(a, b cost) int { return cmp.Compare(b.size, a.size) })
	var texts []string
	for _, m := range costs[:min(len(costs), mostCosts)] {
		texts = append(texts, m.text)
	}
	if rest := len(costs) - mostCosts; rest > 0 {
		texts = append(texts, quantity.Counted(rest, "more dimension"))
	}
	var parts []string
	if texts != nil {
		parts = append(parts, "The price is in "+quantity.Listed(texts)+".")
	}
	if dimensions != nil {
		parts = append(parts, "It meets the ideal state in "+quantity.Listed(dimensions)+".")
	}
	return strings.Join(parts, " ")
}

// untold states which goals have no verdict, by reason, and which dimensions have no value.
func untold(c *analysis.Scorecard) []string {
	var open, partial, unbased, losing, emulated, bare, missing []string
	for _, row := range c.Rows {
		if row.Unmeasured() && row.OnBareMetal {
			bare = append(bare, string(row.Dimension))
			continue
		}
		if row.Unmeasured() {
			missing = append(missing, string(row.Dimension))
			continue
		}
		add := func(list *[]string, match func(analysis.Score) bool) {
			if targets := targetsWith(c, row, match); targets != "" {
				*list = append(*list, string(row.Dimension)+" on "+targets)
			}
		}
		add(&open, func(s analysis.Score) bool {
			return s.Verdict == analysis.NotShown && s.Bare && s.Lacking == 0 && !s.TrialsLost
		})
		add(&partial, func(s analysis.Score) bool {
			return s.Verdict == analysis.NotShown && s.Bare && s.Lacking > 0 && !s.TrialsLost
		})
		add(&losing, func(s analysis.Score) bool { return s.Verdict == analysis.NotShown && s.TrialsLost })
		add(&unbased, func(s analysis.Score) bool { return s.Verdict == analysis.NotShown && !s.Bare })
		add(&emulated, func(s analysis.Score) bool { return s.Verdict == analysis.EmulatedScore })
	}
	var texts []string
	for _, part := range []struct {
		items         []string
		before, after string
	}{
		{open, "Neither met nor missed is shown for ", ". More blocks may show it."},
		{partial, "No verdict without a value of every metric: ", "."},
		{unbased, "No verdict without a value on bare metal: ", "."},
		{losing, "No verdict after the loss of more than 5 % of the trials: ", "."},
		{emulated, "No verdict on an emulated CPU: ", "."},
	} {
		if part.items != nil {
			texts = append(texts, part.before+strings.Join(part.items, "; ")+part.after)
		}
	}
	if bare != nil {
		texts = append(texts, "Only bare metal has values of "+quantity.Listed(bare)+".")
	}
	if missing != nil {
		texts = append(texts, "This run did not measure "+quantity.Listed(missing)+".")
	}
	return texts
}

// targetsWith lists the targets whose scores match, empty without one.
func targetsWith(c *analysis.Scorecard, row analysis.ScoreRow, match func(analysis.Score) bool) string {
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
