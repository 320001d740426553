// Package bench is what a benchmark is; the packages below it, one a suite, hold
// the benchmarks themselves, and catalogue lists them.
//
// A benchmark is data and one function. The function is handed a [Trial], through
// which it reaches the engine, the clock and the record. It never reads a clock
// itself: it asks the trial to time a call, and one timed region holds one engine
// call. It need not clean up: the runner removes what a trial leaves.
package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmark is something that is measured, named context.component.facet.
type Benchmark struct {
	Name string
	// Summary says in one line what is measured.
	Summary string
	// Source is the paper, table or figure that defines it, or "peers" where
	// other tools of the field do.
	Source  string
	Metrics []result.Metric
	// Phases is set if a report shows the timed regions of the trials.
	Phases bool
	// Place labels the places of its series in plots.
	Place  string
	Params []Param
	// Waits are the media that the benchmark itself waits for, so that pressure on them during a trial is no disturbance
	// from outside.
	Waits []Medium
	// Components tells that trials tell apart what each component costs: see Trial.CPU.
	Components bool
	// Image is what its programs come from.
	Image Image
	// Space is what the files of its programs take at most; nil if that is next to nothing. A benchmark for which there
	// is not enough is skipped.
	Space func(p Params) Space
	// Needs are the capabilities without which a target is skipped.
	Needs []engine.Capability
	// Run executes one trial. An error makes the trial failed (or skipped if
	// engine.Unsupported says so); no sample of it is then kept.
	Run func(ctx context.Context, t Trial) error
}

// Image names an image: one of those below, or one that a plan brings.
type Image string

// The images there are.
const (
	ProbeImage    Image = ""         // holds nothing but the probe
	WorkloadImage Image = "workload" // the programs that the field measures with; the probe too
)

// Medium is what a directory lies on.
type Medium string

// The media there are.
const (
	Disk   Medium = "disk"
	Memory Medium = "memory" // a file system in memory
)

// Space is room for files, in bytes.
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
	return result.Benchmark{Name: b.Name, Summary: b.Summary, Source: b.Source, Metrics: b.Metrics, Phases: b.Phases, Place: b.Place}
}

// Param is a parameter of a benchmark.
type Param struct {
	Name string
	Help string
	// Quick and Paper are its values in the quick plan and in the paper.
	Quick, Paper string
	// Check refuses bad values; nil accepts all.
	Check func(value string) error
}

// Trial is one execution of a benchmark on one target, seen from the benchmark.
// Its methods may be called from several goroutines.
type Trial interface {
	// Param gives the value of a parameter of the benchmark.
	Param(name string) string
	// Info is what the engine says of itself.
	Info() engine.Info
	// Supports is the engine's answer.
	Supports(engine.Capability) error
	// Spec describes a container that runs a program of the image.
	Spec(argv ...string) engine.Spec
	// Scratch makes an empty directory on the host that goes with the trial. It is an
	// *engine.UnsupportedError if the host has none on such a medium.
	Scratch(m Medium) (string, error)
	// Room says by an *engine.UnsupportedError that there is no space for files beyond those of the benchmark's Space.
	Room(need Space) error
	// DropCaches writes back what the host has not written yet, and drops its page cache. It has no place in a timed
	// region. It is an *engine.UnsupportedError if the user has not allowed it.
	DropCaches(ctx context.Context) error
	// Condition puts on record, by a name of one or two words, what the trial is measured under.
	Condition(name, value string)
	// Create is the engine's Create as a timed phase. The runner deletes the
	// container at the end of the trial if it is still there.
	Create(ctx context.Context, spec engine.Spec) (engine.Container, Span, error)
	// Link is the network of Bridged containers, an *engine.UnsupportedError if the target has none.
	Link(ctx context.Context) (engine.Link, error)
	// CreateHost is Create for a process at the host's end of the target's Link: as on native, from the same
	// root file system. What it costs is none of the target's.
	CreateHost(ctx context.Context, spec engine.Spec) (engine.Container, error)
	// FreshImage publishes an image that no engine has seen: that of Spec with one layer more, of size bytes that
	// do not compress. The runner takes it back at the end of the trial.
	FreshImage(ctx context.Context, size int64) (ref string, err error)
	// Pull and RemoveImage are the engine's, as timed phases. The runner removes what was pulled at the end of the
	// trial if it is still there. The error is an *engine.UnsupportedError if the engine pulls nothing.
	Pull(ctx context.Context, ref string) (Span, error)
	RemoveImage(ctx context.Context, ref string) (Span, error)
	// Time runs call, which holds exactly one call of the engine, as a phase. The phase lasts from the begin of the
	// call's first step to the end of its last one (see engine.Step), or as long as a call without steps.
	Time(ctx context.Context, phase string, call func(context.Context) error) (Span, error)
	// Steps are the named steps of all phases so far: see engine.Step.
	// Engines whose methods are one call each have none.
	Steps() []Step
	// Dial connects to the host network as the target's containers have it.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Watch gives a writer for the output of a program.
	Watch() Watch
	// Usage is what the target has cost the host so far in this trial; an
	// *engine.UnsupportedError if it cannot be known here, as after CreateHost without cgroups.
	Usage() (engine.Usage, error)
	// Throttled is in how many periods of a quota so far a limit of CPU time has kept the target's processes waiting. It is an
	// *engine.UnsupportedError if it cannot be known here.
	Throttled() (periods int64, err error)
	// CPU is what Usage says of CPU time by component, as far as it is known of single processes. It is short of
	// Usage by what processes cost while they begin and end. Only benchmarks with Components may call it, after Memory if at
	// all. It is an *engine.UnsupportedError if it cannot be known here; the run's limits then say so.
	CPU() (map[monitor.Component]time.Duration, error)
	// Memory is the memory of what lives of the target at the moment, by component, in bytes, as proportional set
	// size; otherwise it is as CPU. It takes time, and has no place in a timed region.
	Memory() (map[monitor.Component]int64, error)
	// Record adds a sample of one of the benchmark's metrics.
	Record(metric string, value float64)
	// RecordDistribution keeps a whole distribution beside the samples.
	RecordDistribution(d result.Distribution)
}

// Span is when a phase began and ended, both counted from the start of the trial on
// the host's monotonic clock.
type Span struct{ Start, End time.Duration }

// Step is one of several calls in a phase.
type Step struct {
	Name string
	Span
}

// Length is the time from the start to the end.
func (s Span) Length() time.Duration { return s.End - s.Start }

// Seconds is the length in seconds.
func (s Span) Seconds() float64 { return s.Length().Seconds() }

// MaxOutput is how much of a program's output is kept, in bytes. A program that writes
// more ends the trial, which has then failed.
const MaxOutput = 1 << 20

// Watch is a writer that notes the moment of its first byte, on the same clock as
// Span, and keeps what is written.
type Watch interface {
	io.WriteCloser
	// FirstLine waits for the first line and returns it without its end, with the
	// moment of the first byte. The error is io.ErrUnexpectedEOF if the output
	// ends before the line does.
	FirstLine(ctx context.Context) (line string, at time.Duration, err error)
	// Ended waits for the end of the output.
	Ended(ctx context.Context) error
	// Bytes is what was written so far, at most MaxOutput.
	Bytes() []byte
}

// Params are the values of a benchmark's parameters.
type Params map[string]string

// Param gives the value of a parameter.
func (p Params) Param(name string) string { return p[name] }

// Numbers reads parameters that are whole numbers, of a Trial or of Params, to where they belong. What Resolve has checked
// by IntRange can be read.
func Numbers(of interface{ Param(name string) string }, to map[string]*int) error {
	for name, n := range to {
		v, err := strconv.Atoi(of.Param(name))
		if err != nil {
			return fmt.Errorf("read the parameter %s: %w", name, err)
		}
		*n = v
	}
	return nil
}

// String spells params canonically: "name=value name=value" in order of names.
func (p Params) String() string {
	var items []string
	for name, value := range p {
		items = append(items, name+"="+value)
	}
	slices.Sort(items)
	return strings.Join(items, " ")
}

// Resolve fills in the quick or paper values for parameters that given does not
// set, and refuses unknown names and bad values.
func (b Benchmark) Resolve(given Params, paper bool) (Params, error) {
	resolved := Params{}
	for _, p := range b.Params {
		value, ok := given[p.Name]
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
		resolved[p.Name] = value
	}
	for name, value := range given {
		if _, ok := resolved[name]; !ok {
			return nil, &ParamError{Benchmark: b.Name, Param: name, Value: value, Reason: "there is no such parameter; " + b.paramNames()}
		}
	}
	return resolved, nil
}

func (b Benchmark) paramNames() string {
	if len(b.Params) == 0 {
		return "it has none"
	}
	var names []string
	for _, p := range b.Params {
		names = append(names, p.Name)
	}
	return "it has " + strings.Join(names, ", ")
}

// ParamError says which parameter of which benchmark is wrong, and why.
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

// Matches tells whether a filter selects the benchmark: whole components of the name from its
// start, so that scalability.runtime.5 does not select scalability.runtime.50.
func Matches(filter, name string) bool {
	return filter == name || strings.HasPrefix(name, filter+".")
}
