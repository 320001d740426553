package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// twoDimensions weighs two dimensions equally.
var twoDimensions = Profile{Name: own, Weights: []Weight{{result.DimensionCPU, 1, true}, {result.DimensionStartUp, 1, true}}}

// simulate makes the data of a run: costs has the logarithm of the cost of each target by dimension.
func simulate(r *rand.Rand, blocks [2]int, costs [][2]float64, noise func(*rand.Rand) float64) *data {
	d := &data{Analysis: &analysis.Analysis{Runs: []analysis.Run{{}}}, sources: map[result.Dimension][]Source{}}
	for t := range costs {
		d.Runs[0].Targets = append(d.Runs[0].Targets, analysis.Target{Target: result.Target{Name: fmt.Sprintf("oci/%d", t), Kind: result.KindRuntime}})
	}
	for i, w := range twoDimensions.Weights {
		s := Source{Key: analysis.Key{Name: string(w.Dimension)}, section: &analysis.Section{}, logs: map[string]map[int]float64{}}
		for t := range costs {
			s.logs[d.Runs[0].Targets[t].Name] = map[int]float64{}
		}
		for block := range blocks[i] {
			mood := 0.3 * r.NormFloat64()
			for t := range costs {
				s.logs[d.Runs[0].Targets[t].Name][block] = costs[t][i] + mood + noise(r)
			}
		}
		d.sources[w.Dimension] = []Source{s}
	}
	return d
}

// TestFalseOrders: an answer states a false order in at most 5 % of the simulated runs: an order of equal targets, or an order in the wrong direction. Targets are
// equal in everything, or only in the sum of dimensions with opposite differences.
//
// Invariant advice-orders: An advice states a false order of targets in at most 5 % of the simulated runs.
func TestFalseOrders(t *testing.T) {
	trials := simulation.Trials(t, 120, 2000)
	noises := map[string]func(*rand.Rand) float64{
		"normal":    func(r *rand.Rand) float64 { return 0.05 * r.NormFloat64() },
		"tailed":    func(r *rand.Rand) float64 { return 0.1 * r.ExpFloat64() },
		"disturbed": func(r *rand.Rand) float64 { return 0.03*r.NormFloat64() + 0.5*float64(r.IntN(10)/9) },
	}
	for name, noise := range noises {
		for _, c := range []struct {
			blocks [2]int
			costs  [][2]float64
		}{
			{[2]int{12, 12}, [][2]float64{{}, {}, {}, {}}},
			{[2]int{7, 7}, [][2]float64{{}, {}, {}}},
			{[2]int{8, 14}, [][2]float64{{0.5, -0.5}, {-0.5, 0.5}, {}}},
			{[2]int{12, 12}, [][2]float64{{}, {0.5, -0.5}, {0.04, 0}, {0.3, 0.3}}},
		} {
			r := rand.New(rand.NewPCG(20261129, uint64(len(c.costs))))
			falseCount, shownCount := 0, 0
			for trial := range trials {
				a := &Advice{Profile: twoDimensions, Seed: uint64(trial)}
				a.judge(simulate(r, c.blocks, c.costs, noise))
				if a.Reason != "" || len(a.Ranked) != len(c.costs) {
					t.Fatalf("no ranking: %+v", a)
				}
				sum := func(name string) float64 {
					i := slices.IndexFunc(a.Ranked, func(r Ranked) bool { return r.Name == name })
					var target int
					_, err := fmt.Sscanf(a.Ranked[i].Name, "oci/%d", &target)
					if err != nil {
						t.Fatal(err)
					}
					return c.costs[target][0] + c.costs[target][1]
				}
				isFalse := func(o Order) bool { return o.Shown && sum(o.Better) >= sum(o.Worse)-1e-9 }
				if slices.ContainsFunc(a.Orders, isFalse) {
					falseCount++
				}
				if slices.ContainsFunc(a.Orders, func(o Order) bool { return o.Shown }) {
					shownCount++
				}
			}
			simulation.AtMost(t, 0.05, falseCount, trials, "%s noise, %v: a false order is stated", name, c.costs)
			if len(c.costs) == 4 && c.costs[3][0] > 0 {
				simulation.AtLeast(t, 0.8, shownCount, trials, "%s noise, %v: the large difference is stated", name, c.costs)
			}
		}
	}
}

// TestPlaces: places follow the shown orders, the reference has the cost 1, and the shares of a clear order are whole.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := simulate(r, [2]int{14, 14}, [][2]float64{{0.7, 0.7}, {}, {0.001, 0}}, func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() })
	a := &Advice{Profile: twoDimensions}
	a.judge(d)
	if len(a.Ranked) != 3 || a.Ranked[2].Name != "oci/0" || a.Ranked[2].Place != 3 || a.Ranked[0].Place != 1 || a.Ranked[1].Place != 1 || a.Decided() {
		t.Fatalf("the ranking is %+v, %+v", a.Ranked, a.Orders)
	}
	if a.Reference != "oci/0" || a.Ranked[2].Cost != 1 || a.Ranked[2].First != 0 || math.Abs(a.Ranked[0].First+a.Ranked[1].First-1) > 1e-9 {
		t.Errorf("the reference is %s, and the ranking %+v", a.Reference, a.Ranked)
	}
	if !slices.Equal(a.Blocks, []int{14}) || len(a.Best()) != 2 {
		t.Errorf("the groups have %v blocks; the best are %v", a.Blocks, a.Best())
	}
	if o := a.Order("oci/1", "oci/0"); !o.Shown || o.Share != 1 || o.Better != "oci/1" {
		t.Errorf("the clear order is %+v", o)
	}
	if o := a.Order("oci/2", "oci/1"); o.Shown {
		t.Errorf("the equal targets have %+v", o)
	}
}

// TestLooks: a rule that has looked at the data before makes the p-values larger.
func TestLooks(t *testing.T) {
	p := func(looks ...int) float64 {
		r := rand.New(rand.NewPCG(1, 2))
		d := simulate(r, [2]int{14, 14}, [][2]float64{{0.02, 0.02}, {}}, func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() })
		if looks != nil {
			d.Runs[0].Stopping = &result.Stopping{Looks: looks}
		}
		a := &Advice{Profile: twoDimensions}
		a.judge(d)
		return a.Orders[0].P
	}
	if base, look := p(), p(14, 28, 56); !(look > base) {
		t.Errorf("the p-value is %v, and %v at the first of three looks", base, look)
	}
}

// TestPodBound: at least 95 % of the pods are below the bound in at least 95 % of the simulated runs, also if the pods of a trial depend on each other.
func TestPodBound(t *testing.T) {
	trials := simulation.Trials(t, 400, 5000)
	const trialNoise, podNoise, pods = 0.2, 0.1, 10
	limit := math.Exp(1.6449 * math.Hypot(trialNoise, podNoise)) // the quantile of the pods
	r := rand.New(rand.NewPCG(20261129, 1))
	hits := 0
	for range trials {
		run := result.Run{}
		for range 59 {
			trial := result.Trial{Cell: result.Cell{Benchmark: podBenchmark, Target: "containerd/runc"}, Status: result.OK}
			level, sum := trialNoise*r.NormFloat64(), 0.0
			for range pods {
				sum += math.Exp(level + podNoise*r.NormFloat64())
				trial.Samples = append(trial.Samples, result.Sample{Metric: hostSeries, Value: sum})
			}
			run.Trials = append(run.Trials, trial)
		}
		c := Class{}
		c.measure(&run, "containerd/runc")
		if c.Memory >= limit {
			hits++
		}
	}
	simulation.AtLeast(t, 0.95, hits, trials, "the bound is above 95 %% of the pods")
}
