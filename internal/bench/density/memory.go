package density

import (
	"context"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The headings of the parts of a container's memory.
const (
	byComponent = "Memory of one more container by component"
	byKind      = "Memory of one more container outside its PSS"
)

// The names of metrics that other metrics refer to.
const (
	costEach = "MemoryPerContainer"
	pssEach  = "PSSPerContainer"
	fallEach = "AvailablePerContainer"
)

// tolerance is the difference between the two figures that needs an explanation.
const tolerance = 0.15

// marginals are the containers whose own cost is a metric.
var marginals = []struct {
	name, word string
	n          int
}{{"First", "first", 1}, {"Tenth", "tenth", 10}, {"Fiftieth", "fiftieth", 50}}

// memoryMetrics describe the memory of containers that run a program.
func memoryMetrics(phrase string) []result.Metric {
	cost := bytesOf(costEach, "memory of the host for one more container, kernel memory included: AvailablePerContainer without the anonymous memory of other processes")
	cost.Phrase, cost.Dimension, cost.Column = phrase, result.DimensionMemoryOverhead, result.ColumnMemory
	cost.Agreement = result.Agreement{With: pssEach, Tolerance: tolerance, Rest: byKind}
	slope := bytesOf(pssEach, "proportional set size of all processes of the target for one more container: the slope of a line over the number of containers, with the daemon's growth")
	slope.Phrase = "has processes with a proportional set size per container of"
	fall := bytesOf(fallEach, "fall of the host's MemAvailable for one more container: the slope of a line over the number of containers")
	metrics := []result.Metric{cost, slope, fall}
	for _, end := range []struct{ of, name, word string }{
		{costEach, "Low", "lower"}, {costEach, "High", "upper"}, {pssEach, "Low", "lower"}, {pssEach, "High", "upper"}, {fallEach, "Low", "lower"}, {fallEach, "High", "upper"},
	} {
		m := bytesOf(end.of+end.name, end.word+" end of the 95 % interval of "+end.of+" within one trial")
		m.DerivedFrom = end.of
		metrics = append(metrics, m)
	}
	for _, m := range marginals {
		metrics = append(metrics, bytesOf("PSSOf"+m.name, "growth of the PSS by the "+m.word+" container"))
	}
	series := func(name, origin, help string) result.Metric {
		m := bytesOf(name, help)
		m.Series, m.Growth, m.DerivedFrom = true, true, origin
		return m
	}
	return slices.Concat(metrics, []result.Metric{
		series("PSS", pssEach, "growth of the PSS since the trial had no container, by the number of containers"),
		series("Memory", costEach, "fall of MemAvailable since the trial had no container, without the anonymous memory of other processes, by the number of containers"),
		series("Available", fallEach, "fall of MemAvailable since the trial had no container, by the number of containers"),
	}, componentMetrics(pssEach, byComponent, "slope of the PSS of this component: "), restMetrics("RestPerContainer", byKind))
}

func memory() bench.Benchmark {
	return bench.Benchmark{
		Name:        "density.memory",
		Summary:     "memory of idle containers that start one after the other, by component, and the fall of the available memory",
		Source:      "wang section 5.7 and figure 18; sateri table 5.4",
		Metrics:     memoryMetrics("needs for one more idle container"),
		Place:       "number of containers",
		Components:  true,
		Params:      []bench.Param{containersParam("10", "50")},
		PaperLimits: engine.Resources{Memory: 200 << 20},
		Needs:       func(p bench.Params) bench.Needs { return bench.Needs{Containers: p.Int("containers")} },
		Run: func(ctx context.Context, t bench.Trial) error {
			return measure(ctx, t, idle)
		},
	}
}

// measure starts the containers and records their memory.
func measure(ctx context.Context, t bench.Trial, launch launcher) error {
	series, err := crowd(ctx, t, t.Int("containers"), launch)
	if err == nil {
		recordMemory(t, series)
	}
	return err
}

func recordMemory(t bench.Trial, series readings) {
	census, available := series.known()
	if census {
		pss := series.growth(func(r reading) int64 { return r.pss().PSS })
		recordLine(t, series, pssEach, "PSS", pss)
		for _, m := range marginals {
			if m.n <= len(pss) { // each of them has a reading
				base := 0.0
				if m.n > 1 {
					base = pss[m.n-2]
				}
				t.Record("PSSOf"+m.name, pss[m.n-1]-base)
			}
		}
		for _, c := range series.components() {
			t.Record(pssEach+bench.Title(string(c)), series.slope(series.growth(func(r reading) int64 { return r.census.Memory[c].PSS })))
		}
	}
	if available {
		recordLine(t, series, fallEach, "Available", series.fall())
	}
	if census && available && series.divided() {
		recordLine(t, series, costEach, "Memory", series.cost())
		series.explain(series.slope, func(component string, value float64) { t.Record("RestPerContainer"+bench.Title(component), value) })
	}
}

// recordLine records the line through a quantity, and its values for 1, 2, … containers up to the first one without a reading.
func recordLine(t bench.Trial, steps readings, metric, series string, values []float64) {
	for i, v := range values {
		if steps[i+1].containers == i+1 {
			t.Record(series, v)
		}
	}
	line := steps.fit(values)
	t.Record(metric, line.Slope)
	if line.CI != nil {
		t.Record(metric+"Low", line.CI.Lo)
		t.Record(metric+"High", line.CI.Hi)
	}
}
