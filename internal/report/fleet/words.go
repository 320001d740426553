package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Headline are the metrics that the benchmarks are about: those with a column of the summary or a phrase. Without one it is all metrics.
func (r *Report) Headline() []*Metric {
	var list []*Metric
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.Column != "" || m.Phrase != "" {
			list = append(list, m)
		}
	}
	if list == nil {
		for i := range r.Metrics {
			list = append(list, &r.Metrics[i])
		}
	}
	return list
}

// Withheld is the reason why no target has a verdict about the fleet, with the remedy. It is empty if some target has enough nodes.
func (r *Report) Withheld() string {
	greatest, isCompared := 0, false
	r.classes(func(_ *Metric, c *Class) { greatest, isCompared = max(greatest, c.Fleet.N), isCompared || !c.Baseline })
	switch {
	case greatest >= stats.MinNodes:
		return ""
	case !isCompared:
		return "No comparison is possible: no target beside the baseline has a value. Measure another class in the same run"
	}
	return fmt.Sprintf("No verdict about the fleet is possible: at most %s for a target, and the spread between fewer than %d is hardly known. "+
		"Measure more nodes; until then each node’s own report has verdicts about that node", counted(greatest, "counts", "count"), stats.MinNodes)
}

// counted is a number of nodes with its verb.
func counted(n int, singular, plural string) string {
	if n == 1 {
		return "1 node " + singular
	}
	return fmt.Sprintf("%d nodes %s", n, plural)
}

// Verdicts is the verdicts of a metric in one sentence, or empty without a verdict: "Start of pods.start, against k8s/runc: k8s/crun 1.05 × faster, no difference of k8s/x shown".
func (r *Report) Verdicts(m *Metric) string {
	var parts []string
	for i := range m.Classes {
		if text := m.Classes[i].verdict(m); text != "" {
			parts = append(parts, text)
		}
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s, against %s: %s", m.Metric.Name, m.Title(), r.Baseline, strings.Join(parts, ", "))
}

func (c *Class) verdict(m *Metric) string {
	switch {
	case c.Comparison == nil || c.Comparison.Verdict == stats.TooFew:
		return ""
	case c.Comparison.Differs() && !c.Comparison.Everywhere:
		return c.Target + " " + quantity.Factor(c.Comparison.Ratio, m.Metric) + " (in this metric alone)"
	case c.Comparison.Differs():
		return c.Target + " " + quantity.Factor(c.Comparison.Ratio, m.Metric)
	}
	return c.Target + " " + quantity.VerdictWord(c.Comparison.Verdict, m.Metric)
}

// OddNode is a node that is odd in some metric on some target.
type OddNode struct {
	Node  int
	Items []OddItem
}

// OddItem is a metric and a target.
type OddItem struct {
	Metric *Metric
	Class  *Class
	Odd    *Odd
}

// OddNodes are the odd nodes, those with the largest difference first.
func (r *Report) OddNodes() []OddNode {
	var list []OddNode
	r.classes(func(m *Metric, c *Class) {
		for i := range c.Odd {
			o := &c.Odd[i]
			entry := lists.Place(&list, func(n *OddNode) bool { return n.Node == o.Node }, OddNode{Node: o.Node})
			entry.Items = append(entry.Items, OddItem{m, c, o})
		}
	})
	for _, n := range list {
		slices.SortStableFunc(n.Items, func(a, b OddItem) int { return compareSize(a.Odd.Quotient, b.Odd.Quotient) })
	}
	slices.SortStableFunc(list, func(a, b OddNode) int { return compareSize(a.Items[0].Odd.Quotient, b.Items[0].Odd.Quotient) })
	return list
}

// compareSize puts the larger difference first.
func compareSize(a, b float64) int {
	x, y := math.Abs(math.Log(a)), math.Abs(math.Log(b))
	switch {
	case x > y:
		return -1
	case x < y:
		return 1
	}
	return 0
}

// mostOddItems is the number of items in the sentence of an odd node.
const mostOddItems = 3

// OddText says an odd node: "worker-6 (m5.large) differs from its kind: Start of k8s/runc +85.4 %, ratio of Start of k8s/x 1.59 ×".
func (r *Report) OddText(n *OddNode) string {
	var parts []string
	for _, item := range n.Items[:min(len(n.Items), mostOddItems)] {
		parts = append(parts, item.Text())
	}
	if rest := len(n.Items) - len(parts); rest > 0 {
		parts = append(parts, fmt.Sprintf("%d more", rest))
	}
	text := fmt.Sprintf("%s (%s) differs from the other nodes of its kind: %s", r.Nodes[n.Node].Name, r.Nodes[n.Node].Kind, strings.Join(parts, ", "))
	if facts := n.Items[0].Odd.Facts; len(facts) > 0 {
		text += "; it alone of its kind has " + factsText(facts)
	}
	return text
}

// Text says the difference: "Start of k8s/runc +85.4 %".
func (i OddItem) Text() string {
	text := fmt.Sprintf("%s of %s %s", i.Metric.Metric.Name, i.Class.Target, quantity.Change(i.Odd.Quotient))
	if i.Class.Baseline {
		return text
	}
	return "ratio of " + text
}

// factsText lists facts: "Kernel 5.15 and CPU x".
func factsText(facts []fact.Fact) string {
	return wording.Listed(lists.Convert(facts, func(f *fact.Fact) string { return f.Name() + " " + f.Text }))
}

// KindTexts are the shown differences between kinds in sentences.
func (r *Report) KindTexts() []string {
	var texts []string
	r.classes(func(m *Metric, c *Class) {
		for _, k := range c.Kinds {
			if k.Differs() {
				texts = append(texts, fmt.Sprintf("%s of %s: the cost is %s on the %s of %s, and %s times that on %s", m.Metric.Name, c.Target,
					quantity.Cost(k.Ratio, m.Metric), wording.Counted(k.Nodes, "node"), k.Kind, quantity.FactorNumber(m.Cost(k.Quotient)), k.Reference))
			}
		}
	})
	return texts
}

// SeparationTexts are the facts that separate slow nodes from fast ones, in sentences. Metrics with the same facts on a target share a sentence.
func (r *Report) SeparationTexts() []string {
	type item struct {
		text     string
		subjects []string
	}
	var items []item
	r.classes(func(m *Metric, c *Class) {
		for _, s := range c.Separations {
			word := "better"
			if m.Cost(s.Quotient) > 1 {
				word = "worse"
			}
			scope, facts := "", factsText(s.Facts)
			if s.Kind != "" {
				scope = " of " + s.Kind
			}
			if len(s.Facts) > 1 {
				facts += " (they come together, so these nodes cannot tell them apart)"
			}
			tier := ""
			if !s.Everywhere {
				tier = ", in this metric alone"
			}
			text := fmt.Sprintf("all %s%s with %s are %s than all %d without%s", wording.Counted(len(s.Nodes), "node"), scope, facts, word, len(s.Peers), tier)
			entry := lists.Place(&items, func(i *item) bool { return i.text == text }, item{text: text})
			entry.subjects = append(entry.subjects, fmt.Sprintf("%s of %s (%s)", m.Metric.Name, c.Target, quantity.Factor(s.Quotient, m.Metric)))
		}
	})
	return lists.Convert(items, func(i *item) string { return wording.Listed(i.subjects) + ": " + i.text })
}

// Gap is nodes without a counting value for the same reason.
type Gap struct {
	// Reason is the reason, and Nodes are the places of the nodes.
	Reason string
	Nodes  []int
	// Targets and Metrics are those without a value, in all or some of their combinations.
	Targets, Metrics []string
}

// Gaps are the nodes without a counting value, by reason. Targets without a value on the same nodes for the same reason are together.
func (r *Report) Gaps() []Gap {
	var gaps []Gap
	r.classes(func(m *Metric, c *Class) {
		for node := range c.Values {
			v := &c.Values[node]
			if v.Counts || v.Reason == "" {
				continue
			}
			g := lists.Place(&gaps, func(g *Gap) bool { return g.Targets[0] == c.Target && g.Reason == v.Reason }, Gap{Targets: []string{c.Target}, Reason: v.Reason})
			if !slices.Contains(g.Nodes, node) {
				g.Nodes = append(g.Nodes, node)
			}
			if name := m.Metric.Name; !slices.Contains(g.Metrics, name) {
				g.Metrics = append(g.Metrics, name)
			}
		}
	})
	var merged []Gap
	for _, g := range gaps {
		isTwin := func(m *Gap) bool {
			return m.Reason == g.Reason && slices.Equal(m.Nodes, g.Nodes) && slices.Equal(m.Metrics, g.Metrics)
		}
		if twin := lists.Place(&merged, isTwin, g); !slices.Contains(twin.Targets, g.Targets[0]) {
			twin.Targets = append(twin.Targets, g.Targets[0])
		}
	}
	return merged
}

// Names lists nodes: "a, b and 12 more nodes".
func (r *Report) Names(nodes []int) string {
	return wording.Shortlist(lists.Convert(nodes, func(node *int) string { return r.Nodes[*node].Name }), "nodes")
}
