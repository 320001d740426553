// Package bench defines the benchmark and the interfaces through which it measures. Each package below it holds one
// suite; package catalogue lists all benchmarks.
//
// A benchmark is data and one function. The function receives a [Trial]: a small core that every benchmark uses, and
// parts for images, the network, storage and cost that few benchmarks use. The parts are fields and not optional
// interfaces, so that a benchmark needs no type assertion and a test supplies only the parts that it uses.
//
// A benchmark never reads a clock: the trial times each call, and one timed region holds one engine call. A benchmark
// need not clean up: the runner removes everything that a trial leaves.
//
// A benchmark that cannot work on a target or host is skipped. There are two ways to say so. [Needs] declares the
// capabilities and the space that follow from the parameters; the runner checks them before the first trial, and
// [Core.Require] checks them within a trial. Everything else is an *engine.UnsupportedError, which any call may return
// and the benchmark passes on: the trial is then skipped with its reason.
package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmark is one measurement, named context.component.facet, or context.component in a suite without facets.
type Benchmark struct {
	Name string
	// Summary describes the measurement in one line.
	Summary string
	// Source is the paper, table or figure that defines the benchmark, or "peers" if other tools of the field define it.
	Source  string
	Metrics []result.Metric
	// Phases is set if a report shows the timed regions of the trials.
	Phases bool
	// Place labels the places of its series in plots.
	Place string
	// Statements are names of conditions that are results in words. A report shows them by target, before the metrics.
	Statements []string
	// Judged are names of conditions that are verdicts about the speed of a trial.
	Judged []string
	Params []Param
	// Waits are the media that the benchmark itself waits for. Pressure on them during a trial is not reported as a
	// disturbance of the host.
	Waits []Medium
	// Steps makes a sample of each step of the engine's calls that has the name of a metric: see Core.Time.
	Steps bool
	// Components enables the cost by component: see Cost.CPU.
	Components bool
	// Monitor enables samples of memory and CPU during each trial that the user has not requested. The runner records the metrics
	// of MonitorMetrics that the benchmark declares: see Monitored.
	Monitor bool
	// Traced is set if the trials run under a tracer: see Trial.Trace. The tracer makes each system call slower, so such a benchmark has no
	// metric that depends on the speed, and its trials have no phases.
	Traced bool
	// Functions is set if the tracer counts functions of the kernel in place of system calls: see Trace.Attach.
	Functions bool
	// Image is the image that holds the benchmark's programs.
	Image Image
	// Needs returns the requirements of the benchmark with the given parameters; nil if it has none. Targets and hosts
	// that do not meet them are skipped.
	Needs func(p Params) Needs
	// OwnLimits are the limits that Run sets on its containers. A plan's limits of these kinds do not apply.
	OwnLimits []Limit
	// PaperLimits are the limits of the containers in the paper. They apply with paper parameters.
	PaperLimits engine.Resources
	// Run executes one trial. After an error the trial is failed, or skipped if engine.Unsupported reports true for the
	// error. No sample of such a trial is kept.
	Run func(ctx context.Context, t Trial) error
}

// Seconds is a metric of a time.
func Seconds(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower, Help: help}
}

// Higher is a metric whose higher values are better.
func Higher(name string, unit result.Unit, help string) result.Metric {
	return result.Metric{Name: name, Unit: unit, Better: result.Higher, Help: help}
}

// Scored is the metric as a source of a dimension of the scorecard. A benchmark puts its results into the scorecard, and no
// second view of the same evidence.
func Scored(d result.Dimension, m result.Metric) result.Metric {
	m.Dimension = d
	return m
}

// Headed is the metric as a column of a summary.
func Headed(c result.Column, m result.Metric) result.Metric {
	m.Column = c
	return m
}

// Image names an image: one of the constants below, or an image from a plan.
type Image string

// The built-in images.
const (
	ProbeImage    Image = ""         // holds only the probe
	WorkloadImage Image = "workload" // holds the programs that the field measures with, and the probe
)

// Medium is the storage under a directory.
type Medium string

// The media.
const (
	Disk   Medium = "disk"
	Memory Medium = "memory" // a file system in memory
)

// Needs are the requirements of a benchmark.
type Needs struct {
	Capabilities []engine.Capability
	Space        Space
	// Containers is the largest number of containers that exist at once; 0 stands for 1.
	Containers int
	// Memory is the memory that all programs of the benchmark take at once, in bytes, apart from the containers themselves
	// and from Space.
	Memory int64
	// CPUs is the number of CPUs that the benchmark needs to measure anything; 0 stands for 1.
	CPUs int
	// Host is set if the benchmark runs processes outside the target: see Trial.Host.
	Host bool
	// Energy is set for a benchmark that reads the gauge of the host's energy.
	Energy bool
}

// Limit is a kind of limit of a container, by the name of its key in a plan.
type Limit string

// The limits of engine.Resources.
const (
	CPULimit     Limit = "cpus"
	CPUSetLimit  Limit = "cpuset"
	MemoryLimit  Limit = "memory"
	ProcessLimit Limit = "pids"
)

// Always returns a declaration of capabilities that are needed with all parameters.
func Always(capabilities ...engine.Capability) func(Params) Needs {
	return func(Params) Needs { return Needs{Capabilities: capabilities} }
}

// InMemory returns a declaration of the memory that programs take, in bytes.
func InMemory(bytes func(Params) int64) func(Params) Needs {
	return func(p Params) Needs { return Needs{Memory: bytes(p)} }
}

// Space is the most space that files take, in bytes.
type Space struct {
	Disk   int64 // in directories on disk, and in root file systems of containers
	Memory int64 // in directories in memory
	Tmpfs  int64 // in file systems in memory that belong to containers
}

// Suite is the first component of the benchmark's name.
func (b Benchmark) Suite() string {
	suite, _, _ := strings.Cut(b.Name, ".")
	return suite
}

// Recorded is the description of the benchmark that its runs keep.
func (b Benchmark) Recorded() result.Benchmark {
	return result.Benchmark{
		Name: b.Name, Summary: b.Summary, Source: b.Source, Metrics: b.Metrics, Phases: b.Phases, Place: b.Place, Statements: b.Statements, Judged: b.Judged,
	}
}

// Capabilities lists the capabilities that the benchmark needs with its quick parameters.
func (b Benchmark) Capabilities() []engine.Capability {
	quick, err := b.Resolve(nil, false)
	if err != nil || b.Needs == nil {
		return nil
	}
	return b.Needs(quick).Capabilities
}

// Param is a parameter of a benchmark.
type Param struct {
	Name string
	Help string
	// Quick and Paper are its values in the quick plan and in the paper.
	Quick, Paper string
	// Check refuses bad values; nil accepts all.
	Check func(value string) error
	// Canonical returns the one spelling of a value that Check accepts; nil if each value has one spelling.
	Canonical func(value string) string
}

// Params are the values of a benchmark's parameters.
type Params map[string]string

// Param returns the value of a declared parameter.
func (p Params) Param(name string) string {
	value, ok := p[name]
	if !ok {
		panic(fmt.Sprintf("the benchmark reads the parameter %q, which it does not declare", name))
	}
	return value
}

// Has reports whether the benchmark declares the parameter.
func (p Params) Has(name string) bool {
	_, ok := p[name]
	return ok
}

// Int returns the value of a parameter that Resolve has checked by IntRange.
func (p Params) Int(name string) int { return parsed(p, name, strconv.Atoi) }

// Duration returns the value of a parameter that Resolve has checked to be a time.
func (p Params) Duration(name string) time.Duration { return parsed(p, name, time.ParseDuration) }

// parsed panics on a value that no check of the parameter accepts.
func parsed[T any](p Params, name string, parse func(string) (T, error)) T {
	v, err := parse(p.Param(name))
	if err != nil {
		panic(fmt.Sprintf("the benchmark does not check its parameter %s: %v", name, err))
	}
	return v
}

// String formats params canonically: "name=value name=value" in order of names.
func (p Params) String() string {
	var items []string
	for name, value := range p {
		items = append(items, name+"="+value)
	}
	slices.Sort(items)
	return strings.Join(items, " ")
}

// Resolve completes overrides with the quick or paper values of the other parameters. It refuses unknown names and bad
// values, and returns values in their canonical spelling.
func (b Benchmark) Resolve(overrides Params, paper bool) (Params, error) {
	params := Params{}
	for _, p := range b.Params {
		value, ok := overrides[p.Name]
		switch {
		case ok:
		case paper:
			value = p.Paper
		default:
			value = p.Quick
		}
		if p.Check != nil {
			if err := p.Check(value); err != nil {
				return nil, &ParamError{Benchmark: b.Name, Param: p.Name, Value: value, Reason: err.Error()}
			}
		}
		if p.Canonical != nil {
			value = p.Canonical(value)
		}
		params[p.Name] = value
	}
	for name, value := range overrides {
		if _, ok := params[name]; !ok {
			return nil, &ParamError{Benchmark: b.Name, Param: name, Value: value, Reason: "unknown name; " + b.paramNames()}
		}
	}
	return params, nil
}

func (b Benchmark) paramNames() string {
	if len(b.Params) == 0 {
		return "the benchmark has no parameters"
	}
	var names []string
	for _, p := range b.Params {
		names = append(names, p.Name)
	}
	return "the benchmark has " + strings.Join(names, ", ")
}

// ParamError reports an unknown parameter or a bad value.
type ParamError struct{ Benchmark, Param, Value, Reason string }

func (e *ParamError) Error() string {
	return fmt.Sprintf("parameter %s=%s of %s: %s", e.Param, e.Value, e.Benchmark, e.Reason)
}

// OneOf is a check that accepts only the given values.
func OneOf(values ...string) func(string) error {
	return func(v string) error {
		if !slices.Contains(values, v) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// IntRange is a check that accepts whole numbers from lo to hi.
func IntRange(lo, hi int) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < lo || n > hi {
			return fmt.Errorf("must be a whole number from %d to %d", lo, hi)
		}
		return nil
	}
}

// TimeRange is a check that accepts times from lo to hi.
func TimeRange(lo, hi time.Duration) func(string) error {
	return func(v string) error {
		if d, err := time.ParseDuration(v); err != nil || d < lo || d > hi {
			return fmt.Errorf("must be a time from %v to %v, such as 1s", lo, hi)
		}
		return nil
	}
}

// Matches reports whether a filter selects the benchmark. A filter is the leading components of a name, each whole:
// scalability.runtime.5 does not select scalability.runtime.50.
func Matches(filter, name string) bool {
	return filter == name || strings.HasPrefix(name, filter+".")
}
