package html

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// mostBytes is the largest page of a run of 10⁶ samples.
const mostBytes = 5_000_000

// pageOf is the page of the only run.
func pageOf(t testing.TB, run result.Run) string {
	t.Helper()
	r := report.New([]result.Run{run}, analysis.Options{})
	var page strings.Builder
	if err := Write(&page, r); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// The page has Touchstone's own cost: also of a request to each daemon, in the order of their names.
func TestOwnCost(t *testing.T) {
	run := reporttest.Small()
	run.Overhead = result.Overhead{
		EmptyRegion: 90 * time.Nanosecond, Exec: 700 * time.Microsecond,
		Requests: map[string]time.Duration{"docker": 116 * time.Microsecond, "containerd": 122 * time.Microsecond},
	}
	want := "90.0 ns for an empty timed region, 700 µs to start and await a bare process, 122 µs for a request to containerd that does nothing, " +
		"116 µs for a request to docker that does nothing, "
	if page := pageOf(t, run); !strings.Contains(page, want) {
		_, text, _ := strings.Cut(page, "own cost: ")
		t.Errorf("the page has the own cost %.300q, want %q", text, want)
	}
}

// Invariant page-size: The page of 10⁶ samples is below 5 MB, and no plot loses an extreme value.
func TestPageOfMillionSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("the reports of 10⁶ samples take seconds")
	}
	for _, l := range reporttest.Millions() {
		page := pageOf(t, l.Run())
		if len(page) > mostBytes {
			t.Errorf("the page of shape %s has %d bytes, want at most %d", l.Name, len(page), mostBytes)
		}
	}
}

// metricOf is a metric of many targets with the same points and the same curve.
func metricOf(lanes int, points []analysis.Point, curve []analysis.Place) analysis.Metric {
	m := analysis.Metric{Metric: result.Metric{Name: "Value", Unit: result.Seconds, Better: result.Lower, Series: curve != nil}}
	summary := &stats.Summary{N: len(points), Median: 1, Min: 0.5, Max: 2}
	for i := range lanes {
		m.Rows = append(m.Rows, analysis.Row{Target: fmt.Sprint("oci/", i), Cells: []analysis.Cell{{Summary: summary, Points: points, Curve: curve}}})
	}
	return m
}

// The size of the plots has a limit for every shape of a run of 10⁶ values, with and without disturbed trials.
//
// Invariant page-size.
func TestRoomOfAllShapes(t *testing.T) {
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
			points := noisyPoints(tt.points, disturbed)
			curve := make([]analysis.Place, tt.places)
			values := slices.Repeat([]float64{1, 2}, (tt.values+1)/2)[:tt.values]
			for i := range curve {
				curve[i] = analysis.Place{Median: 1, Values: values}
			}
			var metrics []analysis.Metric
			for left := tt.lanes; left > 0; left -= 20 {
				metrics = append(metrics, metricOf(min(left, 20), points, curve))
			}
			room := newRoom(metrics)
			bytes := 0
			for i := range metrics {
				s := newStrip(&metrics[i], room.dots)
				for _, l := range s.Lanes {
					bytes += len(l.Dots) + 55*len(l.Rings)
				}
				if c := newCurve(&metrics[i], "place", room); c != nil {
					for _, l := range c.Lines {
						bytes += len(l.Path) + len(l.Marks) + len(l.Dots)
					}
				}
			}
			if bytes > 4_000_000 {
				t.Errorf("%+v, disturbed %v: the plots have %d bytes", tt, disturbed, bytes)
			}
		}
	}
}

func noisyPoints(n int, disturbed bool) []analysis.Point {
	random := rand.New(rand.NewPCG(1, 2))
	var points []analysis.Point
	for i := range n {
		trial := &result.Trial{Block: i}
		if disturbed {
			trial.Host.Marks = []string{"disturbed"}
		}
		points = append(points, analysis.Point{Trial: trial, Value: math.Exp(0.1 * random.NormFloat64())})
	}
	return points
}

// A reduced lane keeps the extremes, the order of time, the quantiles and the shape over time.
//
// Invariant page-size.
func TestReducedLane(t *testing.T) {
	const n, limit = 100_000, 1000
	points := noisyPoints(n, false)
	for i := n / 2; i < n; i++ {
		points[i].Value *= 2 // a step in the middle
	}
	points[77_777].Value = 100
	points[12_345].Value = 0.001
	selection := drawnDots(points, limit)
	if len(selection) > limit || len(selection) < limit/2 {
		t.Fatalf("%d points are drawn, want at most %d and not far fewer", len(selection), limit)
	}
	for _, i := range []int{77_777, 12_345} {
		if !slices.Contains(selection, points[i]) {
			t.Errorf("the extreme value %v of block %d is lost", points[i].Value, i)
		}
	}
	if !slices.IsSortedFunc(selection, func(a, b analysis.Point) int { return a.Block - b.Block }) {
		t.Error("the points are not in the order of time")
	}
	for _, half := range [][2]int{{0, n / 2}, {n / 2, n}} {
		population, sample := valuesIn(points, half), valuesIn(selection, half)
		for _, q := range []float64{0.25, 0.5, 0.75} {
			want, got := population[int(q*float64(len(population)))], sample[int(q*float64(len(sample)))]
			if math.Abs(got/want-1) > 0.05 {
				t.Errorf("in blocks %v the quantile %v of the drawn points is %.3f, and %.3f of all points", half, q, got, want)
			}
		}
	}
	if got := drawnDots(points[:limit], limit); len(got) != limit {
		t.Errorf("a lane with room for all of its points draws %d of %d", len(got), limit)
	}
}

// valuesIn are the values of a range of blocks, sorted.
func valuesIn(points []analysis.Point, blocks [2]int) []float64 {
	var values []float64
	for _, p := range points {
		if blocks[0] <= p.Block && p.Block < blocks[1] {
			values = append(values, p.Value)
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
	curve := make([]analysis.Place, places)
	for i := range curve {
		curve[i] = analysis.Place{Median: 1, Values: []float64{0.9, 1, 1.1}}
	}
	curve[31_000].Median, curve[40_000].Median = 7, 0.2
	curve[20_000].Values = []float64{0.1, 1, 30}
	selection := drawnPlaces(curve, 400)
	if len(selection) > 400 || !slices.IsSorted(selection) || selection[0] != 0 || selection[len(selection)-1] != places-1 {
		t.Errorf("%d places are drawn, from %d to %d", len(selection), selection[0], selection[len(selection)-1])
	}
	for _, place := range []int{31_000, 40_000} {
		if !slices.Contains(selection, place) {
			t.Errorf("the peak at place %d is lost", place)
		}
	}
	dots := faint(curve, false, 400)
	if len(dots) > 400 {
		t.Errorf("%d faint dots", len(dots))
	}
	for _, v := range []float64{0.1, 30} {
		if !slices.Contains(dots, placeValue{20_000, v}) {
			t.Errorf("the extreme value %v is lost", v)
		}
	}
}

// The page states what its plots leave out, and only then.
func TestReducedPlotsSaySo(t *testing.T) {
	points := regexp.MustCompile(`; shown: \d+ of 120000 points, extremes kept</figcaption>`)
	page := pageOf(t, reporttest.Large{Name: "lanes", Targets: 3, Blocks: 40_000, Metrics: 1, Values: 1}.Run())
	if !points.MatchString(page) {
		t.Error("the page of 120 000 trials does not state the number of its points")
	}
	places := regexp.MustCompile(`medians over blocks, least and largest values faint.*; shown: \d+ of 6000 places, extremes kept</figcaption>`)
	series := pageOf(t, reporttest.Large{Name: "lines", Targets: 2, Blocks: 6, Metrics: 1, Values: 3000, Series: true}.Run())
	if !places.MatchString(series) {
		t.Error("the page of 3000 places does not state the number of its places")
	}
	for name, run := range map[string]result.Run{"sample": reporttest.Sample(), "under load": reporttest.UnderLoad()} {
		if page := pageOf(t, run); strings.Contains(page, "extremes kept") {
			t.Errorf("the page of %s leaves points out", name)
		}
	}
}

func BenchmarkMillion(b *testing.B) {
	for _, l := range reporttest.Millions() {
		run := l.Run()
		b.Run(l.Name, func(b *testing.B) {
			for b.Loop() {
				page := pageOf(b, run)
				b.ReportMetric(float64(len(page)), "page-bytes")
			}
		})
	}
}
