// Package fleet makes the document of a fleet: the verdict over nodes, odd nodes, kinds, separating facts, and for pages a matrix of nodes and targets, a strip
// of nodes for each target, and the stages of each target.
package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// The text of a fleet fits on a screen of 40 lines. A page has everything.
const (
	// mostItems is the greatest number of items of a list on a terminal.
	mostItems = 2
	// mostShown is the greatest number of differences and gaps that a terminal shows. It counts the facts and the kinds if there are more.
	mostShown = 5
	// mostClauses is the greatest number of warnings at the beginning, unless one more is the last.
	mostClauses = 3
	// mostRows is the greatest number of rows of the table on a terminal, and rowsBeside the number beside more than mostShown differences.
	mostRows, rowsBeside = 20, 12
)

// Pages returns the address of the page of a node's run, or an empty address without a page.
type Pages func(run string) string

// NoPages is for a document alone.
func NoPages(string) string { return "" }

// Document is the document of a fleet.
func Document(r *fleet.Report, pages Pages) *document.Document {
	d := &document.Document{
		Kind: "fleet", Title: fmt.Sprintf("%s on %s", r.Plan, wording.Counted(len(r.Nodes), "node")), Notes: notes(r), Answer: answer(r), Checks: checks(r), Suite: "fleet " + r.ID,
		Records: func() document.Records { return records(r) }, Data: func() any { return newData(r) }, Whole: "touchstone report " + r.ID + " -o json",
	}
	d.Blocks = append(d.Blocks, overview(r))
	d.Blocks = append(d.Blocks, classes(r)...)
	d.Blocks = append(d.Blocks, differences(r)...)
	d.Blocks = append(d.Blocks, matrix(r, pages)...)
	d.Blocks = append(d.Blocks, strips(r)...)
	d.Blocks = append(d.Blocks, stages(r)...)
	d.Blocks = append(d.Blocks, nodes(r, pages), facts(r), method(r))
	return d
}

func notes(r *fleet.Report) []document.Text {
	var texts []document.Text
	for _, l := range r.LeftOut[:min(len(r.LeftOut), mostItems)] {
		texts = append(texts, document.Text{Text: fmt.Sprintf("Run %s %sis left out: %s.", l.Run, nodePrefix(l.Node), l.Reason), Tone: document.Alarm})
	}
	if rest := len(r.LeftOut) - len(texts); rest > 0 {
		texts = append(texts, document.Text{Text: fmt.Sprintf("%s left out for such reasons; JSON has them all.", wording.Counted(rest, "more run")), Tone: document.Alarm})
	}
	if r.Caveats != nil {
		clauses := lists.Convert(r.Caveats, func(caveat *string) string { return wording.Clause(*caveat) })
		if rest := len(clauses) - mostClauses; rest > 1 {
			clauses = append(clauses[:mostClauses], wording.Counted(rest, "more warning"))
		}
		texts = append(texts, document.Text{Text: wording.Capital(strings.Join(clauses, "; ")) + ".", Tone: document.Strong})
	}
	states := map[result.State][]int{}
	for i := range r.Nodes {
		states[r.Nodes[i].State] = append(states[r.Nodes[i].State], i)
	}
	for _, state := range []result.State{result.Running, result.Interrupted, result.Killed} {
		if list := states[state]; list != nil {
			texts = append(texts, document.Text{Text: fmt.Sprintf("The run is %s on %s.", state, r.Names(list)), Tone: document.Strong})
		}
	}
	return texts
}

func nodePrefix(name string) string {
	if name == "" {
		return ""
	}
	return "of " + name + " "
}

func answer(r *fleet.Report) []document.Text {
	var texts []document.Text
	add := func(text string, tone document.Tone) {
		texts = append(texts, document.Text{Text: text + ".", Tone: tone})
	}
	if reason := r.Withheld(); reason != "" {
		add(reason, document.Strong)
	}
	for _, m := range mainMetrics(r) {
		if text := r.Verdicts(m); text != "" {
			add(text, document.Plain)
		}
	}
	if odd := r.OddNodes(); odd != nil {
		places := lists.Convert(odd, func(n *fleet.OddNode) int { return n.Node })
		add(fmt.Sprintf("Unlike the other nodes of their kind: %s", r.Names(places)), document.Bad)
	}
	if facts, kinds := len(r.SeparationTexts()), len(r.KindTexts()); isLong(r) && facts+kinds > 0 {
		add(fmt.Sprintf("Also: %s of slow and fast nodes, %s between kinds of nodes; the pages show them", wording.Counted(facts, "fact"), wording.Counted(kinds, "difference")), document.Plain)
	}
	return texts
}

// isLong reports whether a screen has no room for all differences and gaps.
func isLong(r *fleet.Report) bool {
	return len(r.OddNodes())+len(r.SeparationTexts())+len(r.KindTexts())+len(r.Gaps()) > mostShown
}

// overview is the facts of the fleet.
func overview(r *fleet.Report) document.Facts {
	var kinds []string
	for _, k := range r.Kinds {
		kinds = append(kinds, fmt.Sprintf("%d of %s", len(k.Nodes), k.Name))
	}
	date := r.Started.UTC().Format("2 January 2006, 15:04 UTC")
	return document.Facts{Items: []document.Fact{
		{Name: "Fleet", Text: fmt.Sprintf("%s, %s, %s", r.ID, date, strings.TrimSpace(r.Tool.String()+" "+r.Tool.Commit))},
		{Name: "Nodes", Text: strings.Join(kinds, ", ")},
		{Name: "Baseline", Text: r.Baseline},
	}}
}

const costNote = "A cost is a ratio to the baseline on the same node, above 1 if the target is worse. Spread is the standard deviation between nodes. Next node is the interval for one more node."

// mainMetrics are the metrics that fit on a screen, at least one, in the order of the report: those with a column of the summary before the others, and
// each column once.
func mainMetrics(r *fleet.Report) []*fleet.Metric {
	headline := r.Headline()
	rank := func(m *fleet.Metric) int {
		first := slices.IndexFunc(headline, func(peer *fleet.Metric) bool { return peer.Column == m.Column })
		if m.Column != "" && headline[first] == m {
			return 0
		}
		return 1
	}
	selection := slices.Clone(headline)
	slices.SortStableFunc(selection, func(a, b *fleet.Metric) int { return rank(a) - rank(b) })
	rows := mostRows
	if isLong(r) {
		rows = rowsBeside
	}
	selection = selection[:min(len(selection), max(1, rows/(1+len(r.Targets))))]
	return lists.Filter(headline, func(m *fleet.Metric) bool { return slices.Contains(selection, m) })
}

// classes are a table of the first main metrics, and one of the other metrics.
func classes(r *fleet.Report) []document.Block {
	section := document.Section{ID: "fleet", Title: "Fleet", Frame: true}
	if len(r.Metrics) == 0 {
		section.Blocks = []document.Block{document.Text{Text: "No node has a value."}}
		return []document.Block{section}
	}
	headline := mainMetrics(r)
	var rest []*fleet.Metric
	for i := range r.Metrics {
		if m := &r.Metrics[i]; !slices.Contains(headline, m) {
			rest = append(rest, m)
		}
	}
	section.Blocks = []document.Block{classTable(headline), document.Text{Text: costNote, Tone: document.Faint}}
	if rest != nil {
		text := fmt.Sprintf("%d of %d metrics. touchstone report %s --site pages has the others.", len(headline), len(r.Metrics), r.ID)
		section.Blocks = append(section.Blocks, document.Text{Text: text, Tone: document.Faint})
	}
	blocks := []document.Block{section}
	if rest != nil {
		blocks = append(blocks, document.Section{ID: "metrics", Title: "Other metrics", Detail: true, Blocks: []document.Block{classTable(rest)}})
	}
	return blocks
}

func classTable(metrics []*fleet.Metric) document.Table {
	t := document.Table{Rows: [][]document.Cell{document.Cells("Target", "Typical", "Cost", "Interval", "Nodes", "Spread", "Next node")}}
	for _, m := range metrics {
		t.Rows = append(t.Rows, []document.Cell{{{Text: m.Metric.Name + " of " + m.Title()}, {Text: string(m.Better) + " is better", Tone: document.Faint}}})
		for i := range m.Classes {
			t.Rows = append(t.Rows, classRow(m, &m.Classes[i]))
		}
	}
	return t
}

func classRow(m *fleet.Metric, c *fleet.Class) []document.Cell {
	name, typical := c.Target, quantity.Text(c.Typical, m.Unit)
	if c.Comparison == nil {
		cost := "no ratio"
		switch {
		case !m.IsJudged():
			cost = "no verdict"
		case c.Baseline:
			cost = "baseline"
		}
		return document.Cells(name, typical, cost, quantity.None, fmt.Sprint(valued(c)), quantity.None, quantity.None)
	}
	spread, next := quantity.None, quantity.None
	if c.Fleet.N >= stats.MinNodes {
		spread = "± " + quantity.Percent(math.Expm1(c.Fleet.Spread()))
		next = quantity.CostInterval(ratios(c.Fleet.Prediction(1-stats.Level)), m.Metric)
	}
	cells := document.Cells(name, typical, "", quantity.CostInterval(c.Comparison.CI, m.Metric), fmt.Sprint(c.Fleet.N), spread, next)
	cells[2] = document.Cell{{Text: costText(m, c), Tone: tone(c.Comparison)}}
	if c.Rest.N > 0 {
		cells[2] = append(cells[2], document.Span{Text: "without odd nodes " + quantity.Cost(math.Exp(c.Rest.Log), m.Metric), Tone: document.Faint, Detail: true})
	}
	return cells
}

// costText is a cost with the word of its verdict. No difference and too few nodes have no word.
func costText(m *fleet.Metric, c *fleet.Class) string {
	text := quantity.Cost(c.Comparison.Ratio, m.Metric)
	switch c.Comparison.Verdict {
	case stats.Faster, stats.Slower:
		text += ", " + quantity.CostWord(c.Comparison.Verdict, m.Metric)
		if !c.Comparison.Everywhere {
			text += quantity.AloneMark
		}
	case stats.TooNoisy, stats.TrialsLost, stats.Withheld, stats.Negligible:
		text += ", " + quantity.CostWord(c.Comparison.Verdict, m.Metric)
	case stats.NoDifference, stats.TooFew, stats.NotComparable, stats.Mixed:
	}
	return text
}

func valued(c *fleet.Class) int {
	return len(lists.Filter(c.Values, func(v fleet.Value) bool { return !math.IsNaN(v.Median) }))
}

// ratios is an interval of logarithms as one of ratios.
func ratios(log stats.Interval) *stats.Interval {
	return &stats.Interval{Lo: math.Exp(log.Lo), Hi: math.Exp(log.Hi)}
}

// tone is the tone of a ratio with its verdict.
func tone(c *stats.Comparison) document.Tone {
	switch c.Verdict {
	case stats.Faster:
		return document.Good
	case stats.Slower:
		return document.Bad
	case stats.NoDifference, stats.TooNoisy, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Withheld, stats.Negligible, stats.Mixed:
	}
	return document.Faint
}

// differences are the caveats of all nodes, the nodes and the kinds that differ, the facts behind them, and the nodes without values.
func differences(r *fleet.Report) []document.Block {
	var blocks []document.Block
	add := func(id, title, rest, note string, isDetail bool, items []document.Item) {
		if items == nil {
			return
		}
		list := []document.Block{document.List{Items: items, Most: mostItems, More: rest}}
		if note != "" {
			list = append(list, document.Text{Text: note, Tone: document.Faint})
		}
		blocks = append(blocks, document.Section{ID: id, Title: title, Detail: isDetail, Blocks: list})
	}
	itemsOf := func(texts []string) (items []document.Item) {
		for _, text := range texts {
			items = append(items, document.Item{Span: document.Span{Text: text + "."}})
		}
		return items
	}
	add("warnings", "Warnings", "%d more warnings; JSON has them all.", "", true, itemsOf(lists.Convert(r.Caveats, func(caveat *string) string { return wording.Capital(*caveat) })))
	var odd []document.Item
	for _, n := range r.OddNodes() {
		item := document.Item{Span: document.Span{Text: r.OddText(&n) + ".", Tone: document.Bad}}
		odd = append(odd, item)
	}
	add("odd", "Odd nodes", "%d more odd nodes; JSON has them all.", "", false, odd)
	add("separation", "Facts of slow and fast nodes", "%d more; JSON has them all.", "A fact that comes with slow nodes need not be the cause. Change it on one node, and measure again.", isLong(r), itemsOf(r.SeparationTexts()))
	add("kinds", "Kinds of nodes", "%d more differences between kinds; JSON has them all.", "", isLong(r), itemsOf(r.KindTexts()))
	var gaps []document.Item
	for _, g := range r.Gaps() {
		text := fmt.Sprintf("%s: %s", r.Names(g.Nodes), g.Reason)
		if len(g.Targets) < len(r.Targets) {
			text = wording.Shortlist(g.Targets, "targets") + " on " + text
		}
		if len(g.Metrics) < len(r.Metrics) {
			text += " (" + wording.Shortlist(g.Metrics, "metrics") + ")"
		}
		gaps = append(gaps, document.Item{Span: document.Span{Text: text + "."}})
	}
	add("gaps", "Nodes that do not count", "%d more reasons; JSON has them all.", "", false, gaps)
	return blocks
}

// nodes is a table of the nodes with their runs.
func nodes(r *fleet.Report, pages Pages) document.Block {
	t := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Node", "Kind", "Run", "State", "Trials ok", "Lost", "Skipped", "Odd in")}}
	odd := map[int][]string{}
	for _, n := range r.OddNodes() {
		for _, item := range n.Items {
			odd[n.Node] = append(odd[n.Node], item.Text())
		}
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		t.Rows = append(t.Rows, []document.Cell{
			{{Text: n.Name, Link: pages(n.Run)}},
			{{Text: n.Kind}},
			{{Text: n.Run}},
			{{Text: string(n.State)}},
			{{Text: fmt.Sprint(n.OK)}},
			{{Text: fmt.Sprint(n.Lost)}},
			{{Text: fmt.Sprint(n.Skipped)}},
			{{Text: strings.Join(odd[i], ", ")}},
		})
	}
	return document.Section{ID: "nodes", Title: "Nodes", Detail: true, Folded: len(r.Nodes) > mostOpen, Blocks: []document.Block{t}}
}

// mostOpen is the largest table of nodes that a page shows unfolded.
const mostOpen = 50

// facts are the facts of the nodes, those that differ first.
func facts(r *fleet.Report) document.Block {
	var items []document.Fact
	for _, row := range r.Different {
		var values []string
		groups := row.Groups()
		for _, g := range groups[:min(len(groups), mostValues)] {
			values = append(values, fmt.Sprintf("%s on %s", orUnknown(g.Value), r.Names(g.Runs)))
		}
		if rest := len(groups) - len(values); rest > 0 {
			values = append(values, wording.Counted(rest, "more value"))
		}
		items = append(items, document.Fact{Name: row.Name(), Text: strings.Join(values, "; ")})
	}
	blocks := []document.Block{document.Text{Text: "Different on some nodes:"}, document.Facts{Items: items}}
	if items == nil {
		blocks = []document.Block{document.Text{Text: "No fact differs between the nodes."}}
	}
	equal := lists.Convert(r.Shared, func(row *fact.Row) document.Fact { return document.Fact{Name: row.Name(), Text: row.Values[0]} })
	if len(equal) > 0 {
		blocks = append(blocks, document.Text{Text: "The same on all nodes:"}, document.Facts{Items: equal})
	}
	return document.Section{ID: "facts", Title: "Facts of the nodes", Detail: true, Folded: true, Blocks: blocks}
}

// mostValues is the largest number of values of a fact.
const mostValues = 8

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func method(r *fleet.Report) document.Block {
	s := document.Section{ID: "method", Title: "Method", Detail: true}
	for _, note := range []string{
		"The node is the unit of observation. A node gives one ratio for each target and metric: the estimate of Hodges and Lehmann of its target / baseline within blocks.",
		fmt.Sprintf("The logarithm of the ratio over all nodes is a weighted mean in a model with random effects (Paule and Mandel, 1982). The interval is by Hartung and Knapp (2001), and at least as wide as "+
			"the noise within the nodes demands (Knapp and Hartung, 2003). Verdicts of one metric share an error of 5 %% (Holm), and need %d nodes.", stats.MinNodes),
		fmt.Sprintf("A node is odd if its studentised deleted residual within its kind is too large for the whole search: all odd nodes of this report share an error of 5 %%. A kind needs %d nodes for it. "+
			"On the baseline the values themselves are compared, because a sick machine slows all targets alike.", stats.MinNodes),
		"Facts separate nodes if all nodes that have them are slower, or faster, than all others, by a permutation test. It is made where a spread between nodes is shown.",
		"Definitions, simulations and limits: docs/statistics.md, section “A fleet”.",
	} {
		s.Blocks = append(s.Blocks, document.Text{Text: note})
	}
	if r.MinEffect > 0 {
		s.Blocks = append(s.Blocks, document.Text{Text: fmt.Sprintf("Differences up to %s do not matter (--min-effect).", quantity.Percent(r.MinEffect))})
	}
	return s
}
