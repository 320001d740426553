// Package result holds the record of a run: its trials and samples with units and times, and facts about the host.
//
// The types are the versioned JSON of `touchstone export` and the content of the store. The package computes nothing. Samples keep
// the order of their measurement. Values are in base units (seconds, bytes, operations per second), so a reader never guesses a
// prefix; reports choose prefixes.
package result

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
	"time"
	"unicode"
)

// SchemaVersion is the version of the JSON that Encode writes. It is raised when a field changes its meaning or is
// removed; a new field does not raise it.
const SchemaVersion = 1

// Unit is the unit of a metric's values.
type Unit string

// The units.
const (
	Seconds        Unit = "s"
	Bytes          Unit = "B"
	BytesPerSecond Unit = "B/s"
	BitsPerSecond  Unit = "bit/s"
	PerSecond      Unit = "1/s"
	FlopPerSecond  Unit = "FLOP/s"
	Ratio          Unit = "ratio" // of two quantities of the same unit: 1 is 100 %
	Score          Unit = "score" // a dimensionless score or index, defined by its benchmark
	Joules         Unit = "J"
	Count          Unit = "count" // a number of things: containers, packages, files
	ByteSeconds    Unit = "B·s"   // an amount of memory times the time that it was taken for
)

// Units lists the units.
func Units() []Unit {
	return []Unit{Seconds, Bytes, BytesPerSecond, BitsPerSecond, PerSecond, FlopPerSecond, Ratio, Score, Joules, Count, ByteSeconds}
}

// Direction is the direction in which values of a metric are better.
type Direction string

// The directions.
const (
	Lower  Direction = "lower"
	Higher Direction = "higher"
)

// Metric describes a named value of a benchmark.
type Metric struct {
	Name   string    `json:"name"`
	Unit   Unit      `json:"unit"`
	Better Direction `json:"better"`
	// Series is set if one trial takes several values in order, such as the start latency of the first, second, … container.
	Series bool `json:"series,omitempty"`
	// Trend is set if the values of a series are a function of their place, such as the number of running containers. It is the
	// singular of the things that the place counts: "running container". The first place is 1.
	Trend string `json:"trend,omitempty"`
	// Growth is set if the values of a series add up from place to place, such as the memory of all containers so far. The value of a
	// trial is then the last one, and for other series the median.
	Growth bool `json:"growth,omitempty"`
	// Optional is set if some targets do not have the metric.
	Optional bool   `json:"optional,omitempty"`
	Help     string `json:"help"`
	// Consumed is set if the value is a quantity that is used up, such as CPU time. A report then has "more" and "less" in the
	// place of "slower" and "faster".
	Consumed bool `json:"consumed,omitempty"`
	// Phrase completes the sentence "TARGET … VALUE" of a finding: "creates and starts a container in".
	// Findings prefer metrics with a phrase, in the order of the benchmark.
	Phrase string `json:"phrase,omitempty"`
	// Group is the heading under which a report shows a metric that is one part of a quantity, such as "CPU time by
	// component". Component is the part. Both are empty for a metric that stands by itself.
	Group     string `json:"group,omitempty"`
	Component string `json:"component,omitempty"`
	// Layer is the role of the metric in the split of a container's start into layers. It is empty for other metrics.
	Layer Layer `json:"layer,omitempty"`
	// DerivedFrom is the source metric of a computed metric, in the same benchmark. A derived metric is no evidence of its own:
	// verdicts do not count it.
	DerivedFrom string `json:"derived_from,omitempty"`
	// NoVerdict is the reason why comparisons of the metric have no verdict, although it stands by itself: "the API server reports it with a
	// delay that depends on the class". It is empty for other metrics.
	NoVerdict string `json:"no_verdict,omitempty"`
	// Dimension is the row of the scorecard that the metric belongs to; empty for the other metrics.
	Dimension Dimension `json:"dimension,omitempty"`
	// Column is the column of the metric in a summary of one screen; empty for the other metrics.
	Column Column `json:"column,omitempty"`
	// Surface is set for the size of a target's surface, which a report shows beside the time of a start.
	Surface Surface `json:"surface,omitempty"`
	// Bound is a value that the metric should not exceed, such as a limit.
	Bound Bound `json:"bound,omitzero"`
	// AnySpeed is set for a ratio or a score that is the same on a machine of any speed, such as a share of a memory limit. The other
	// units decide it themselves: see OfSpeed.
	AnySpeed bool `json:"any_speed,omitempty"`
	// Agreement is another measurement of the same quantity, if there is one.
	Agreement Agreement `json:"agreement,omitzero"`
}

// OfSpeed reports whether the values depend on the speed of the machine: times, rates, CPU time, energy, and amounts over time. An
// emulated CPU distorts them. Amounts of memory and numbers of things do not depend on it. A ratio with a bound is the use of a limit, and
// the kernel enforces limits at any speed. Other ratios, and scores, depend on the speed unless the metric has AnySpeed.
func (m *Metric) OfSpeed() bool {
	switch m.Unit {
	case Bytes, Count:
		return false
	case Ratio, Score:
		return !m.AnySpeed && m.Bound.Broken == ""
	case Seconds, BytesPerSecond, BitsPerSecond, PerSecond, FlopPerSecond, Joules, ByteSeconds:
	}
	return true
}

// Cost is the cost of a target by the ratio of its values to the values of another target. It is above 1 if the target is worse.
func (m *Metric) Cost(ratio float64) float64 {
	if m.Better == Higher {
		return 1 / ratio
	}
	return ratio
}

// IsJudged reports whether comparisons of the metric have verdicts: parts of a quantity, derived metrics and metrics with a reason have none.
func (m *Metric) IsJudged() bool {
	return m.Group == "" && m.Component == "" && m.DerivedFrom == "" && m.NoVerdict == ""
}

// Agreement names a metric of the same benchmark that measures the same quantity in another way. With is empty without one.
type Agreement struct {
	With string `json:"with"`
	// Tolerance is the difference, relative to the larger of the two, above which a report explains the difference.
	Tolerance float64 `json:"tolerance"`
	// Rest is the group of metrics whose sum is the difference.
	Rest string `json:"rest"`
}

// Dimension is a property of a runtime in the scorecard, after sateri, chapter 5.
type Dimension string

// The dimensions.
const (
	DimensionCPU            Dimension = "CPU"
	DimensionMemorySpeed    Dimension = "memory speed"
	DimensionDisk           Dimension = "disk"
	DimensionNetwork        Dimension = "network"
	DimensionSystemCalls    Dimension = "system calls"
	DimensionStartUp        Dimension = "start-up"
	DimensionMemoryOverhead Dimension = "memory overhead"
	DimensionDensity        Dimension = "density"
	DimensionIsolation      Dimension = "isolation"
	DimensionFootprint      Dimension = "footprint"
)

// Dimensions lists the dimensions in display order.
func Dimensions() []Dimension {
	return []Dimension{
		DimensionCPU, DimensionMemorySpeed, DimensionDisk, DimensionNetwork, DimensionSystemCalls,
		DimensionStartUp, DimensionMemoryOverhead, DimensionDensity, DimensionIsolation, DimensionFootprint,
	}
}

// Column is a question that people bring, and the heading of its column in a summary.
type Column string

// The columns.
const (
	ColumnStart       Column = "start"
	ColumnReady       Column = "ready"
	ColumnExec        Column = "exec"
	ColumnSystemCalls Column = "syscalls"
	ColumnCPU         Column = "cpu"
	ColumnHostCPU     Column = "host CPU"
	ColumnMemory      Column = "memory"
	ColumnMemorySpeed Column = "RAM speed"
	ColumnDisk        Column = "disk"
	ColumnNetwork     Column = "network"
	ColumnDensity     Column = "density"
	ColumnFootprint   Column = "footprint"
	ColumnPull        Column = "pull"
)

// Columns lists the columns in display order.
func Columns() []Column {
	return []Column{
		ColumnStart, ColumnReady, ColumnExec, ColumnSystemCalls, ColumnCPU, ColumnHostCPU, ColumnMemory,
		ColumnMemorySpeed, ColumnDisk, ColumnNetwork, ColumnDensity, ColumnFootprint, ColumnPull,
	}
}

// Surface is a part of the host's kernel as a program in a container meets it.
type Surface string

// The surfaces, and the order of their display.
const (
	SurfaceReached Surface = "reached" // the system calls that small programs reach; the traces of the benchmark have their names
	SurfaceAllowed Surface = "allowed" // the system calls that the filters allow
)

// Layer is the role of a metric in the split of a container's start into layers.
type Layer string

// The roles of metrics in the split into layers.
const (
	LayerTotal   Layer = "total"   // the quantity that is split
	LayerSandbox Layer = "sandbox" // the part of the first total that a pod's sandbox and its network take
)

// Bound is a value that a metric should not exceed. Broken is empty without a bound.
type Bound struct {
	Most float64 `json:"most"`
	// Broken follows the name of a target whose median exceeds the bound: "does not hold its CPU limit".
	Broken string `json:"broken"`
}

// Status is the outcome of a trial.
type Status string

// The outcomes of a trial.
const (
	OK      Status = "ok"
	Failed  Status = "failed"
	Timeout Status = "timeout"
	Skipped Status = "skipped"
)

// Cell is the unit of repetition: one benchmark with its parameters on one target.
type Cell struct {
	Benchmark string `json:"benchmark"`
	// Params is the canonical spelling of the parameters, "name=value name=value" in order of names, followed by the plan's
	// limits of the containers, "limits.name=value".
	Params string `json:"params,omitempty"`
	Target string `json:"target"`
}

// Seed derives the seed of a metric of a cell from the run's seed and the names of the cell, so that random numbers for a cell stay the same if other
// benchmarks or targets come or go.
func (c Cell) Seed(run uint64, metric string) uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, run)
	for _, s := range []string{c.Benchmark, c.Params, c.Target, metric} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Trial is one execution of one benchmark on one target. Every trial is recorded, whatever its outcome.
type Trial struct {
	// Seq counts the trials of a run from 1 in the order of their execution.
	Seq int `json:"seq"`
	Cell
	// Block counts the blocks of this benchmark from 0. Warm-up blocks have their own count.
	Block  int    `json:"block"`
	Warmup bool   `json:"warmup,omitempty"`
	Status Status `json:"status"`
	// Reason is the cause if the trial is not ok, with a remedy if one is known.
	Reason string `json:"reason,omitempty"`
	// Output is the end of the output of the failed program or runtime.
	Output string `json:"output,omitempty"`
	// Started is wall-clock time for readers; no value is computed from it.
	Started time.Time `json:"started"`
	// Elapsed is the length of the whole trial with its set-up and clean-up.
	Elapsed time.Duration `json:"elapsed_ns"`
	Phases  []Phase       `json:"phases,omitempty"`
	// FailedCalls counts the calls of the engine that failed or exceeded a limit, by the name of the phase that each would have been. Only trials that
	// failed or timed out have it.
	FailedCalls map[string]int `json:"failed_calls,omitempty"`
	Samples     []Sample       `json:"samples,omitempty"`
	// Distributions are histograms of values that are not samples of their own: from a program in the container that does not report each
	// value, or from a benchmark with too many values.
	Distributions []Distribution `json:"distributions,omitempty"`
	// Timelines are quantities over the time of the trial.
	Timelines []Timeline `json:"timelines,omitempty"`
	// Conditions are properties of the measurement by name: the path of the packets, the file system, cold or warm caches.
	Conditions map[string]string `json:"conditions,omitempty"`
	Host       Disturbance       `json:"host"`
	// Self is the CPU time of Touchstone itself during the trial.
	Self time.Duration `json:"self_cpu_ns"`
}

// Limits on the conditions of a trial.
const (
	MaxConditions = 32
	// MaxCondition is the longest name or value, in bytes.
	MaxCondition = 1000
)

// ConditionText makes text from programs or the host fit for a condition, or for another single line. The result is printable and
// at most MaxCondition bytes long.
func ConditionText(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text))
	if len(text) > MaxCondition {
		const ellipsis = "…"
		text = strings.ToValidUTF8(text[:MaxCondition-len(ellipsis)], "") + ellipsis
	}
	return text
}

// Phase is a named timed region of a trial. It contains exactly one call of the engine. If that call makes several calls to a
// daemon, each of them is a step within the phase, named "phase/Step".
type Phase struct {
	Name string `json:"name"`
	// Start counts from the start of the trial.
	Start    time.Duration `json:"start_ns"`
	Duration time.Duration `json:"duration_ns"`
}

// Sample is one value of a metric. The samples of a series are in order.
type Sample struct {
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
}

// Distribution is a histogram. Bucket i has Counts[i] values from Lows[i] up to Lows[i+1].
type Distribution struct {
	Metric string    `json:"metric"`
	Unit   Unit      `json:"unit"`
	Lows   []float64 `json:"lows"`
	Counts []uint64  `json:"counts"`
	// Batch is the number of events behind each value, which is their mean. It is 1 for single events.
	Batch uint64 `json:"batch"`
	// Tail is the largest values; nil if they are not known one by one.
	Tail *Tail `json:"tail,omitempty"`
}

// Tail is the largest values of a distribution of single events. No value outside of it is larger than its smallest one.
type Tail struct {
	// At are the places of the values in the order of measurement, from 0 and ascending. Values has the same length.
	At     []int     `json:"at"`
	Values []float64 `json:"values"`
}

// MaxTail is the largest number of values in a tail.
const MaxTail = 10_000

// Timeline is a quantity over the time of a trial, such as the memory of the host or the speed of a program. At and Values have
// the same length.
type Timeline struct {
	// Group is the heading of the plot. The timelines of one group have the same unit and share its axes.
	Group string `json:"group"`
	// Name is the name of the line in the plot.
	Name string `json:"name"`
	Unit Unit   `json:"unit"`
	// At are the times of the values in ascending order. They count from the start of the trial, like the start of a Phase.
	At     []time.Duration `json:"at_ns"`
	Values []float64       `json:"values"`
}

// Limits on the timelines of a trial.
const (
	MaxTimelines = 256
	// MaxTimelinePoints is the largest number of values in a timeline: an hour at an interval of 100 ms.
	MaxTimelinePoints = 36_000
)

// Values returns the values of a metric in the order of their measurement.
func (t *Trial) Values(metric string) []float64 {
	n := 0
	for i := range t.Samples {
		if t.Samples[i].Metric == metric {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	values := make([]float64, 0, n)
	for i := range t.Samples {
		if s := &t.Samples[i]; s.Metric == metric {
			values = append(values, s.Value)
		}
	}
	return values
}

// Disturbance describes the activity of the host during a trial. A field that the host does not offer is absent (nil), never zero.
type Disturbance struct {
	// Steal is the share (0–1) of all CPU time that the hypervisor withheld.
	Steal *float64 `json:"steal,omitempty"`
	// CPUPressure, MemoryPressure and IOPressure are the shares (0–1) of the trial during which some task waited for that resource
	// (PSI, "some").
	CPUPressure    *float64 `json:"cpu_pressure,omitempty"`
	MemoryPressure *float64 `json:"memory_pressure,omitempty"`
	IOPressure     *float64 `json:"io_pressure,omitempty"`
	// Load is the load average of the last minute at the end of the trial.
	Load *float64 `json:"load1,omitempty"`
	// MHz is the mean frequency of the CPUs at the end of the trial.
	MHz *float64 `json:"cpu_mhz,omitempty"`
	// Throttled counts thermal throttling events of all cores during the trial.
	Throttled *int64 `json:"throttled,omitempty"`
	// Marks are the reasons why the trial counts as disturbed; empty if it is not disturbed. A number that is a word of its own is an amount: reports show
	// the range of the amounts of equal reasons.
	Marks []string `json:"marks,omitempty"`
}

// Target is a target of a run, as found on the host.
type Target struct {
	Name string `json:"name"`
	// Kind is how the target starts a program. It is empty for a target that takes no part in the split into layers.
	Kind Kind `json:"kind,omitempty"`
	// Runtime is the runtime with its options, such as "runsc@platform=systrap". The targets of a bare runtime and of
	// the engines that drive it have the same.
	Runtime   string `json:"runtime,omitempty"`
	Binary    string `json:"binary,omitempty"`
	Version   string `json:"version,omitempty"`
	Isolation string `json:"isolation,omitempty"`
	Cgroup    string `json:"cgroup,omitempty"`
	Rootless  bool   `json:"rootless,omitempty"`
	// Notes describe adaptations that this target needed on this host.
	Notes []string `json:"notes,omitempty"`
	// Unavailable is the reason why no trial could run on it, empty if one could.
	Unavailable string `json:"unavailable,omitempty"`
	// FailedTries is the number of first containers that did not work before one did.
	FailedTries int `json:"failed_tries,omitempty"`
	// Installed are the programs of the target that touchstone setup has installed.
	Installed []Installed `json:"installed,omitempty"`
}

// Installed is a program that touchstone setup has installed.
type Installed struct {
	Program string `json:"program"`
	Part    string `json:"part"`
	Version string `json:"version"`
	// Origin is the source that the part was built from or taken from, with the checksum of the source.
	Origin string `json:"origin"`
	// Digest is the checksum of the program: "sha256:…".
	Digest string `json:"digest"`
}

// Sandboxed reports whether a layer of its own, and not only the host's kernel, separates the target's containers from the host.
// Engines declare the isolation of their targets with these words.
func (t Target) Sandboxed() bool {
	return t.Isolation == "user-space kernel" || t.Isolation == "virtual machine"
}

// Kind is how a target starts a program.
type Kind string

// The kinds of targets, from the innermost layer outwards.
const (
	KindNative  Kind = "native"  // a process of the host, without a container
	KindRuntime Kind = "runtime" // a runtime that Touchstone calls itself
	KindEngine  Kind = "engine"  // an engine, with its shim or monitor, that calls the runtime
)

// Benchmark is a benchmark of a run with its metrics. It makes a stored run readable without the program that made it.
type Benchmark struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Source  string   `json:"source"`
	Metrics []Metric `json:"metrics"`
	// Phases is set if a report shows the timed regions of the trials.
	Phases bool `json:"phases,omitempty"`
	// Place labels the places of a series in plots, such as "number of the container, in order of start".
	Place string `json:"place,omitempty"`
	// Statements are names of conditions that are results in words. A report shows them by target, before the metrics.
	Statements []string `json:"statements,omitempty"`
	// Judged are names of conditions that are verdicts about the speed of a trial, in words. A report withholds them if the CPU is emulated.
	Judged []string `json:"judged,omitempty"`
}

// Image is an image with programs of a run.
type Image struct {
	// Name is as plans have it: "workload", or a path or reference of the user's. In a cluster it is the reference of the pods.
	Name string `json:"name"`
	// Digest is the digest of the image's manifest: "sha256:…". It is absent if the image is not available. If a node of a cluster has loaded the
	// image from a file, it is the digest of the configuration, the ID that the tools of the container engine show.
	Digest string `json:"digest,omitempty"`
	// Size is the size of all layers as a registry serves them, in bytes.
	Size int64 `json:"size_bytes,omitempty"`
	// UpdatedList reports that the workload image comes from an updated list of packages, and not from the list of the Touchstone that made
	// the run.
	UpdatedList bool `json:"updated_list,omitempty"`
	// Unavailable is the reason why the image is not available, empty if it is.
	Unavailable string `json:"unavailable,omitempty"`
}

// Overhead is Touchstone's own cost, measured at the start of the run.
type Overhead struct {
	// EmptyRegion is the median length of an empty timed region.
	EmptyRegion time.Duration `json:"empty_region_ns"`
	// Exec is the median time from the start of the idle probe as a bare process to its exit. Every call of a runtime's binary
	// includes this cost.
	Exec time.Duration `json:"exec_ns"`
	// Requests are the median round trips of a request that does nothing, by the engine whose daemon answers. Every request of an operation
	// includes this cost.
	Requests map[string]time.Duration `json:"requests_ns,omitempty"`
}

// State is the progress of a run.
type State string

// The states of a run. All but a complete one can be resumed.
const (
	Running     State = "running"
	Complete    State = "complete"
	Interrupted State = "interrupted" // ended in order before its plan was complete
	Killed      State = "killed"      // the process that executed it ended without recording an end
)

// Run is one execution of one plan, stored whole.
type Run struct {
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	State    State       `json:"state"`
	Started  time.Time   `json:"started"`
	Ended    time.Time   `json:"ended,omitzero"`
	Tool     Tool        `json:"tool"`
	Seed     uint64      `json:"seed,string"`
	Baseline string      `json:"baseline"`
	Plan     string      `json:"plan"` // the resolved plan as YAML
	Host     Host        `json:"host"`
	Targets  []Target    `json:"targets"`
	Bench    []Benchmark `json:"benchmarks"`
	Overhead Overhead    `json:"overhead"`
	// Images are the images with the run's programs, except for the image of the probe.
	Images []Image `json:"images,omitempty"`
	// Caveats are sentences about things that Touchstone did not measure or could not hold constant in this run.
	Caveats []string `json:"caveats,omitempty"`
	// Stopping is nil for a run without a rule that stops single cells.
	Stopping *Stopping `json:"stopping,omitempty"`
	Trials   []Trial   `json:"trials"`
	// Traces are the trials under a tracer, which come after all others.
	Traces []Trace `json:"traces,omitempty"`
}

// MaxLooks is the greatest number of looks of a Stopping.
const MaxLooks = 100

// Stopping is a rule that stops single cells while the run goes on. It is fixed before the run. A report needs it to judge each comparison at its
// last look.
type Stopping struct {
	// Looks are the numbers of blocks for the tests of the rule, in ascending order. The last is the greatest number.
	Looks []int `json:"looks"`
	// Comparisons is the number of comparisons of the plan, which share the error of the rule.
	Comparisons int `json:"comparisons"`
	// Precision is the half-width of the interval of a ratio, as a share, that also ends a comparison; 0 for none.
	Precision float64 `json:"precision,omitempty"`
	// Stopped are the cells that the rule has stopped, in this order.
	Stopped []Stop `json:"stopped,omitempty"`
}

// Stop is a cell that a rule stopped before its last look.
type Stop struct {
	Cell
	// Blocks is the look: the number of blocks that the cell has.
	Blocks int        `json:"blocks"`
	Reason StopReason `json:"reason"`
}

// StopReason is the reason why a rule stopped a cell.
type StopReason string

// The reasons.
const (
	// Decided means that each deciding comparison of the cell shows a difference.
	Decided StopReason = "decided"
	// Precise means that each one shows a difference or has a ratio as precise as requested, and at least one is only precise.
	Precise StopReason = "precise"
	// Incomparable means that no deciding metric of the cell can be compared, for example because the baseline has no values.
	Incomparable StopReason = "not comparable"
	// AllStopped means that the cell is the baseline, and all other cells of its benchmark have stopped.
	AllStopped StopReason = "all others stopped"
)

// Tool is the program that made a run.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

// String spells the program that measured a run. Touchstone records its version of Go, and a run of another program has only a name.
func (t Tool) String() string {
	if t.Go == "" {
		return t.Version
	}
	return "Touchstone " + t.Version
}

// Host is the fingerprint of the machine of a run.
type Host struct {
	Hostname   string `json:"hostname"`
	OS         string `json:"os"`     // as /etc/os-release names it
	Kernel     string `json:"kernel"` // release and version of uname
	Arch       string `json:"arch"`   // as Go names it
	CPU        string `json:"cpu"`    // model name
	CPUs       int    `json:"cpus"`   // online logical CPUs
	Governor   string `json:"governor,omitempty"`
	Turbo      string `json:"turbo,omitempty"`           // "on", "off" or empty if not known
	SMT        string `json:"smt,omitempty"`             // as /sys/devices/system/cpu/smt/control says
	Memory     int64  `json:"memory_bytes"`              // MemTotal
	Swap       int64  `json:"swap_bytes"`                // SwapTotal
	PageSize   int64  `json:"page_size_bytes,omitempty"` // of the kernel; 0 if not known
	Cgroup     string `json:"cgroup"`                    // "v1", "hybrid" or "v2"
	Virtual    string `json:"virtualisation,omitempty"`  // hypervisor, if the host is a guest
	Container  string `json:"container,omitempty"`       // kind of the container that Touchstone itself ran in
	LSM        string `json:"lsm,omitempty"`             // active security modules
	Mitigation string `json:"mitigations,omitempty"`     // one line: which vulnerabilities are mitigated and how
	Cmdline    string `json:"kernel_cmdline,omitempty"`
	Root       bool   `json:"root"`
	// Reclaim holds the facts that explain figures of memory; nil if none is known.
	Reclaim *Reclaim `json:"reclaim,omitempty"`
	// Settings are further facts that change the times of starts; nil if none is known.
	Settings *Settings `json:"settings,omitempty"`
	// Storage are the file systems of a run, in the order of their use.
	Storage []Storage `json:"storage,omitempty"`
	// Identity tells machines with one name apart; nil if it is unknown.
	Identity *Identity `json:"identity,omitempty"`
	// Tuned are the settings that touchstone host tune has changed and that were in effect when the run began, in the order of their change. A run
	// without root cannot read them.
	Tuned []Tuned `json:"tuned,omitempty"`
	// Selfcheck is the last selfcheck on the machine before the run; nil without one.
	Selfcheck *Selfcheck `json:"selfcheck,omitempty"`
	// Node is the machine's part in a cluster; nil for a machine that was measured alone.
	Node *Node `json:"node,omitempty"`
	// Warnings are properties of this host that make results less stable, each with a remedy.
	Warnings []string `json:"warnings,omitempty"`
}
