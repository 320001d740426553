package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// nodesOf makes a fleet with a mean log ratio, a spread between nodes, and noise within them that is estimated from a number of blocks.
func nodesOf(r *rand.Rand, n, blocks int, log, spread float64, draw func(*rand.Rand) float64) []NodeEffect {
	const noise = 0.06 // of one block
	nodes := make([]NodeEffect, n)
	for i := range nodes {
		sum := 0.0
		for range blocks - 1 {
			sum += math.Pow(r.NormFloat64(), 2)
		}
		se := noise / math.Sqrt(float64(blocks))
		nodes[i] = NodeEffect{
			Effect: Effect{log + spread*draw(r) + se*r.NormFloat64(), se * math.Sqrt(sum/float64(blocks-1))}, Blocks: blocks,
		}
	}
	return nodes
}

func normalDraw(r *rand.Rand) float64 { return r.NormFloat64() }

// skewedDraw has mean 0 and deviation 1, and a skewness of 2.
func skewedDraw(r *rand.Rand) float64 { return r.ExpFloat64() - 1 }

var fleetSizes = []int{3, 6, 10, 30, 100}

// The interval of the mean covers it, and the interval of one more node covers the node, from 3 nodes on. A fleet without a difference is rarely called
// different, and a fleet without a spread is rarely called spread.
func TestFleetCoverage(t *testing.T) {
	trials := simulation.Trials(t, 400, 10_000)
	const log = 0.05
	for _, n := range fleetSizes {
		for _, c := range []struct {
			name   string
			spread float64
			draw   func(*rand.Rand) float64
		}{{"no spread", 0, normalDraw}, {"a spread of 1 %", 0.01, normalDraw}, {"a spread of 5 %", 0.05, normalDraw}, {"a skewed spread of 5 %", 0.05, skewedDraw}} {
			for _, blocks := range []int{10, 30} {
				r := random(uint64(n*100 + blocks))
				var meanCount, nodeCount, alarmCount, spreadCount int
				for range trials {
					f := PoolNodes(nodesOf(r, n, blocks, log, c.spread, c.draw))
					meanCount += count(covers(f.Interval(0.05), log))
					nodeCount += count(covers(f.Prediction(0.05), nodesOf(r, 1, blocks, log, c.spread, c.draw)[0].Log))
					spreadCount += count(f.SpreadP < 0.05)
					alarmCount += count(PoolNodes(nodesOf(r, n, blocks, 0, c.spread, c.draw)).P < 0.05)
				}
				t.Logf("%d nodes, %d blocks, %s: the interval covers the mean in %.1f %%, the prediction the next node in %.1f %%; false differences %.1f %%; a spread is shown in %.1f %%",
					n, blocks, c.name, 100*share(meanCount, trials), 100*share(nodeCount, trials), 100*share(alarmCount, trials), 100*share(spreadCount, trials))
				if c.spread == 0 {
					simulation.AtMost(t, 0.05, spreadCount, trials, "%d nodes, %d blocks: a spread that does not exist is shown", n, blocks)
				}
				if n < MinNodes {
					continue
				}
				promise := 0.94
				if c.name == "a skewed spread of 5 %" {
					promise = 0.85
				}
				simulation.AtLeast(t, promise, meanCount, trials, "%d nodes, %d blocks, %s: the interval covers the mean", n, blocks, c.name)
				simulation.AtLeast(t, promise, nodeCount, trials, "%d nodes, %d blocks, %s: the prediction covers the next node", n, blocks, c.name)
				simulation.AtMost(t, 1-promise, alarmCount, trials, "%d nodes, %d blocks, %s: false differences", n, blocks, c.name)
			}
		}
	}
}

// A fleet of equal nodes rarely has an odd node, over five comparisons together. A sick node is found, and so are two that hide each other.
func TestFleetFalseAlarmsOfOddNodes(t *testing.T) {
	trials := simulation.Trials(t, 40, 2000)
	const comparisons = 5
	for _, n := range []int{6, 10, 30, 100} {
		for _, spread := range []float64{0, 0.03} {
			for _, blocks := range []int{10, 30} {
				r := random(uint64(n*100 + blocks))
				alarmCount, oneCount, twoCount := 0, 0, 0
				for range trials {
					var groups [][]NodeEffect
					for range comparisons {
						groups = append(groups, nodesOf(r, n, blocks, 0.05, spread, normalDraw))
					}
					alarmCount += count(OddNodes(groups, Alpha) != nil)
					size := 8 * math.Hypot(spread, 0.06/math.Sqrt(float64(blocks)))
					groups[1][n-1].Log += size
					oneCount += count(slices.ContainsFunc(OddNodes(groups, Alpha), func(o OddNode) bool { return o.Group == 1 && o.Node == n-1 }))
					groups[1][n-2].Log += size
					odd := OddNodes(groups, Alpha)
					twoCount += count(slices.ContainsFunc(odd, func(o OddNode) bool { return o.Node == n-1 }) && slices.ContainsFunc(odd, func(o OddNode) bool { return o.Node == n-2 }))
				}
				t.Logf("%d nodes, %d blocks, a spread of %g: an odd node in %.1f %% of equal fleets; one node at 8 deviations is found in %.0f %%, two of them in %.0f %%",
					n, blocks, spread, 100*share(alarmCount, trials), 100*share(oneCount, trials), 100*share(twoCount, trials))
				simulation.AtMost(t, 0.06, alarmCount, trials, "%d nodes, %d blocks, a spread of %g: odd nodes of an equal fleet", n, blocks, spread)
				if n >= 30 && blocks == 30 {
					simulation.AtLeast(t, 0.9, oneCount, trials, "%d nodes, a spread of %g: one node at 8 deviations", n, spread)
					simulation.AtLeast(t, 0.9, twoCount, trials, "%d nodes, a spread of %g: two nodes at 8 deviations", n, spread)
				}
			}
		}
	}
}

// Two kinds that do not differ are rarely called different, also with unequal numbers and spreads.
func TestFleetFalseAlarmsOfKinds(t *testing.T) {
	trials := simulation.Trials(t, 400, 10_000)
	for _, c := range []struct {
		a, b             int
		spreadA, spreadB float64
	}{{3, 3, 0.03, 0.03}, {3, 3, 0, 0}, {3, 30, 0.03, 0.03}, {3, 30, 0.06, 0.01}, {10, 30, 0.01, 0.05}, {50, 50, 0, 0.03}} {
		r := random(uint64(c.a*100 + c.b))
		alarmCount := 0
		for range trials {
			d := PoolNodes(nodesOf(r, c.a, 30, 0.1, c.spreadA, normalDraw)).Minus(PoolNodes(nodesOf(r, c.b, 30, 0.1, c.spreadB, normalDraw)))
			alarmCount += count(d.P < Alpha)
		}
		t.Logf("kinds of %d and %d nodes with spreads of %g and %g: a false difference in %.1f %%", c.a, c.b, c.spreadA, c.spreadB, 100*share(alarmCount, trials))
		simulation.AtMost(t, 0.055, alarmCount, trials, "kinds of %d and %d nodes with spreads of %g and %g", c.a, c.b, c.spreadA, c.spreadB)
	}
}
