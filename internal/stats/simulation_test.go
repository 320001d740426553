package stats

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// fewSwaps does the same for the joint test. Its p-values have steps of 1/500.
const fewSwaps = 499

func TestMedianCoverage(t *testing.T) {
	trials := simulation.Trials(t, 100, 1500)
	models := []model{normal, lognormal, tailed, pareto, disturbed, bimodal, lopsided}
	byNoise := ranges{}
	totals := map[string]int{} // intervals of each noise that cover the median
	sizes := []int{6, 7, 8, 10, 11, 20, 50}
	for _, n := range sizes {
		minimum, greatest, leastPlain, greatestPlain := 1.0, 0.0, 1.0, 0.0
		for _, m := range models {
			r := random(uint64(n))
			var coverCount, coveredPlain int
			for trial := range trials {
				sorted := m.series(r, n, 1)
				slices.Sort(sorted)
				coverCount += count(covers(*medianInterval(sorted, 1), m.median))
				if trial < trials/4 {
					coveredPlain += count(covers(plainInterval(sorted, r), m.median))
				}
			}
			coverage, plainShare := share(coverCount, trials), share(coveredPlain, trials/4)
			minimum, greatest = min(minimum, coverage), max(greatest, coverage)
			leastPlain, greatestPlain = min(leastPlain, plainShare), max(greatestPlain, plainShare)
			byNoise.add(m.name, coverage)
			totals[m.name] += coverCount
			simulation.AtLeast(t, 0.94, coverCount, trials, "n = %d, %s: the interval of the median covers it", n, m.name)
		}
		t.Logf("n = %d: the interval of the median covers it in %.1f–%.1f %%; the plain percentile interval in %.1f–%.1f %%", n, 100*minimum, 100*greatest, 100*leastPlain, 100*greatestPlain)
		if simulation.Full() && n == 7 && leastPlain > 0.92 {
			t.Errorf("the plain percentile interval covers in %.1f %%: then no better interval is necessary", 100*leastPlain)
		}
	}
	for noise, coverCount := range totals {
		simulation.AtLeast(t, 0.94, coverCount, len(sizes)*trials, "%s: the interval of the median covers it", noise)
	}
	byNoise.log(t, "the interval of the median of 6 to 50 values covers it in")
}

// ranges are the least and the greatest share of each kind of noise.
type ranges map[string]Interval

func (r ranges) add(noise string, share float64) {
	interval, has := r[noise]
	if !has {
		interval = Interval{share, share}
	}
	r[noise] = Interval{min(interval.Lo, share), max(interval.Hi, share)}
}

func (r ranges) log(t *testing.T, what string) {
	t.Helper()
	for _, noise := range slices.Sorted(maps.Keys(r)) {
		t.Logf("%s noise: %s %.1f–%.1f %%", noise, what, 100*r[noise].Lo, 100*r[noise].Hi)
	}
}

// plainInterval is the plain percentile bootstrap, with drawn resamples.
func plainInterval(sorted []float64, r *rand.Rand) Interval {
	medians := make([]float64, 200)
	resample := make([]float64, len(sorted))
	for i := range medians {
		for j := range resample {
			resample[j] = sorted[r.IntN(len(sorted))]
		}
		slices.Sort(resample)
		medians[i] = median(resample)
	}
	slices.Sort(medians)
	k := len(medians) / 40
	return Interval{Lo: medians[k], Hi: medians[len(medians)-1-k]}
}

// The targets do not differ, but the blocks do, and the host drifts. The test counts how often a family of
// comparisons shows a difference.
func TestFalseAlarmsOfFamilies(t *testing.T) {
	trials := simulation.Trials(t, 40, 400)
	const blocks = 12
	equal := slices.Repeat([]float64{1}, 9)
	kinds := []struct{ noise, shared model }{
		{normal, normal}, {lognormal, bimodal}, {tailed, bimodal}, {disturbed, normal}, {bimodal, bimodal},
	}
	total := 0
	for i, c := range kinds {
		r := random(uint64(i))
		alarms := 0
		for trial := range trials {
			targets := run(r, c.noise, c.shared, blocks, equal...)
			alarms += count(slices.ContainsFunc(Judge(familyOf(targets, uint64(trial)), Alpha, 0), differs))
		}
		simulation.AtMost(t, Alpha, alarms, trials, "%s in %s blocks: families with a difference", c.noise.name, c.shared.name)
		total += alarms
	}
	simulation.AtMost(t, Alpha, total, len(kinds)*trials, "families with a difference")
}

// familyOf compares the first target with each of the others.
func familyOf(targets [][]Sample, seed uint64) (family []Comparison) {
	for _, target := range targets[1:] {
		family = append(family, compare(targets[0], target, Lower, seed, fewSwaps))
	}
	return family
}

// The baseline of these families is the best of equal targets, chosen by the same values, as in the summary of a scorecard. So there
// are more false alarms than in a family with a fixed baseline.
func TestFalseAlarmsAgainstTheBest(t *testing.T) {
	trials := simulation.Trials(t, 40, 500)
	total := 0
	for _, n := range []int{3, 6, 12} {
		for _, blocks := range []int{10, 20} {
			r := random(uint64(100*n + blocks))
			var alarms int
			for trial := range trials {
				targets := run(r, normal, normal, blocks, slices.Repeat([]float64{1}, n)...)
				slices.SortStableFunc(targets, func(a, b []Sample) int { return cmp.Compare(medianOf(a), medianOf(b)) })
				alarms += count(slices.ContainsFunc(Judge(familyOf(targets, uint64(trial)), Alpha, 0), differs))
			}
			t.Logf("%d targets, %d blocks: %.1f %% of the families show a difference from the best", n, blocks, 100*share(alarms, trials))
			simulation.AtMost(t, 0.12, alarms, trials, "%d targets, %d blocks: families with a difference from the best", n, blocks)
			total += alarms
		}
	}
	simulation.AtMost(t, 0.12, total, 6*trials, "families with a difference from the best")
}

func medianOf(samples []Sample) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, s.Value)
	}
	return Median(values)
}

func differs(c Comparison) bool { return c.Differs() }

func TestRatioCoverage(t *testing.T) {
	trials := simulation.Trials(t, 60, 1000)
	const factor = 1.3
	byNoise := ranges{}
	allPaired, allUnpaired := map[string]int{}, map[string]int{}
	sizes := []int{6, 8, 11, 20}
	for _, n := range sizes {
		for _, noise := range []model{normal, lognormal, tailed, pareto, disturbed, bimodal} {
			r := random(uint64(n))
			var paired, unpaired int
			for trial := range trials {
				targets := run(r, noise, bimodal, n, 1, factor)
				paired += count(covers(*compare(targets[0], targets[1], Lower, uint64(trial), fewSwaps).CI, factor))
				unpaired += count(covers(*CompareUnpaired(noise.series(r, n, 1), noise.series(r, n, factor), Lower).CI, factor))
			}
			byNoise.add(noise.name, share(paired, trials))
			simulation.AtLeast(t, 0.94, paired, trials, "n = %d, %s: the interval of the ratio covers it", n, noise.name)
			simulation.AtLeast(t, 0.94, unpaired, trials, "n = %d, %s, unpaired: the interval of the ratio covers it", n, noise.name)
			allPaired[noise.name] += paired
			allUnpaired[noise.name] += unpaired
		}
	}
	for noise := range allPaired {
		simulation.AtLeast(t, 0.94, allPaired[noise], len(sizes)*trials, "%s: the interval of the ratio covers it", noise)
		simulation.AtLeast(t, 0.94, allUnpaired[noise], len(sizes)*trials, "%s, unpaired: the interval of the ratio covers it", noise)
	}
	byNoise.log(t, "the interval of the ratio in 6 to 20 blocks covers it in")
}

// A comparison shows a difference as large as Detectable with a probability close to Power.
func TestPower(t *testing.T) {
	trials := simulation.Trials(t, 30, 500)
	for _, n := range []int{6, 10, 20, 200} {
		for _, noise := range []model{normal, lognormal, tailed} {
			methods := map[string]func(r *rand.Rand, seed uint64, factor float64) Comparison{
				"paired": func(r *rand.Rand, seed uint64, factor float64) Comparison {
					targets := run(r, noise, bimodal, n, 1, factor)
					return compare(targets[0], targets[1], Lower, seed, fewSwaps)
				},
				"unpaired": func(r *rand.Rand, _ uint64, factor float64) Comparison {
					return CompareUnpaired(noise.series(r, n, 1), noise.series(r, n, factor), Lower)
				},
			}
			for name, method := range methods {
				r := random(uint64(n))
				var detectable []float64
				for trial := range uint64(trials) {
					detectable = append(detectable, method(r, trial, 1).Detectable)
				}
				difference := Median(detectable)
				var found int
				for trial := range uint64(trials) {
					found += count(method(r, trial, 1+difference).Verdict == Slower)
				}
				t.Logf("n = %d, %s, %s: Detectable is %.1f %%, and is found in %.0f %%", n, noise.name, name, 100*difference, 100*share(found, trials))
				simulation.AtLeast(t, 0.75, found, trials, "n = %d, %s, %s: %.1f %% slower is found", n, noise.name, name, 100*difference)
			}
		}
	}
}

// Ratio is the median of the quotients, because its error is smaller than the error of the quotient of the medians.
func TestPairsSharpenTheRatio(t *testing.T) {
	trials := simulation.Trials(t, 500, 2000)
	const n = 20
	source := model{"quiet", func(r *rand.Rand) float64 { return math.Exp(0.02 * r.NormFloat64()) }, 1}
	r := random(1)
	var ofQuotients, ofMedians float64
	for range trials {
		targets := run(r, source, normal, n, 1, 1)
		a, b := pair(targets[0], targets[1])
		logs := logarithms(b)
		for i, log := range logarithms(a) {
			logs[i] -= log
		}
		ofQuotients += math.Pow(Median(logs), 2) / float64(trials)
		ofMedians += math.Pow(math.Log(Median(b)/Median(a)), 2) / float64(trials)
	}
	t.Logf("standard error of the ratio in %d blocks: %.2f %% as a median of quotients, %.2f %% as a quotient of medians",
		n, 100*math.Sqrt(ofQuotients), 100*math.Sqrt(ofMedians))
	if ofQuotients > ofMedians/2 {
		t.Errorf("the variance of the median of quotients is %.3g, of the quotient of medians %.3g; want it below half", ofQuotients, ofMedians)
	}
}

// A rule that stops at a narrow interval favours intervals that are narrow by chance. The loss of coverage is as
// stopInterval states.
func TestStopRuleCoverage(t *testing.T) {
	trials := simulation.Trials(t, 100, 500)
	const precision, blocks = 0.02, 60
	models := []model{normal, tailed, disturbed}
	total := 0
	for i, m := range models {
		r := random(uint64(i))
		var coverCount int
		for range trials {
			series := m.series(r, blocks, 1)
			n := 10
			for n < blocks && !precise(series[:n], precision) {
				n++
			}
			sorted := slices.Sorted(slices.Values(series[:n]))
			coverCount += count(covers(*medianInterval(sorted, 1), m.median))
		}
		t.Logf("%s noise: when the stop rule stops, the interval of the median covers it in %.1f %%", m.name, 100*share(coverCount, trials))
		simulation.AtLeast(t, 0.93, coverCount, trials, "%s: when the stop rule stops, the interval covers", m.name)
		total += coverCount
	}
	simulation.AtLeast(t, 0.93, total, len(models)*trials, "when the stop rule stops, the interval covers")
}

// Drawn resamples have medians with these probabilities.
func TestResampledMedians(t *testing.T) {
	draws := simulation.Trials(t, 20_000, 200_000)
	for _, n := range []int{6, 7, 20, 21} {
		sorted := make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(i)
		}
		exact, counts := resample(sorted, float64(n-n%2)), make(map[float64]int)
		r := random(uint64(n))
		values := make([]float64, n-n%2)
		for range draws {
			for j := range values {
				values[j] = float64(r.IntN(n))
			}
			slices.Sort(values)
			counts[median(values)]++
		}
		var total float64
		for value := 0.0; value <= float64(n-1); value += 0.5 {
			p, q := exact.atMost(value)-total, share(counts[value], draws)
			if limit := 5*simulationError(p, draws) + 5/float64(draws); math.Abs(p-q) > limit {
				t.Errorf("n = %d: the median is %g with the probability %.4f and in %.4f of the resamples", n, value, p, q)
			}
			total += p
		}
		if math.Abs(total-1) > 1e-12 {
			t.Errorf("n = %d: the probabilities add up to %v", n, total)
		}
	}
}

// The median of many values is normal, with a standard error of √n/2 ranks.
func TestResampledMediansOfManyValues(t *testing.T) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		sorted := make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(i)
		}
		for _, inflation := range []float64{1, 3.7} {
			deviation := math.Sqrt(float64(n)*inflation) / 2
			for _, tail := range []float64{0.001, 0.025, 0.5, 0.975} {
				want := float64(n-1)/2 + deviation*distuv.UnitNormal.Quantile(tail)
				if got := resample(sorted, float64(n)/inflation).quantile(tail); math.Abs(got-want) > 0.01*deviation+1 {
					t.Errorf("n = %d, inflation %g: the quantile %g of the median is %g, want %g", n, inflation, tail, got, want)
				}
			}
		}
	}
}

func TestWarningsFalseAlarms(t *testing.T) {
	trials := simulation.Trials(t, 150, 2000)
	sizes := []int{6, 7, 10, 20, 50, 200}
	totals := map[string]int{} // alarms of each noise
	for _, n := range sizes {
		for _, m := range []model{normal, lognormal, tailed, uniform} {
			r := random(uint64(n))
			var alarms int
			for range trials {
				alarms += count(len(warnings(m.series(r, n, 1))) > 0)
			}
			t.Logf("%s noise, n = %d: warnings for %.1f %% of unremarkable series", m.name, n, 100*share(alarms, trials))
			simulation.AtMost(t, 0.05, alarms, trials, "n = %d, %s: unremarkable series with a warning", n, m.name)
			totals[m.name] += alarms
		}
	}
	for noise, alarms := range totals {
		simulation.AtMost(t, 0.05, alarms, len(sizes)*trials, "%s: unremarkable series with a warning", noise)
	}
}

func TestWarningsFind(t *testing.T) {
	trials := simulation.Trials(t, 200, 500)
	drifting := func(r *rand.Rand) []float64 {
		v := normal.series(r, 20, 1)
		for i := range v {
			v[i] *= 1 + 0.2*float64(i)/20
		}
		return v
	}
	hit := func(r *rand.Rand) []float64 {
		v := normal.series(r, 20, 1)
		v[r.IntN(20)] = 3
		return v
	}
	for _, c := range []struct {
		name   string
		kind   WarningKind
		series func(*rand.Rand) []float64
		want   float64
	}{
		{"14 and 26 ms, 10 blocks", Bimodal, func(r *rand.Rand) []float64 { return bimodal.series(r, 10, 14) }, 0.5},
		{"14 and 26 ms, 20 blocks", Bimodal, func(r *rand.Rand) []float64 { return bimodal.series(r, 20, 14) }, 0.9},
		{"14 and 26 ms, 65 to 35, 50 blocks", Bimodal, func(r *rand.Rand) []float64 { return lopsided.series(r, 50, 14) }, 0.9},
		{"drift of 20 %", Drift, drifting, 0.9},
		{"one trial of 20 three times as long", Outliers, hit, 0.95},
	} {
		r := random(1)
		var found int
		for range trials {
			found += count(slices.ContainsFunc(warnings(c.series(r)), func(w Warning) bool { return w.Kind == c.kind }))
		}
		simulation.AtLeast(t, c.want, found, trials, "%s: %s found", c.name, c.kind)
	}
}
