package advice

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Resamples is the number of resamples.
const Resamples = 2000

// leastShare is the least share of the resamples with a shown order.
const leastShare = 0.95

// mostMore limits the proposed number of further blocks, as a multiple of the present number. An estimate beyond it means nothing.
const mostMore = 10

// group is sources of one run with the same blocks.
type group struct {
	run    int
	blocks []int
	// costs are the weighted logarithms of the costs, by target, dimension and block.
	costs [][][]float64
}

// total is the cost of a target by block.
func (g *group) total(target int) []float64 {
	sums := make([]float64, len(g.blocks))
	for _, costs := range g.costs[target] {
		for i, c := range costs {
			sums[i] += c
		}
	}
	return sums
}

// groups divides the counted sources of some targets.
func (a *Advice) groups(names []string) []group {
	var groups []group
	for d := range a.Counted {
		dimension := &a.Counted[d]
		for i := range dimension.Sources {
			s := &dimension.Sources[i]
			g := lists.Place(&groups, func(g *group) bool { return g.run == s.run && slices.Equal(g.blocks, s.blocks) }, group{run: s.run, blocks: s.blocks})
			for len(g.costs) < len(names) {
				costs := make([][]float64, len(a.Counted))
				for i := range costs {
					costs[i] = make([]float64, len(s.blocks))
				}
				g.costs = append(g.costs, costs)
			}
			for t, name := range names {
				for n, block := range s.blocks {
					g.costs[t][d][n] += s.logs[name][block] * dimension.Share / float64(len(dimension.Sources))
				}
			}
		}
	}
	return groups
}

// rank orders the targets.
func (a *Advice) rank(d *data, targets []result.Target) {
	var names []string
	for _, t := range targets {
		names = append(names, t.Name)
	}
	a.Reference = names[0]
	if a.onNative(d.native) {
		names, a.Reference = append(names, d.native), d.native
	}
	groups := a.groups(names)
	for _, g := range groups {
		a.Blocks = append(a.Blocks, len(g.blocks))
	}
	reference := slices.Index(names, a.Reference)
	for i, t := range targets {
		sum := compare(groups, reference, i)
		r := Ranked{Target: t, Place: 1, Cost: math.Exp(sum.Value), CI: exponential(sum.CI)}
		if i == reference {
			r.CI = nil
		}
		for n, c := range a.Counted {
			var differences [][]float64
			for _, g := range groups {
				differences = append(differences, subtract(g.costs[i][n], g.costs[reference][n]))
			}
			r.Costs = append(r.Costs, math.Exp(stats.SumTypical(differences...).Value/c.Share))
		}
		a.Ranked = append(a.Ranked, r)
	}
	wins := a.resample(groups, len(targets))
	for i := range a.Ranked {
		a.Ranked[i].First = wins[i][i]
	}
	a.order(d, groups, wins)
	slices.SortStableFunc(a.Ranked, func(x, y Ranked) int { return cmp.Compare(x.Cost, y.Cost) })
}

// onNative reports whether bare metal has all counted values.
func (a *Advice) onNative(native string) bool {
	for _, c := range a.Counted {
		for _, s := range c.Sources {
			for _, block := range s.blocks {
				if _, ok := s.logs[native][block]; !ok {
					return false
				}
			}
		}
	}
	return true
}

// compare is the cost of a target less the cost of another one.
func compare(groups []group, reference, target int) stats.Sum {
	var differences [][]float64
	for _, g := range groups {
		differences = append(differences, subtract(g.total(target), g.total(reference)))
	}
	return stats.SumTypical(differences...)
}

func subtract(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i, v := range b {
		out[i] -= v
	}
	return out
}

func exponential(ci *stats.Interval) *stats.Interval {
	if ci == nil {
		return nil
	}
	return &stats.Interval{Lo: math.Exp(ci.Lo), Hi: math.Exp(ci.Hi)}
}

// order judges all pairs, and counts the shown orders for the places.
func (a *Advice) order(d *data, groups []group, wins [][]float64) {
	var p, growth []float64
	pairs := len(a.Ranked) * (len(a.Ranked) - 1) / 2
	for i := range a.Ranked {
		for j := range i {
			low, high := j, i
			sum := compare(groups, low, high)
			if sum.Value < 0 {
				low, high = i, j
				sum = compare(groups, low, high)
			}
			a.Orders = append(a.Orders, Order{
				Better: a.Ranked[low].Name, Worse: a.Ranked[high].Name, Ratio: math.Exp(sum.Value), CI: exponential(sum.CI),
				Share: wins[low][high], Dependent: sum.Dependent && !a.IsFleet, // the order of nodes has no meaning
			})
			p, growth = append(p, atLooks(d, groups, sum.P)), append(growth, sum.Growth(stats.Alpha/float64(pairs)))
		}
	}
	size := 0
	for _, g := range groups {
		size = max(size, len(g.blocks))
	}
	for i, adjusted := range stats.Holm(p) {
		o := &a.Orders[i]
		o.P = adjusted
		o.Shown = adjusted < stats.Alpha && o.Share >= leastShare && !o.Dependent && o.Ratio > 1
		switch {
		case o.Shown:
			n := slices.IndexFunc(a.Ranked, func(r Ranked) bool { return r.Name == o.Worse })
			a.Ranked[n].Place++
		case growth[i] > 1 && growth[i] <= mostMore && !o.Dependent:
			o.More = int(math.Ceil((growth[i] - 1) * float64(size)))
		}
	}
}

// atLooks is a p-value after the looks of the runs' stopping rules.
func atLooks(d *data, groups []group, p float64) float64 {
	out := p
	for _, g := range groups {
		if stop := d.Runs[g.run].Stopping; stop != nil && len(stop.Looks) > 0 {
			out = max(out, stats.NewSequential(stop.Looks).At(len(g.blocks), false).P(p))
		}
	}
	return out
}

// resample counts the orders in resamples, as shares: wins[i][j] for a lower cost of target i than of target j, and wins[i][i] for no target with a
// lower cost than i.
func (a *Advice) resample(groups []group, targets int) [][]float64 {
	centred := make([][][]float64, len(groups)) // by group and target
	size := 0
	for n, g := range groups {
		size = max(size, len(g.blocks))
		means := make([]float64, len(g.blocks))
		for t := range targets {
			total := g.total(t)
			centred[n] = append(centred[n], total)
			for i, v := range total {
				means[i] += v / float64(targets)
			}
		}
		for t := range targets {
			centred[n][t] = subtract(centred[n][t], means)
		}
	}
	wins := make([][]float64, targets)
	for t := range wins {
		wins[t] = make([]float64, targets)
	}
	random := rand.New(rand.NewPCG(a.Seed, 1))
	resample := make([]float64, size)
	for range Resamples {
		costs := make([]float64, targets)
		positions := map[int][]float64{} // by run, as shares of its blocks
		for n, g := range groups {
			if positions[g.run] == nil {
				positions[g.run] = make([]float64, size)
				for i := range positions[g.run] {
					positions[g.run][i] = random.Float64()
				}
			}
			for t := range targets {
				for i := range g.blocks {
					resample[i] = centred[n][t][int(positions[g.run][i]*float64(len(g.blocks)))]
				}
				costs[t] += stats.Median(resample[:len(g.blocks)])
			}
		}
		minimum := slices.Min(costs)
		for i := range targets {
			for j := range targets {
				if costs[i] < costs[j] || i == j && costs[i] == minimum {
					wins[i][j]++
				}
			}
		}
	}
	for _, counts := range wins {
		for i := range counts {
			counts[i] /= Resamples
		}
	}
	return wins
}
