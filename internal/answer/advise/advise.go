// Package advise makes the document of an advice: the ranking with its evidence, the gaps with the commands that fill them, and a runtime class.
package advise

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/advice"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Document is the document of an advice.
func Document(a *advice.Advice) *document.Document {
	d := &document.Document{
		Kind: "advice", Title: "Advice for " + a.Profile.Title(), Answer: answer(a),
		Data: func() any { return newData(a) }, Records: func() document.Records { return records(a) }, Whole: "touchstone advise " + a.Profile.Arguments() + " -o json",
	}
	if len(a.Ranked) > 0 {
		d.Blocks = append(d.Blocks, document.Section{ID: "ranking", Title: "Ranking", Blocks: append(ranking(a).Explained(quantity.None, noInterval), document.Text{Text: rankingNote, Tone: document.Faint})})
	}
	if len(a.Ranked) > 1 {
		d.Blocks = append(d.Blocks, document.Section{ID: "orders", Title: "Orders", Blocks: []document.Block{document.List{Items: orders(a)}}})
	}
	if len(a.Unranked) > 0 {
		d.Blocks = append(d.Blocks, document.Section{ID: "unranked", Title: "Without a place", Blocks: []document.Block{document.List{Items: withoutPlace(a)}}})
	}
	if len(a.Missing) > 0 {
		d.Blocks = append(d.Blocks, missing(a))
	}
	if len(a.Ranked) > 0 {
		d.Blocks = append(d.Blocks, document.Section{ID: "basis", Title: "Basis", Blocks: []document.Block{basis(a)}})
	}
	if a.Class != nil {
		d.Blocks = append(d.Blocks, kubernetes(a))
	}
	return d
}

const rankingNote = "A cost is the weighted geometric mean over the dimensions, with its 95 % interval. “First” is the share of resamples without a cheaper target. " +
	"Targets share a place unless the data shows that one of them costs more."

// answer is the answer in a sentence or two.
func answer(a *advice.Advice) []document.Text {
	text := func(format string, args ...any) []document.Text {
		return []document.Text{{Text: fmt.Sprintf(format, args...), Tone: document.Strong}}
	}
	best := a.Best()
	switch {
	case a.Reason != "":
		return text("No recommendation: %s.", a.Reason)
	case len(a.Ranked) == 1:
		return text("No recommendation: only %s can be ranked, so nothing is compared.", a.Ranked[0].Name)
	case a.Decided():
		return text("Recommended for %s: %s. It costs less than every other ranked target.", a.Profile.Title(), a.Ranked[0].Name)
	case len(best) == 1:
		return text("No single recommendation for %s: no target is shown to cost less than %s, and not every other target is shown to cost more.", a.Profile.Title(), best[0])
	}
	return text("No single recommendation for %s: no difference is shown between %s, and no target is shown to cost less.", a.Profile.Title(), wording.Listed(best))
}

const noInterval = "the reference has no interval, and neither has a target with too few blocks."

// ranking is the table of the targets.
func ranking(a *advice.Advice) document.Table {
	head := document.Cells("Target", "Place", "Cost, "+a.Reference+" = 1", "95 % interval", "First")
	for _, c := range a.Counted {
		head = append(head, document.Cell{{Text: string(c.Dimension)}})
	}
	t := document.Table{Rows: [][]document.Cell{head}, Turns: true}
	for _, r := range a.Ranked {
		row := document.Cells(r.Name, fmt.Sprint(r.Place), quantity.FactorNumber(r.Cost), interval(r.CI), quantity.Percent(r.First))
		for _, cost := range r.Costs {
			row = append(row, document.Cell{{Text: quantity.FactorNumber(cost)}})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func interval(ci *stats.Interval) string {
	if ci == nil {
		return quantity.None
	}
	return quantity.FactorNumber(ci.Lo) + " to " + quantity.FactorNumber(ci.Hi)
}

// orders describes the adjacent pairs of the ranking.
func orders(a *advice.Advice) []document.Item {
	var items []document.Item
	for i := range a.Ranked[1:] {
		o := a.Order(a.Ranked[i].Name, a.Ranked[i+1].Name)
		item := document.Item{Span: document.Span{Text: sentence(o, a.Unit()), Tone: document.Faint}}
		if o.Shown {
			item.Tone = document.Plain
		}
		items = append(items, item)
	}
	return items
}

// sentence states an order, or that it is not shown.
func sentence(o *advice.Order, unit string) string {
	evidence := fmt.Sprintf("factor %s (%s), in %s of the resamples, p = %s over all pairs", quantity.FactorNumber(o.Ratio), interval(o.CI), quantity.Percent(o.Share), quantity.PValue(o.P))
	evidence = strings.Replace(evidence, "= <", "<", 1)
	switch {
	case o.Shown:
		return fmt.Sprintf("%s costs less than %s: %s", o.Better, o.Worse, evidence)
	case o.Dependent:
		evidence += "; the difference of a block depends on the blocks before, so more blocks of this run do not help"
	case o.More > 0:
		evidence += fmt.Sprintf("; about %s may show it", wording.Counted(o.More, "more "+unit))
	}
	return fmt.Sprintf("no difference is shown between %s and %s: %s", o.Better, o.Worse, evidence)
}

// withoutPlace lists the targets without a place, those with the same reason together.
func withoutPlace(a *advice.Advice) []document.Item {
	var reasons []string
	targets := map[string][]string{}
	for _, u := range a.Unranked {
		if targets[u.Reason] == nil {
			reasons = append(reasons, u.Reason)
		}
		targets[u.Reason] = append(targets[u.Reason], u.Target)
	}
	var items []document.Item
	for _, reason := range reasons {
		items = append(items, document.Item{Span: document.Span{Text: wording.Listed(targets[reason]) + ": " + quantity.OneLine(reason)}})
	}
	return items
}

// missing lists the gaps with the commands that fill them.
func missing(a *advice.Advice) document.Section {
	var items []document.Item
	for _, m := range a.Missing {
		text := string(m.Dimension)
		switch {
		case m.Counted:
			text += " of some targets"
		case !m.Required:
			text += " (not required)"
		}
		items = append(items, document.Item{Span: document.Span{Text: text + ": " + quantity.OneLine(m.Reason)}})
	}
	blocks := []document.Block{document.List{Items: items}}
	if len(a.Commands) > 0 {
		blocks = append(blocks, document.Text{Text: "These commands measure it and ask again:"}, document.Verbatim{Text: strings.Join(a.Commands, "\n")})
	}
	return document.Section{ID: "missing", Title: "Missing data", Blocks: blocks}
}

// basis has the data behind the ranking.
func basis(a *advice.Advice) document.Facts {
	f := document.Facts{Items: []document.Fact{{Name: "Runs", Text: strings.Join(a.Runs, ", ")}}}
	for _, c := range a.Counted {
		var sources []string
		for _, s := range c.Sources {
			name := s.Title() + ", " + s.Metric.Name
			if len(a.Runs) > 1 {
				name += " (" + s.Run + ")"
			}
			sources = append(sources, name)
		}
		f.Items = append(f.Items, document.Fact{Name: string(c.Dimension), Text: quantity.Percent(c.Share) + " of the weight: " + strings.Join(sources, "; ")})
	}
	var blocks []string
	for _, n := range a.Blocks {
		blocks = append(blocks, fmt.Sprint(n))
	}
	f.Items = append(f.Items, document.Fact{Name: wording.Capital(a.Unit()) + "s", Text: strings.Join(blocks, ", ")},
		document.Fact{Name: "Resamples", Text: fmt.Sprintf("%d of whole %ss, seed %d", advice.Resamples, a.Unit(), a.Seed)})
	return f
}

// kubernetes has the class and the settings of engines.
func kubernetes(a *advice.Advice) document.Section {
	c := a.Class
	s := document.Section{ID: "kubernetes", Title: "Kubernetes", Blocks: []document.Block{document.Text{Text: introduction(a)}}}
	if c.Command != "" {
		s.Blocks = append(s.Blocks, document.Verbatim{Text: c.Command}, document.Text{Text: "The class without it:"})
	}
	s.Blocks = append(s.Blocks, document.Verbatim{Text: class(c)})
	for _, set := range settings(c) {
		if set.Text == "" {
			s.Blocks = append(s.Blocks, document.Text{Text: set.Title})
			continue
		}
		s.Blocks = append(s.Blocks, document.Text{Text: set.Title + ":"}, document.Verbatim{Text: set.Text})
	}
	return s
}

func introduction(a *advice.Advice) string {
	c := a.Class
	text := "The runtime class of " + c.Target.Name
	if !a.Decided() {
		text += ", which has the lowest estimate and is no recommendation"
	}
	text += ". "
	if c.Nodes > 0 && c.Memory > 0 {
		return text + fmt.Sprintf("overhead.podFixed is the upper end of the interval for the memory of a pod on one more node, from %s; kubectl patch runtimeclass %s --patch-file FILE sets it.",
			wording.Counted(c.Nodes, "node"), c.Handler)
	}
	if c.Memory == 0 {
		return text + "It has no overhead: " + quantity.OneLine(c.Reason) + ". This command measures it:"
	}
	return text + fmt.Sprintf("overhead.podFixed is an upper bound: %.0f %% of pods at this density (up to %d pods) need no more memory, with a confidence of 95 %%.", 100*advice.PodShare, c.Pods)
}

// records has a row for each target.
func records(a *advice.Advice) document.Records {
	out := document.Records{Columns: []string{"profile", "target", "place", "cost", "low", "high", "first_share", "reference", "reason"}}
	for _, r := range a.Ranked {
		low, high := document.Ends(r.CI)
		out.Rows = append(out.Rows, []any{a.Profile.Name, r.Name, r.Place, document.Number(r.Cost), low, high, r.First, a.Reference, nil})
	}
	for _, u := range a.Unranked {
		out.Rows = append(out.Rows, []any{a.Profile.Name, u.Target, nil, nil, nil, nil, nil, nil, u.Reason})
	}
	return out
}

// memoryText spells an amount of memory.
func memoryText(bytes float64) string { return quantity.Text(bytes, result.Bytes) }
