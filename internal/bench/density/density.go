// Package density is the suite of the memory that containers take, and of the number of containers that a host holds.
//
// Two independent figures describe the memory of a container. The proportional set size (PSS) belongs to the processes of the target, so it
// can be divided by component, but it lacks the kernel's memory for them. The fall of the host's MemAvailable includes all memory, but
// also the memory of other programs. The suite records both, and the memory that explains their difference.
//
// All readings follow a step and none lies in a timed region.
package density

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{memory(), withWorkload(), most(), churn()}
}

// largest bounds the number of containers of one trial, like scalability.runtime.
const largest = 10_000

// containersParam is the parameter for the number of containers.
func containersParam(quick, paper string) bench.Param {
	return bench.Param{
		Name: "containers", Help: "number of containers that run at the same time", Quick: quick, Paper: paper, Check: bench.IntRange(2, largest),
	}
}

// reading is the memory of the target and of the host at one time.
type reading struct {
	containers  int
	census      monitor.Census
	host        bench.HostMemory
	noCensus    error // the reason why the census is unknown
	noAvailable error // the reason why MemAvailable is unknown
}

// read reads the memory. Only one of its two sources may be unknown.
func read(t bench.Trial) (r reading, err error) {
	if r.census, err = t.Cost.Census(); err != nil {
		if !engine.Unsupported(err) {
			return reading{}, err
		}
		r.noCensus = err
	}
	if r.host, err = hostMemory(t); err != nil {
		if !engine.Unsupported(err) {
			return reading{}, err
		}
		r.noAvailable = err
	}
	if r.noCensus != nil && r.noAvailable != nil {
		return reading{}, r.noCensus
	}
	return r, nil
}

// hostMemory reads the memory of the host, which includes MemAvailable.
func hostMemory(t bench.Trial) (bench.HostMemory, error) {
	host, err := t.Cost.Host()
	if err != nil {
		return nil, err
	}
	if _, ok := host["MemAvailable"]; !ok {
		return nil, &engine.UnsupportedError{What: "the available memory of the host", Reason: "the kernel is older than Linux 3.14"}
	}
	return host, nil
}

// pss is the memory of all processes.
func (r reading) pss() (sum monitor.Memory) {
	for _, m := range r.census.Memory {
		sum.PSS += m.PSS
		sum.Anonymous += m.Anonymous
		sum.File += m.File
		sum.Shared += m.Shared
	}
	return sum
}

// readings are the readings with 0, 1, 2, … containers. Of many containers not each has a reading: see due.
type readings []reading

// A reading takes a time in proportion to the number of containers. Of more than mostReadings containers, each of the first eachUntil has
// a reading, and then every so many, so that there are about mostReadings more.
const (
	mostReadings = 100
	eachUntil    = 50
)

// due reports whether a reading follows container i of n.
func due(i, n int) bool {
	return n <= mostReadings || i <= eachUntil || i%((n+mostReadings-1)/mostReadings) == 0 || i == n
}

// known reports whether each reading has a census, and whether each has MemAvailable.
func (series readings) known() (census, available bool) {
	census = !slices.ContainsFunc(series, func(r reading) bool { return r.noCensus != nil })
	available = !slices.ContainsFunc(series, func(r reading) bool { return r.noAvailable != nil })
	return census, available
}

// growth returns a quantity of each reading with containers, less its value without containers.
func (series readings) growth(quantity func(reading) int64) []float64 {
	var values []float64
	for _, r := range series[1:] {
		values = append(values, float64(quantity(r)-quantity(series[0])))
	}
	return values
}

// fit is the line through a quantity of the readings with containers. The first container also pays for the pages that all containers
// share, so the line does not begin at 0 containers.
func (series readings) fit(values []float64) stats.Line {
	var places []float64
	for _, r := range series[1:] {
		places = append(places, float64(r.containers))
	}
	return stats.CumulativeLine(places, values)
}

func (series readings) slope(values []float64) float64 { return series.fit(values).Slope }

// fall is the fall of MemAvailable since the reading without containers.
func (series readings) fall() []float64 {
	return series.growth(func(r reading) int64 { return -r.host["MemAvailable"] })
}

// cost is the fall of MemAvailable without the anonymous memory of other processes, which disturbs it most.
func (series readings) cost() []float64 {
	values := series.fall()
	for i, noise := range series.growth(ofOthers) {
		values[i] -= noise
	}
	return values
}

// ofOthers is the anonymous memory of processes that are not the target's.
func ofOthers(r reading) int64 { return r.host["AnonPages"] - r.pss().Anonymous }

// components lists the components with memory in some reading.
func (series readings) components() []monitor.Component {
	found := map[monitor.Component]bool{}
	for _, r := range series {
		for c := range maps.Keys(r.census.Memory) {
			found[c] = true
		}
	}
	return slices.DeleteFunc(monitor.Components(), func(c monitor.Component) bool { return !found[c] })
}

// kind is a kind of the host's memory that makes the cost differ from the PSS.
type kind struct {
	component, help string
	// field is the field of /proc/meminfo, empty for a kind of the PSS. On a kernel without the field the kind is unknown.
	field string
	// of is the amount in a reading. A larger amount makes the cost larger than the PSS. If it is nil, it is the field.
	of func(r reading) int64
}

// amount is the amount in a reading.
func (k kind) amount(r reading) int64 {
	if k.of == nil {
		return r.host[k.field]
	}
	return k.of(r)
}

// known reports whether the kernel reports the kind.
func (k kind) known(r reading) bool {
	_, ok := r.host[k.field]
	return ok || k.field == ""
}

// kinds are the kinds of memory in the difference. All other memory is "other".
func kinds() []kind {
	return []kind{
		{"slab", "kernel objects that cannot be reclaimed (SUnreclaim)", "SUnreclaim", nil},
		{"page tables", "page tables, also for virtual machines (PageTables, SecPageTables)", "PageTables", func(r reading) int64 {
			return r.host["PageTables"] + r.host["SecPageTables"]
		}},
		{"kernel stacks", "stacks of threads in the kernel (KernelStack)", "KernelStack", nil},
		{"per-CPU memory", "the kernel's memory for each CPU, mostly of cgroups (Percpu)", "Percpu", nil},
		{"tmpfs", "memory of tmpfs and shared memory that no process of the target maps (Shmem)", "Shmem", func(r reading) int64 {
			return r.host["Shmem"] - r.pss().Shared
		}},
		{"page cache", "pages of files in the PSS, which the kernel counts as available: negative", "", func(r reading) int64 {
			return -r.pss().File
		}},
	}
}

const other = "other"

// divided reports whether the kernel divides the PSS, so that the difference can be explained.
func (series readings) divided() bool {
	last := series[len(series)-1].pss()
	return last.Anonymous+last.File+last.Shared > 0
}

// explain calls add with each known kind's part of the difference between the cost and the PSS, each as estimated from its growth. The
// parts add up to the difference, because the estimate is linear.
func (series readings) explain(estimate func([]float64) float64, add func(component string, value float64)) {
	rest := estimate(series.cost()) - estimate(series.growth(func(r reading) int64 { return r.pss().PSS }))
	for _, k := range kinds() {
		if !k.known(series[0]) {
			continue
		}
		part := estimate(series.growth(k.amount))
		rest -= part
		add(k.component, part)
	}
	add(other, rest)
}

// restMetrics describe the parts of explain.
func restMetrics(prefix, group string) []result.Metric {
	var metrics []result.Metric
	add := func(component, help string) {
		metrics = append(metrics, result.Metric{
			Name: prefix + bench.Title(component), Unit: result.Bytes, Better: result.Lower, Optional: true, Consumed: true,
			Help: help, Group: group, Component: component,
		})
	}
	for _, k := range kinds() {
		add(k.component, k.help)
	}
	add(other, "the rest: reclaimable memory that the kernel counts as available only in part, and memory that /proc/meminfo does not list")
	return metrics
}

// componentMetrics describe a quantity of each component.
func componentMetrics(prefix, group, help string) []result.Metric {
	var metrics []result.Metric
	for _, c := range monitor.Components() {
		metrics = append(metrics, result.Metric{
			Name: prefix + bench.Title(string(c)), Unit: result.Bytes, Better: result.Lower, Optional: true, Consumed: true,
			Help: help + string(c), Group: group, Component: string(c),
		})
	}
	return metrics
}

// bytesOf is a metric of memory that only some targets or hosts have.
func bytesOf(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Bytes, Better: result.Lower, Optional: true, Consumed: true, Help: help}
}

// launcher starts one container and returns when it is ready.
type launcher func(ctx context.Context, t bench.Trial) (*bench.Running, error)

// idle starts a container of the probe that waits.
func idle(ctx context.Context, t bench.Trial) (*bench.Running, error) { return bench.Start(ctx, t) }

// crowd starts n containers one after the other, and reads the memory before the first and after those that are due.
func crowd(ctx context.Context, t bench.Trial, n int, launch launcher) (readings, error) {
	first, err := read(t)
	if err != nil {
		return nil, err
	}
	series := readings{first}
	var running []*bench.Running
	for i := range n {
		c, err := launch(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("container %d of %d: %w", i+1, n, err)
		}
		running = append(running, c)
		if !due(i+1, n) {
			continue
		}
		r, err := read(t)
		if err != nil {
			return nil, fmt.Errorf("with %d of %d containers: %w", i+1, n, err)
		}
		r.containers = i + 1
		series = append(series, r)
	}
	return series, alive(ctx, t, running)
}

// alive returns an error if a container has stopped: the readings would lack its memory.
func alive(ctx context.Context, t bench.Trial, running []*bench.Running) error {
	for i, c := range running {
		var state engine.State
		_, err := t.Time(ctx, "state", func(ctx context.Context) (err error) {
			state, err = c.State(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if state != engine.Running {
			return fmt.Errorf("container %d of %d is %s, although nothing has stopped it: its program failed, or the kernel killed it for lack of memory", i+1, len(running), state)
		}
	}
	return nil
}
