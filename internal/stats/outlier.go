package stats

import (
	"math"
	"slices"
)

// OddNode is a node that differs from the other nodes of its group.
type OddNode struct {
	// Group and Node are places in the argument of [OddNodes].
	Group, Node int
	// Log is the difference of its log ratio from the mean of the other nodes, apart from other odd nodes. P is its p-value, corrected for the search.
	Log, P float64
}

// mostOdd is the largest share of odd nodes in a group, and mostOddNodes their largest number. A fifth of the nodes or more is a second kind of nodes, and no
// exception. Each odd node costs two fits, so the number bounds the time of a large fleet.
const (
	mostOdd      = 0.2
	mostOddNodes = 50
)

// OddNodes finds the nodes that differ from their group. A group is a kind of nodes in one comparison. All groups are one family: if all
// nodes of each group have normal effects, the chance of one odd node or more in all of them is at most about alpha. Groups below MinNodes have none.
//
// The statistic is the studentised deleted residual of a model with random effects: a node against the mean of the others, with the spread that the others have
// (W. Viechtbauer & M. W.-L. Cheung, Research Synthesis Methods 1 (2010) 112–125). Its variance is SE² + τ² + SE(mean)². SE is the node's own, because a noisy node
// is not a slow one. Viechtbauer and Cheung take the statistic as normal. Here it has Student's distribution with Satterthwaite's degrees of freedom, from
// the blocks of the node and the number of the others. Five hundred nodes in small groups would otherwise have several false alarms.
//
// Two odd nodes hide each other, because each widens the spread that the other is compared with. So the nodes leave one by one, the most extreme
// first, and the last step with a small p-value decides, as in the generalised ESD procedure (B. Rosner, Technometrics 25 (1983) 165–172). For equal noise the two are the same
// statistic. Each p-value is multiplied by the number of the nodes that are left, and by the number of groups.
func OddNodes(groups [][]NodeEffect, alpha float64) []OddNode {
	tested := 0
	for _, g := range groups {
		if len(g) >= MinNodes {
			tested++
		}
	}
	var odd []OddNode
	for i, g := range groups {
		if len(g) >= MinNodes {
			for _, o := range oddNodes(g, alpha, float64(tested)) {
				o.Group = i
				odd = append(odd, o)
			}
		}
	}
	return odd
}

func oddNodes(group []NodeEffect, alpha, family float64) []OddNode {
	members := make([]int, len(group))
	for i := range members {
		members[i] = i
	}
	var candidates []int
	last := 0
	for range min(mostOddNodes, max(1, int(mostOdd*float64(len(group))))) {
		k := mostExtreme(group, members)
		node := members[k]
		family := family * float64(len(members))
		members = slices.Delete(members, k, k+1)
		candidates = append(candidates, node)
		if _, p := deletedResidual(group[node], pick(group, members)); p*family < alpha {
			last = len(candidates)
		}
	}
	// The difference and the p-value of each odd node are from a comparison without the other odd nodes.
	rest := pick(group, append(members, candidates[last:]...))
	var odd []OddNode
	for _, node := range candidates[:last] {
		log, p := deletedResidual(group[node], rest)
		if p *= float64(len(rest)+1) * family; p < alpha {
			odd = append(odd, OddNode{Node: node, Log: log, P: p})
		}
	}
	return odd
}

// mostExtreme is the place of the node that is farthest from the mean, in units of its standard deviation.
func mostExtreme(group []NodeEffect, members []int) int {
	f := PoolNodes(pick(group, members))
	extreme, size := 0, -1.0
	for k, node := range members {
		deviation := math.Abs(group[node].Log - f.Log)
		if !math.IsNaN(f.Tau) {
			deviation /= math.Hypot(group[node].SE, f.Tau)
		}
		if deviation > size {
			extreme, size = k, deviation
		}
	}
	return extreme
}

func pick(group []NodeEffect, places []int) []NodeEffect {
	nodes := make([]NodeEffect, len(places))
	for i, place := range places {
		nodes[i] = group[place]
	}
	return nodes
}

// deletedResidual is the difference of a node from the mean of others, and its two-sided p-value.
func deletedResidual(node NodeEffect, peers []NodeEffect) (log, p float64) {
	f := PoolNodes(peers)
	log = node.Log - f.Log
	freedom := float64(len(peers) - 1)
	if math.IsNaN(f.Tau) || !(node.SE > 0) {
		// Without known noise the others show the whole variation of a node.
		return log, tailsOf(log/math.Hypot(f.Spread(), f.SE), freedom)
	}
	within, between, noise := node.SE*node.SE, f.Tau*f.Tau, f.Noise*f.Noise
	variance := within + between + f.SE*f.SE
	total := variance * variance / (within*within/float64(node.Blocks-1) + (between+noise)*(between+noise)/freedom)
	return log, tailsOf(log/math.Sqrt(variance), total)
}
