package limits

import (
	"math"
	"testing"
	"time"
)

// marked returns marks at times in seconds, with the CPU time in seconds that was used since the mark before, under a limit
// of half a CPU.
func marked(points ...[2]float64) []mark {
	marks := []mark{{limit: 0.5, used: cpuCount{known: true, exact: true}}}
	for _, p := range points {
		last := marks[len(marks)-1]
		last.at = time.Duration(p[0] * float64(time.Second))
		last.used.cpu += time.Duration(p[1] * float64(time.Second))
		marks = append(marks, last)
	}
	return marks
}

// A late report of a second must not cause a short interval, in which one quota is a large part.
func TestIntervals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		marks []mark
		want  []float64 // lengths in seconds
		most  float64   // 0 if it is unknown
	}{
		{"a second each", marked([2]float64{1, 0.5}, [2]float64{2, 0.5}, [2]float64{3, 0.6}), []float64{1, 1, 1}, 1.2},
		{"one is late", marked([2]float64{1, 0.5}, [2]float64{2.9, 0.95}, [2]float64{3, 0.1}, [2]float64{4, 0.5}), []float64{1, 1.9, 1.1}, 0.6 / 0.55},
		{"the last is late", marked([2]float64{1, 0.5}, [2]float64{2.9, 0.95}, [2]float64{3, 0.1}), []float64{1, 1.9}, 1},
		{"the first output is late", marked([2]float64{0.8, 0.5}, [2]float64{1.8, 0.4}), []float64{1.8}, 1},
		{"none", marked(), nil, 0},
		{"a counter that does not change", marked([2]float64{1, 0}, [2]float64{2, 0}), []float64{1, 1}, 0},
	} {
		p := progress{marks: tt.marks}
		spans := p.intervals()
		var got []float64
		for _, s := range spans {
			got = append(got, s.seconds)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: intervals of %v seconds, want %v", tt.name, got, tt.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-tt.want[i]) > 1e-9 {
				t.Errorf("%s: intervals of %v seconds, want %v", tt.name, got, tt.want)
			}
		}
		if got, ok := mostUsed(spans); ok != (tt.most > 0) || math.Abs(got-tt.most) > 1e-9 {
			t.Errorf("%s: the highest use is %v, %v, want %v", tt.name, got, ok, tt.most)
		}
	}
}

// A value that is unknown at a mark is unknown in both intervals beside it. A throttling counter that falls is unknown.
func TestIntervalsWithUnknownValues(t *testing.T) {
	marks := marked([2]float64{1, 0.5}, [2]float64{2, 0.5}, [2]float64{3, 0.5}, [2]float64{4, 0.5})
	for i := range marks {
		marks[i].throttled = throttling{periods: []int64{0, 10, 20, 15, 25}[i], known: true}
	}
	p := progress{marks: marks}
	for i, isKnown := range []bool{true, true, false, true} {
		if got := p.intervals()[i]; got.throttled.known != isKnown || !got.known {
			t.Errorf("interval %d is %+v", i, got)
		}
	}
	marks[2].used.known = false
	if spans := p.intervals(); spans[1].known || spans[2].known || !spans[3].known {
		t.Errorf("intervals beside an unknown mark: %+v", spans)
	}
}

// A rate that is not a number is left out of the fit, with its limit.
func TestResponseWithoutARate(t *testing.T) {
	limits, rates := []float64{0.2, 0.3, 0.35, 0.4}, []float64{200, 300, math.NaN(), 400}
	if got, err := limitResponse(limits, rates); err != nil || math.Abs(got-1) > 1e-9 {
		t.Errorf("limitResponse() = %v, %v; want 1", got, err)
	}
	if got, err := limitResponse(limits[:2], []float64{200, math.NaN()}); err == nil {
		t.Errorf("limitResponse() = %v with one rate; want an error", got)
	}
	if got, err := limitResponse(limits, []float64{200, 0, 350, 400}); err != nil || !math.IsNaN(got) {
		t.Errorf("limitResponse() = %v, %v with a second without an event; want no number", got, err)
	}
	if got, err := limitResponse(limits, make([]float64, 4)); err == nil {
		t.Errorf("limitResponse() = %v without an event; want an error", got)
	}
}
