package reporttest

import (
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Hostile is text that no format must interpret.
const Hostile = "<script>|*_`@team https://example.org\x1b[2J]]>\nnext"

// Sides is a made comparison of three runs with three others. On side B one of the two targets is slower by 10 %, and the kernel is another one. Only side A has values of a
// second benchmark, because its trials fail on side B with hostile text. The gates have each answer.
func Sides() *sides.Comparison {
	var gates []sides.Gate
	for _, text := range []string{"slower:3%", ":Destroy=slower:30%", "scalability=more:5%"} {
		g, err := sides.ParseGate(text)
		if err != nil {
			panic(err)
		}
		gates = append(gates, g)
	}
	return compared(side("before", "6.1.0", 1, 1.01, 0.99), side("after", "6.1.9", 1.1, 1.11, 1.09), sides.Options{Allow: []sides.Class{sides.ClassHost}, Gates: gates})
}

// SingleSides is a made comparison of one run with one run, without gates.
func SingleSides() *sides.Comparison {
	return compared(side("before", "6.1.0", 1), side("after", "6.1.0", 1.1), sides.Options{})
}

func compared(a, b sides.Side, o sides.Options) *sides.Comparison {
	for i := range b.Runs {
		fail(&b.Runs[i], func(t *result.Trial) bool { return t.Benchmark == "a.b.c" })
		for n := range b.Runs[i].Trials {
			if t := &b.Runs[i].Trials[n]; t.Benchmark == "a.b.c" {
				t.Reason = Hostile
			}
		}
	}
	c, err := sides.New(a, b, o)
	if err != nil {
		panic(err)
	}
	return c
}

// side is a run for each level, with the times of oci/runc multiplied by it. A level far above 1 leaves native as it is.
func side(name, kernel string, levels ...float64) sides.Side {
	s := sides.Side{Name: name}
	for i, level := range levels {
		r := Small()
		slow(&r, level)
		if level > 1.05 {
			change(&r, func(t *result.Trial) bool { return t.Target == "native" }, func(t *result.Trial) {
				for n := range t.Samples {
					t.Samples[n].Value /= 1.1
				}
			})
		}
		r.ID, r.Name, r.Host.Kernel = fmt.Sprint(name, i), Hostile, kernel
		last := r.Trials[len(r.Trials)-1]
		r.Bench = append(slices.Clone(r.Bench), result.Benchmark{Name: "a.b.c", Metrics: []result.Metric{{Name: "M", Unit: result.Seconds, Better: result.Lower}}})
		last.Seq, last.Benchmark, last.Samples = last.Seq+1, "a.b.c", []result.Sample{{Metric: "M", Value: 1}}
		r.Trials = append(r.Trials, last)
		s.Runs = append(s.Runs, r)
	}
	return s
}
