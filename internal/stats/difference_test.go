package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// Darwin's fifteen pairs of maize, heights in eighths of an inch (R. A. Fisher, "The Design of
// Experiments", 1935, section 16), cross-fertilised and self-fertilised.
func maize() (crossed, selfed []Sample) {
	return fromValues(188, 96, 168, 176, 153, 172, 177, 163, 146, 173, 186, 168, 177, 184, 96),
		fromValues(139, 163, 160, 160, 147, 149, 149, 122, 132, 144, 130, 144, 102, 124, 144)
}

func TestDifferencePublished(t *testing.T) {
	crossed, selfed := maize()
	d := Subtract(crossed, [][]Sample{selfed})
	if d.N != 15 || d.Median != 24 {
		t.Errorf("of Darwin's maize there are %d differences with the median %g, want 15, 24", d.N, d.Median)
	}
	// The exact interval of the sign test, between the 4th and the 12th of Fisher's differences, covers with
	// 96.5 %. The bootstrap's interval must be similar.
	if d.CI == nil || !d.Shown() || d.CI.Lo < 6 || d.CI.Lo > 14 || d.CI.Hi < 41 || d.CI.Hi > 56 {
		t.Errorf("the interval is %v, want about 8 to 49", d.CI)
	}
}

func TestDifferenceChangesItsSign(t *testing.T) {
	a, b := maize()
	first, back := Subtract(a, [][]Sample{b}), Subtract(b, [][]Sample{a})
	want := Difference{N: first.N, Median: -first.Median, CI: &Interval{Lo: -first.CI.Hi, Hi: -first.CI.Lo}}
	expect.Equal(t, "the other way round the difference is", want, back)
	if self := Subtract(a, [][]Sample{a}); self.Median != 0 || self.Shown() {
		t.Errorf("a series differs from itself by %g in %v", self.Median, self.CI)
	}
}

// Only blocks with all three series count, in any order.
func TestDifferencePairsBlocks(t *testing.T) {
	total := []Sample{{0, 100}, {1, 10}, {2, 20}, {3, 30}, {9, 5}}
	first := []Sample{{3, 3}, {2, 2}, {1, 0}, {1, 1}, {1, 2}, {9, 1}}
	second := []Sample{{1, 4}, {2, 4}, {3, 4}, {0, 4}}
	if d := Subtract(total, [][]Sample{first, second}); d.N != 3 || d.Median != 14 || d.CI != nil || d.Shown() {
		t.Errorf("the difference is %+v, want 3 blocks, a median of 14 and no interval", d)
	}
	if d := Subtract(total, nil); d.N != 5 || d.Median != 20 {
		t.Errorf("without others the difference is %+v, want the median of the whole, 20", d)
	}
	for name, layers := range map[string][][]Sample{
		"no block in common":  {{{77, 1}}},
		"an empty series":     {first, nil},
		"a value is infinite": {{{1, math.Inf(1)}, {2, 1}}},
	} {
		if d := Subtract(total, layers); !math.IsNaN(d.Median) || d.CI != nil {
			t.Errorf("%s: the difference is %+v", name, d)
		}
	}
}

// A layer adds 30 ms to a start of 100 ms, with noise that blocks share and drift. There are three kinds of
// layers: as steady as the layers below it, ten times noisier, and a layer minus two others.
func TestDifferenceCoverage(t *testing.T) {
	trials := simulation.Trials(t, 50, 1000)
	sizes := []int{6, 8, 11, 20}
	for _, noise := range []model{normal, lognormal, tailed, disturbed, bimodal} {
		layers := map[string]func(r *rand.Rand) (total float64, layers []float64){
			"alike": func(r *rand.Rand) (float64, []float64) {
				return 0.13 + 0.01*noise.draw(r), []float64{0.1 + 0.01*noise.draw(r)}
			},
			"noisier": func(r *rand.Rand) (float64, []float64) {
				return 0.13 + 0.1*noise.draw(r), []float64{0.1 + 0.01*normal.draw(r)}
			},
			"two": func(r *rand.Rand) (float64, []float64) {
				step := 0.05 * noise.draw(r)
				return 0.13 + step + 0.02*noise.draw(r), []float64{step, 0.1 + 0.01*noise.draw(r)}
			},
		}
		for name, layer := range layers {
			truth := medianDifference(layer)
			total := 0
			for _, n := range sizes {
				r := random(uint64(n))
				var coverCount int
				for range trials {
					total, layers := layeredRun(r, n, layer)
					coverCount += count(covers(*Subtract(total, layers).CI, truth))
				}
				t.Logf("%s noise, %d blocks, layer %q: the interval of the difference covers it in %.1f %%", noise.name, n, name, 100*share(coverCount, trials))
				simulation.AtLeast(t, 0.94, coverCount, trials, "n = %d, %s, %s: the interval of the difference covers it", n, name, noise.name)
				total += coverCount
			}
			simulation.AtLeast(t, 0.94, total, len(sizes)*trials, "%s, %s: the interval of the difference covers it", name, noise.name)
		}
	}
}

// medianDifference is the true median, from enough draws that its error is far below the width of an interval.
func medianDifference(layer func(*rand.Rand) (float64, []float64)) float64 {
	r := random(99)
	draws := make([]float64, 200_000)
	for i := range draws {
		left, layers := layer(r)
		for _, v := range layers {
			left -= v
		}
		draws[i] = left
	}
	slices.Sort(draws)
	return median(draws)
}

// layeredRun returns n blocks of a layer and of the layers below it. The noise of a block is in the whole and in
// the first of the others, because the whole goes through that layer too.
func layeredRun(r *rand.Rand, n int, layer func(*rand.Rand) (float64, []float64)) (total []Sample, layers [][]Sample) {
	for block := range n {
		hostNoise := 0.1*bimodal.draw(r) + 0.03*float64(block)/float64(n)
		value, costs := layer(r)
		total = append(total, Sample{block, value + hostNoise})
		for i, cost := range costs {
			if i == len(layers) {
				layers = append(layers, nil)
			}
			if i == 0 {
				cost += hostNoise
			}
			layers[i] = append(layers[i], Sample{block, cost})
		}
	}
	return total, layers
}

// Pairs show a layer of 3 ms on a host with blocks that differ by tens of milliseconds. The difference of the two
// medians has a far greater error.
func TestPairsSharpenTheDifference(t *testing.T) {
	trials := simulation.Trials(t, 500, 2000)
	const n = 20
	layer := func(r *rand.Rand) (float64, []float64) {
		return 0.13 + 0.01*normal.draw(r), []float64{0.1 + 0.01*normal.draw(r)}
	}
	r := random(1)
	var ofDifferences, ofMedians float64
	for range trials {
		total, layers := layeredRun(r, n, layer)
		d := Subtract(total, layers)
		distance := d.Median - 0.03
		ofDifferences += distance * distance / float64(trials)
		distance = Median(values(total)) - Median(values(layers[0])) - 0.03
		ofMedians += distance * distance / float64(trials)
	}
	t.Logf("standard error of the difference in %d blocks: %.2g as a median of differences, %.2g as a difference of medians",
		n, math.Sqrt(ofDifferences), math.Sqrt(ofMedians))
	if ofDifferences > ofMedians/2 {
		t.Errorf("the variance of the median of differences is %.3g, of the difference of medians %.3g; want it below half", ofDifferences, ofMedians)
	}
}
