// Package own makes benchmarks of programs of the user's own, which a plan describes.
package own

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Workload is a program of the user's own and what its output tells.
type Workload struct {
	Name, Summary string
	// Image is one of ours, or the path of an image of the user's.
	Image bench.Image
	Args  []string
	Env   map[string]string
	// Writable lets the program write to its root file system.
	Writable bool
	// Network is one of Networks, or empty for the loopback interface alone.
	Network string
	Metrics []Metric
}

// Networks are those that a workload can have.
func Networks() []string { return []string{hostNetwork, bridge} }

const (
	hostNetwork = "host"
	bridge      = "bridge" // one of the container's own, by which the host is reached
)

// Metric is a value that the program's output tells.
type Metric struct {
	Name string
	// Unit is one of Units, and Better one of Directions.
	Unit, Better string
	// Regex or JSON say where the value stands; the other is empty. Scale is what it is multiplied by to be in Unit.
	Regex, JSON string
	Scale       float64
}

// Units are those that a metric can have.
func Units() []string {
	return spelled(result.Seconds, result.Bytes, result.BytesPerSecond, result.BitsPerSecond, result.PerSecond, result.FlopPerSecond, result.Ratio, result.Score)
}

// Directions tell which values of a metric are the better ones.
func Directions() []string { return spelled(result.Lower, result.Higher) }

func spelled[T ~string](words ...T) []string {
	var texts []string
	for _, w := range words {
		texts = append(texts, string(w))
	}
	return texts
}

// Reading gives the reader of the metric's value.
func (m Metric) Reading() (workload.Reading, error) {
	if m.JSON != "" {
		return workload.JSON(m.Name, m.JSON, m.Scale)
	}
	return workload.Regex(m.Name, m.Regex, m.Scale)
}

// help says of the metric where it comes from.
func (m Metric) help() string {
	how, where := "by the expression", m.Regex
	if m.JSON != "" {
		how, where = "at the JSON path", m.JSON
	}
	return fmt.Sprintf("read from the program's output %s %s", how, where)
}

// Benchmark makes the benchmark. The error says of the first metric with an unusable expression or path what is wrong.
func Benchmark(w Workload) (bench.Benchmark, error) {
	var readings []workload.Reading
	var metrics []result.Metric
	for _, m := range w.Metrics {
		reading, err := m.Reading()
		if err != nil {
			return bench.Benchmark{}, fmt.Errorf("%s of %s: %w", m.Name, w.Name, err)
		}
		readings = append(readings, reading)
		metrics = append(metrics, result.Metric{Name: m.Name, Unit: result.Unit(m.Unit), Better: result.Direction(m.Better), Help: m.help()})
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		env = append(env, name+"="+w.Env[name])
	}
	var needs []engine.Capability
	if w.Writable {
		needs = append(needs, engine.CanWrite)
	}
	network := engine.NoNetwork
	switch w.Network {
	case hostNetwork:
		network, needs = engine.HostNet, append(needs, engine.NetworkHost)
	case bridge:
		network, needs = engine.Bridged, append(needs, engine.NetworkBridge)
	}
	program := workload.Own(w.Args, env, readings...)
	summary := w.Summary
	if summary == "" {
		summary = strings.Join(w.Args, " ")
	}
	return bench.Benchmark{
		Name: w.Name, Summary: summary, Source: "the plan", Metrics: slices.Concat(metrics, bench.CostMetrics()), Image: w.Image, Needs: needs,
		Run: func(ctx context.Context, t bench.Trial) error {
			spec := bench.SpecOf(t, program)
			spec.Writable, spec.Network = w.Writable, network
			values, err := bench.Measure(ctx, t, spec, program)
			if err != nil {
				return err
			}
			if err := bench.RecordAll(t, values, metrics); err != nil {
				return err
			}
			return bench.RecordCost(t)
		},
	}, nil
}
