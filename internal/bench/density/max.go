package density

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The modes of density.max.
const (
	extrapolate = "extrapolate"
	real        = "real"
)

func most() bench.Benchmark {
	containers := bench.Higher("Containers", result.Count, "number of idle containers until the host's available memory falls to the floor, or until its processes are used up")
	containers.Phrase, containers.Dimension, containers.Column = "fits on this host with a number of containers of", result.DimensionDensity, result.ColumnDensity
	metric := func(name, help string) result.Metric {
		m := bench.Higher(name, result.Count, help)
		m.Optional, m.DerivedFrom = true, containers.Name
		return m
	}
	return bench.Benchmark{
		Name:    "density.max",
		Summary: "number of idle containers that fit on the host above a floor of free memory",
		Source:  "wang section 5.7 (cost of isolation in density), nishimura figure 5",
		Metrics: []result.Metric{
			containers,
			metric("ContainersLow", "lower end of the 95 % interval of the extrapolation in one trial"),
			metric("ContainersHigh", "upper end of the 95 % interval of the extrapolation in one trial"),
		},
		Components: true,
		Params: []bench.Param{
			{Name: "floor", Help: "the floor of available memory, in per cent of the host's memory", Quick: "10", Paper: "10", Check: bench.IntRange(6, 90)},
			{Name: "mode", Help: "extrapolate: from the cost of a few containers; real: start containers until the floor, which takes long and loads the host", Quick: extrapolate, Paper: extrapolate, Check: bench.OneOf(extrapolate, real)},
			containersParam("8", "20"),
		},
		Needs: func(p bench.Params) bench.Needs {
			if p.Param("mode") == real {
				return bench.Needs{} // Run stops at the floor
			}
			return bench.Needs{Containers: p.Int("containers")}
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			if t.Param("mode") == real {
				return fill(ctx, t)
			}
			return predict(ctx, t)
		},
	}
}

// limit is an amount of a resource and the number of containers that use it up.
type limit struct {
	resource   string
	containers float64
}

// predict extrapolates from some containers.
func predict(ctx context.Context, t bench.Trial) error {
	series, err := crowd(ctx, t, t.Int("containers"), idle)
	if err != nil {
		return err
	}
	return recordMost(t, series)
}

func recordMost(t bench.Trial, series readings) error {
	census, available := series.known()
	if !available {
		return series[0].noAvailable
	}
	spare := series[0].spare(t)
	if spare <= 0 {
		return fmt.Errorf("the host has less available memory than the floor of %s %%: free memory, or set a lower floor", t.Param("floor"))
	}
	line, source := series.fit(series.fall()), "the fall of MemAvailable"
	if census && series.divided() {
		line, source = series.fit(series.cost()), "the fall of MemAvailable without the anonymous memory of other processes"
	}
	if census && (line.CI == nil || line.CI.Lo <= 0) {
		// Other programs have changed the available memory by as much as the containers.
		line, source = series.fit(series.growth(func(r reading) int64 { return r.pss().PSS })), "the PSS, which is less than the whole cost: other programs disturb MemAvailable"
	}
	if !(line.Slope > 0) {
		return errors.New("the memory of a container is lost in the noise of the host: set more containers, or stop other programs")
	}
	t.Condition("extrapolated from", source)
	limits := []limit{{"memory", (spare - line.Intercept) / line.Slope}}
	if tasks, err := t.Cost.Tasks(); err == nil && census {
		if slope := series.slope(series.growth(func(r reading) int64 { return int64(r.census.Tasks) })); slope > 0 {
			limits = append(limits, limit{"processes and threads", float64(series[len(series)-1].containers) + float64(tasks)/slope})
		}
	}
	bound := limits[0]
	for _, l := range limits[1:] {
		if l.containers < bound.containers {
			bound = l
		}
	}
	t.Condition("stopped by", bound.resource)
	t.Record("Containers", math.Floor(bound.containers))
	if ci := line.CI; ci != nil && ci.Lo > 0 && bound == limits[0] {
		t.Record("ContainersLow", math.Floor(series.through(line, ci.Hi, spare)))
		t.Record("ContainersHigh", math.Floor(series.through(line, ci.Lo, spare)))
	}
	return nil
}

// through is the number of containers for an amount if one more costs slope, on a line through the middle of the fitted values.
func (series readings) through(l stats.Line, slope, amount float64) float64 {
	middle := float64(series[1].containers+series[len(series)-1].containers) / 2
	return middle + (amount-l.Intercept-l.Slope*middle)/slope
}

// spare is the memory above the floor.
func (r reading) spare(t bench.Trial) float64 {
	return float64(r.host["MemAvailable"]) - float64(r.host["MemTotal"])*float64(t.Int("floor"))/100
}

// fill starts containers until the floor.
func fill(ctx context.Context, t bench.Trial) error {
	var running []*bench.Running
	reason := "the largest number of containers that Touchstone starts, " + strconv.Itoa(largest)
	for len(running) < largest {
		host, err := hostMemory(t)
		if err != nil {
			return err
		}
		if (reading{host: host}).spare(t) <= 0 {
			reason = "memory"
			break
		}
		if tasks, err := t.Cost.Tasks(); err == nil && tasks < spareTasks {
			reason = "processes and threads"
			break
		}
		c, err := idle(ctx, t)
		if err != nil && (len(running) == 0 || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			reason = fmt.Sprintf("an error of container %d: %v", len(running)+1, err)
			break
		}
		running = append(running, c)
	}
	if len(running) == 0 {
		return fmt.Errorf("the host has less available memory than the floor of %s %%: free memory, or set a lower floor", t.Param("floor"))
	}
	if err := alive(ctx, t, running); err != nil {
		return err
	}
	t.Condition("stopped by", reason)
	t.Record("Containers", float64(len(running)))
	return nil
}

// spareTasks is the number of processes and threads that fill leaves to the host.
const spareTasks = 1000
