package finding

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

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
		texts = append(texts, "Only bare metal has values of "+wording.Listed(bare)+".")
	}
	if missing != nil {
		texts = append(texts, "This run did not measure "+wording.Listed(missing)+".")
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
	return wording.Listed(targets)
}
