package html

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// figuresOf are figures of many lanes and curves with the same values.
func figuresOf(lanes int, samples []document.Sample, curve *document.Curve) []document.Block {
	figure := document.Lanes{Unit: result.Seconds}
	plot := document.Plot{Unit: result.Seconds, Panels: []document.Panel{{End: float64(len(curve.Values))}}}
	for range lanes {
		figure.Lanes = append(figure.Lanes, document.Lane{Samples: &document.Samples{Median: 1, Values: samples}})
		plot.Panels[0].Lines = append(plot.Panels[0].Lines, curve)
		plot.Names = append(plot.Names, fmt.Sprint(len(plot.Names)))
	}
	return []document.Block{document.Section{Blocks: []document.Block{figure, plot}}}
}

// curveOf is a curve of places with the same values at each place.
func curveOf(places int, median float64, values ...float64) *document.Curve {
	c := &document.Curve{Spread: slices.Repeat([][]float64{values}, places), Values: slices.Repeat([]float64{median}, places)}
	for i := range places {
		c.At = append(c.At, float64(i+1))
	}
	return c
}

// The size of the plots has a limit for every shape of a run of 10⁶ values, with and without disturbed trials.
//
// Invariant page-size.
func TestRoomOfAllShapes(t *testing.T) {
	if testing.Short() {
		t.Skip("it has many figures")
	}
	for _, tt := range []struct{ lanes, points, places, values int }{
		{1, 1_000_000, 0, 0},
		{20, 50_000, 0, 0},
		{500, 2000, 0, 0},
		{3000, 333, 0, 0},
		{1, 1, 1_000_000, 1},
		{2, 5, 100_000, 5},
		{200, 50, 100, 50},
		{500, 2, 1000, 2},
		{20, 1000, 50, 1000},
	} {
		for _, disturbed := range []bool{false, true} {
			samples := noisySamples(tt.points, disturbed)
			curve := curveOf(tt.places, 1, slices.Repeat([]float64{1, 2}, (tt.values+1)/2)[:tt.values]...)
			var blocks []document.Block
			for left := tt.lanes; left > 0; left -= 20 {
				blocks = append(blocks, figuresOf(min(left, 20), samples, curve)...)
			}
			bytes := 0
			for _, section := range newBuilder(blocks).blocks(blocks, 2) {
				for _, f := range section.Section.Blocks[0].Figures {
					if f.Lanes != nil {
						data, err := json.Marshal(f.Lanes.Data)
						must.Do(t, err)
						bytes += len(data)
						for _, l := range f.Lanes.Lanes {
							bytes += len(l.Samples.Dots) + 55*len(l.Samples.Rings)
						}
						continue
					}
					for _, p := range f.Plot.Panels {
						data, err := json.Marshal(p.Data)
						must.Do(t, err)
						bytes += len(data)
						for i, c := range p.Curves {
							bytes += len(c.Path) + len(c.Marks) + len(p.Dots[i])
						}
					}
				}
			}
			if bytes > 7_000_000 {
				t.Errorf("%+v, disturbed %v: the plots have %d bytes", tt, disturbed, bytes)
			}
		}
	}
}

func noisySamples(n int, disturbed bool) []document.Sample {
	random := rand.New(rand.NewPCG(1, 2))
	var samples []document.Sample
	for i := range n {
		samples = append(samples, document.Sample{Order: int32(i), Hollow: disturbed, Value: math.Exp(0.1 * random.NormFloat64()), Note: fmt.Sprintf("disturbed: %d", i)})
	}
	return samples
}

// A reduced lane keeps the extremes, the order of time, the quantiles and the shape over time.
//
// Invariant page-size.
func TestReducedLane(t *testing.T) {
	const n, limit = 100_000, 1000
	samples := noisySamples(n, false)
	for i := n / 2; i < n; i++ {
		samples[i].Value *= 2 // a step in the middle
	}
	samples[77_777].Value = 100
	samples[12_345].Value = 0.001
	selection := drawnSamples(samples, limit)
	if len(selection) > limit || len(selection) < limit/2 {
		t.Fatalf("%d points are drawn, want at most %d and not far fewer", len(selection), limit)
	}
	for _, i := range []int{77_777, 12_345} {
		if !slices.Contains(selection, samples[i]) {
			t.Errorf("the extreme value %v of block %d is lost", samples[i].Value, i)
		}
	}
	if !slices.IsSortedFunc(selection, func(a, b document.Sample) int { return int(a.Order - b.Order) }) {
		t.Error("the points are not in the order of time")
	}
	for _, half := range [][2]int{{0, n / 2}, {n / 2, n}} {
		population, sample := valuesIn(samples, half), valuesIn(selection, half)
		for _, q := range []float64{0.25, 0.5, 0.75} {
			want, got := population[int(q*float64(len(population)))], sample[int(q*float64(len(sample)))]
			if math.Abs(got/want-1) > 0.05 {
				t.Errorf("in blocks %v the quantile %v of the drawn points is %.3f, and %.3f of all points", half, q, got, want)
			}
		}
	}
	if got := drawnSamples(samples[:limit], limit); len(got) != limit {
		t.Errorf("a lane with room for all of its points draws %d of %d", len(got), limit)
	}
}

// A reduced lane has the deciles of all samples for the views of the page.
func TestQuantilesOfReducedLane(t *testing.T) {
	const n = 2001
	var samples []document.Sample
	for i := range n {
		samples = append(samples, document.Sample{Value: float64((i * 1000) % n), Order: int32(i)})
	}
	samples[7].Value = math.NaN()
	var data sampleData
	for limit, want := range map[int]int{n: 0, 100: n - 1} {
		data.add(&document.Lane{Samples: &document.Samples{Values: samples}}, drawnSamples(samples, limit), "", 0, 0)
		lane := data.Lanes[len(data.Lanes)-1]
		if lane.Total != want || len(lane.Quantiles) != min(want, steps+1) {
			t.Errorf("limit %d: %d values and %d quantiles", limit, lane.Total, len(lane.Quantiles))
		}
		for i, v := range lane.Quantiles {
			if exact := float64(i) / steps * (n - 1); math.Abs(v-exact) > 1.5 {
				t.Errorf("quantile %d is %v, want %v", i, v, exact)
			}
		}
	}
}

// valuesIn are the values of a range of blocks, sorted.
func valuesIn(samples []document.Sample, blocks [2]int) []float64 {
	var values []float64
	for _, s := range samples {
		if blocks[0] <= int(s.Order) && int(s.Order) < blocks[1] {
			values = append(values, s.Value)
		}
	}
	slices.Sort(values)
	return values
}

// A reduced curve keeps the peaks of its medians, and the extremes of all values as faint dots.
//
// Invariant page-size.
func TestReducedCurve(t *testing.T) {
	const places = 50_000
	curve := curveOf(places, 1, 0.9, 1, 1.1)
	curve.Values[31_000], curve.Values[40_000] = 7, 0.2
	curve.Spread[20_000] = []float64{0.1, 1, 30}
	selection := drawnPlaces(curve.Values, func(i int) float64 { return float64(i) / places }, 400)
	if len(selection) > 400 || !slices.IsSorted(selection) || selection[0] != 0 || selection[len(selection)-1] != places-1 {
		t.Errorf("%d places are drawn, from %d to %d", len(selection), selection[0], selection[len(selection)-1])
	}
	for _, place := range []int{31_000, 40_000} {
		if !slices.Contains(selection, place) {
			t.Errorf("the peak at place %d is lost", place)
		}
	}
	dots := faint(curve.Spread, false, 400)
	if len(dots) > 400 {
		t.Errorf("%d faint dots", len(dots))
	}
	for _, v := range []float64{0.1, 30} {
		if !slices.Contains(dots, single{20_000, v}) {
			t.Errorf("the extreme value %v is lost", v)
		}
	}
}
