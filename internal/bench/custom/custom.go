// Package custom makes benchmarks from the custom workloads of a plan: programs of the user, with a description of the
// values in their output.
package custom

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/readings"
)

// Workload is a program of the user, and the metrics in its output. The tags are the keys of a plan.
type Workload struct {
	Name    string `yaml:"name"`
	Summary string `yaml:"summary,omitempty"`
	// Image is a built-in image, or the path of an image of the user.
	Image bench.Image       `yaml:"image"`
	Args  []string          `yaml:"argv"`
	Env   map[string]string `yaml:"env,omitempty"`
	// FromEnv names variables with values from the environment of Touchstone. Secrets has these values, which no plan stores.
	FromEnv []string          `yaml:"from-env,omitempty"`
	Secrets map[string]string `yaml:"-"`
	// Writable allows the program to write to its root file system.
	Writable bool `yaml:"writable,omitempty"`
	// Network is one of Networks, or empty for the loopback interface alone.
	Network string   `yaml:"network,omitempty"`
	Metrics []Metric `yaml:"parse"`
}

// Networks lists the values of Workload.Network.
func Networks() []string { return []string{hostNetwork, bridge} }

const (
	hostNetwork = "host"
	bridge      = "bridge" // a network namespace of the container with access to the host
)

// Metric is a value in the program's output.
type Metric struct {
	Name string `yaml:"metric"`
	// Regex or JSON locates the value; the other is empty.
	Regex string `yaml:"regex,omitempty"`
	JSON  string `yaml:"json,omitempty"`
	// Unit is one of Units, and Better one of Directions.
	Unit   string `yaml:"unit"`
	Better string `yaml:"better"`
	// Scale converts the value to Unit.
	Scale Scale `yaml:"scale,omitempty"`
}

// Scale is the factor from values to the unit of a metric; 0 is the factor 1. With Auto, one of Autos, the program prints a unit with each
// value.
type Scale struct {
	Factor float64
	Auto   string
}

// The values of Scale.Auto. With binary prefixes KB, MB, … are powers of 1024, as iperf and wrk print them.
const (
	auto       = "auto"
	autoBinary = "auto-binary"
)

// Autos lists the values of Scale.Auto.
func Autos() []string { return []string{auto, autoBinary} }

// AutoUnits lists the units of metrics that may have an Auto scale.
func AutoUnits() []string { return readings.AutoUnits() }

// Multiple returns the unit of a metric for a word that programs print as a unit, and the scale in the spelling of a plan; empty for 1.
func Multiple(word string) (unit, scale string, ok bool) {
	unit, factor, ok := readings.Multiple(word)
	if ok && factor != 1 {
		scale = formatFactor(factor)
	}
	return unit, scale, ok
}

// formatFactor spells powers of ten by their exponents.
func formatFactor(factor float64) string {
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(factor, 'e', -1, 64), "e")
	if power, err := strconv.Atoi(exponent); err == nil && (power > 2 || power < -2) && len(digits) == 1 {
		return digits + "e" + strconv.Itoa(power)
	}
	return strconv.FormatFloat(factor, 'f', -1, 64)
}

// Units lists the units of metrics.
func Units() []string { return spelled(result.Units()...) }

// Directions lists the values of Metric.Better.
func Directions() []string { return spelled(result.Lower, result.Higher) }

func spelled[T ~string](words ...T) []string {
	var texts []string
	for _, w := range words {
		texts = append(texts, string(w))
	}
	return texts
}

// Reading returns the reader of the metric's value.
func (m Metric) Reading() (readings.Reading, error) {
	scale := readings.Factor(cmp.Or(m.Scale.Factor, 1))
	if m.Scale.Auto != "" {
		var err error
		if scale, err = readings.Auto(m.Unit, m.Scale.Auto == autoBinary); err != nil {
			return readings.Reading{}, err
		}
	}
	if m.JSON != "" {
		return readings.JSON(m.Name, m.JSON, scale)
	}
	return readings.Regex(m.Name, m.Regex, scale)
}

// help describes the source of the metric.
func (m Metric) help() string {
	method, location := "by the expression", m.Regex
	if m.JSON != "" {
		method, location = "at the JSON path", m.JSON
	}
	if m.Scale.Auto != "" {
		location += ", with its unit"
	}
	return fmt.Sprintf("read from the program's output %s %s", method, location)
}

// Benchmark makes the benchmark. The error describes the first metric with an unusable expression or path.
func Benchmark(w Workload) (bench.Benchmark, error) {
	var rules []readings.Reading
	var metrics []result.Metric
	for _, m := range w.Metrics {
		reading, err := m.Reading()
		if err != nil {
			return bench.Benchmark{}, fmt.Errorf("%s of %s: %w", m.Name, w.Name, err)
		}
		rules = append(rules, reading)
		metrics = append(metrics, result.Metric{Name: m.Name, Unit: result.Unit(m.Unit), Better: result.Direction(m.Better), Help: m.help()})
	}
	var env []string
	for _, variables := range []map[string]string{w.Env, w.Secrets} {
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			env = append(env, name+"="+variables[name])
		}
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
	program := readings.Program(w.Args, env, rules...)
	summary := w.Summary
	if summary == "" {
		summary = strings.Join(w.Args, " ")
	}
	return bench.Benchmark{
		Name: w.Name, Summary: summary, Source: "the plan", Metrics: slices.Concat(metrics, bench.CostMetrics()), Image: w.Image,
		Needs: bench.Always(needs...),
		Run: func(ctx context.Context, t bench.Trial) error {
			values, err := bench.Measure(ctx, t, bench.InContainer, program, func(spec *engine.Spec) {
				spec.Writable, spec.Network = w.Writable, network
			})
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
