package web

import (
	"math"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
)

func TestAxisTicks(t *testing.T) {
	for name, c := range map[string]struct {
		lo, hi float64
		unit   result.Unit
		want   string
		log    bool
	}{
		"linear from zero":  {0.002, 0.012, result.Seconds, "0 5 ms 10 ms", false},
		"linear, narrow":    {0.0205, 0.0213, result.Seconds, "20.6 ms 20.8 ms 21 ms 21.2 ms", false},
		"decades":           {60e-9, 60e-6, result.Seconds, "100 ns 300 ns 1 µs 3 µs 10 µs 30 µs", true},
		"many decades":      {1e-9, 1e3, result.Seconds, "1 ns 1 µs 1 ms 1 s 1000 s", true},
		"within a decade":   {0.9e-3, 12e-3, result.Seconds, "1 ms 2 ms 5 ms 10 ms", true},
		"bytes":             {3 << 20, 60 << 20, result.Bytes, "5 MiB 10 MiB 20 MiB 50 MiB", true},
		"bytes over scales": {3 << 10, 60 << 20, result.Bytes, "0.01 MiB 0.1 MiB 1 MiB 10 MiB", true},
		"rates":             {3.4e5, 1.6e6, result.PerSecond, "0 0.5 M/s 1 M/s 1.5 M/s", false},
		"both signs":        {-3, 3, result.Score, "-2 0 2", false},
		"equal":             {0.5, 0.5, result.Seconds, "460 ms 480 ms 500 ms 520 ms 540 ms", false},
	} {
		t.Run(name, func(t *testing.T) {
			a, ok := NewAxis([]float64{c.hi, c.lo}, c.unit, 8, 312)
			if !ok {
				t.Fatal("there is no axis")
			}
			var labels []string
			for _, tick := range a.Ticks {
				labels = append(labels, tick.Label)
			}
			if got := strings.Join(labels, " "); got != c.want || a.Log != c.log {
				t.Errorf("ticks are %q (log %v), want %q (log %v)", got, a.Log, c.want, c.log)
			}
		})
	}
}

func TestAxisRefusesValuesWithoutASpan(t *testing.T) {
	for _, values := range [][]float64{nil, {math.NaN()}, {math.Inf(1), 1}, {-math.MaxFloat64, math.MaxFloat64}, {-math.MaxFloat64, 0}} {
		if _, ok := NewAxis(values, result.Seconds, 0, 100); ok {
			t.Errorf("there is an axis for %v", values)
		}
	}
}

func FuzzAxisStaysInside(f *testing.F) {
	f.Add(0.001, 0.1)
	f.Add(-1.0, 1.0)
	f.Add(0.0, 0.0)
	f.Add(1e-300, 1e300)
	f.Fuzz(func(t *testing.T, lo, hi float64) {
		for _, unit := range []result.Unit{result.Seconds, result.Bytes, result.Score} {
			a, ok := NewAxis([]float64{lo, hi}, unit, 8, 312)
			if !ok {
				continue
			}
			for _, v := range []float64{lo, hi} {
				if place := a.At(v); !(8 <= place && place <= 312) {
					t.Errorf("on the axis of %v and %v, %v is at %v", lo, hi, v, place)
				}
			}
			if len(a.Ticks) > 3*mostTicks {
				t.Errorf("the axis of %v and %v has %d ticks", lo, hi, len(a.Ticks))
			}
		}
	})
}
