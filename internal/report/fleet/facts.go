package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// compareFacts are the facts that all nodes share, and those that differ.
func compareFacts(parts []part) (shared, differing []fact.Row) {
	runs := lists.Convert(parts, func(p *part) result.Run { return p.run })
	for _, row := range slices.Concat(fact.Hosts(runs), fact.Versions(runs)) {
		switch {
		case row.Kind == fact.Node || row.Kind == fact.Hostname:
		case row.Differs:
			differing = append(differing, row)
		case len(row.Groups()) == 1:
			shared = append(shared, row)
		}
	}
	return shared, differing
}

// separate finds the facts that separate slow nodes from fast ones, among all nodes and within each kind. The spread of the class must be shown, so a fleet without a spread has
// a separation with a probability of at most 5 % over all classes. The divisions of the nodes of one comparison share another 5 %.
func (r *Report) separate(c *Class) {
	if !(c.SpreadP < stats.Alpha) {
		return
	}
	scopes := []Kind{{Nodes: c.counting()}}
	if len(r.Kinds) > 1 {
		for _, k := range r.Kinds {
			scopes = append(scopes, Kind{Name: k.Name, Nodes: lists.Filter(k.Nodes, func(node int) bool { return c.Values[node].Counts })})
		}
	}
	var list []Separation
	divisions := 0
	for _, scope := range scopes {
		candidates := r.divisions(c.Target, scope.Nodes)
		divisions += len(candidates)
		values := lists.Convert(scope.Nodes, func(node *int) float64 { return c.Values[*node].effect.Log })
		for _, d := range candidates {
			separation, ok := stats.Separate(values, func(i int) bool { return slices.Contains(d.nodes, scope.Nodes[i]) })
			if !ok {
				continue
			}
			s := Separation{Kind: scope.Name, Facts: d.facts, Nodes: d.nodes, P: separation.P}
			s.Peers = lists.Filter(scope.Nodes, func(node int) bool { return !slices.Contains(d.nodes, node) })
			s.Quotient = medianRatio(c, s.Nodes) / medianRatio(c, s.Peers)
			list = append(list, s)
		}
	}
	for _, s := range list {
		// A fact that separates all nodes separates the nodes of a kind too.
		isPart := s.Kind != "" && slices.ContainsFunc(c.Separations, func(all Separation) bool { return all.Kind == "" && all.Facts[0].ID == s.Facts[0].ID })
		if s.P = min(1, s.P*float64(divisions)); s.P < stats.Alpha && !isPart {
			c.Separations = append(c.Separations, s)
		}
	}
	slices.SortStableFunc(c.Separations, func(a, b Separation) int { return cmp.Compare(a.P, b.P) })
}

func medianRatio(c *Class, nodes []int) float64 {
	return stats.Median(lists.Convert(nodes, func(node *int) float64 { return c.Values[*node].Ratio }))
}

// division is facts that exactly these nodes have.
type division struct {
	nodes []int
	facts []fact.Fact
}

// concerns reports whether a fact may explain values of a target. The version of another target does not.
func (r *Report) concerns(id fact.ID, target string) bool {
	return id.Kind != fact.Version || id.Subject == target || id.Subject == r.Baseline
}

// divisions are the divisions of some nodes that facts make for a target. A fact with two values divides the nodes once.
func (r *Report) divisions(target string, nodes []int) []division {
	var list []division
	index := map[string]int{}
	for _, row := range r.Different {
		if !r.concerns(row.ID, target) {
			continue
		}
		var values []string
		members := map[string][]int{}
		for _, node := range nodes {
			value := row.Values[node]
			if members[value] == nil {
				values = append(values, value)
			}
			members[value] = append(members[value], node)
		}
		if len(values) == 2 {
			// The smaller side names the division, because it is the exception.
			slices.SortStableFunc(values, func(a, b string) int { return len(members[a]) - len(members[b]) })
			values = values[:1]
		}
		for _, value := range values {
			if value == "" || len(members[value]) == len(nodes) {
				continue
			}
			key := fmt.Sprint(members[value])
			place, ok := index[key]
			if !ok {
				place = len(list)
				index[key] = place
				list = append(list, division{nodes: members[value]})
			}
			list[place].facts = append(list[place].facts, fact.Fact{ID: row.ID, Text: value})
		}
	}
	return list
}

// peculiar are the facts of a node that no other node of its kind has, and that may explain values of a target.
func (r *Report) peculiar(target string, node int) []fact.Fact {
	kind := r.Kinds[slices.IndexFunc(r.Kinds, func(k Kind) bool { return slices.Contains(k.Nodes, node) })]
	var list []fact.Fact
	for _, row := range r.Different {
		isSame := func(peer int) bool { return peer != node && row.Values[peer] == row.Values[node] }
		if row.Values[node] != "" && r.concerns(row.ID, target) && !slices.ContainsFunc(kind.Nodes, isSame) {
			list = append(list, fact.Fact{ID: row.ID, Text: row.Values[node]})
		}
	}
	return list
}
