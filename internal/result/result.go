// Package result holds what a run leaves behind: the run, its trials and their
// samples, with units, times and the facts of the host.
//
// The types are the versioned JSON of `touchstone export` and what the store
// keeps; nothing here computes. Samples keep the order in which they were taken.
// Values are in base units (seconds, bytes, operations per second) so that no
// reader has to guess a prefix; presentation chooses prefixes.
package result

import (
	"strings"
	"time"
	"unicode"
)

// SchemaVersion is the version of the JSON that Encode writes. It is raised when a field changes its meaning or is
// removed; a new field does not raise it. Decode and the store upgrade runs of earlier versions, see Run.Upgrade.
const SchemaVersion = 2

// Unit is the unit of a metric's values.
type Unit string

// The units there are.
const (
	Seconds        Unit = "s"
	Bytes          Unit = "B"
	BytesPerSecond Unit = "B/s"
	BitsPerSecond  Unit = "bit/s"
	PerSecond      Unit = "1/s"
	FlopPerSecond  Unit = "FLOP/s"
	Ratio          Unit = "ratio" // of two quantities of the same unit: 1 is 100 %
	Score          Unit = "score" // a dimensionless score or index, defined by its benchmark
)

// Direction tells which values of a metric are the better ones.
type Direction string

// The directions there are.
const (
	Lower  Direction = "lower"
	Higher Direction = "higher"
)

// Metric describes a named value of a benchmark.
type Metric struct {
	Name   string    `json:"name"`
	Unit   Unit      `json:"unit"`
	Better Direction `json:"better"`
	// Series tells that one trial takes many values, in order (say, the start
	// latency of the first, second, … container), not one.
	Series bool `json:"series,omitempty"`
	// Optional tells that not every target has it.
	Optional bool   `json:"optional,omitempty"`
	Help     string `json:"help"`
	// Phrase completes the sentence "TARGET … VALUE" of a finding: "creates and starts a container in".
	// Findings prefer metrics with a phrase, in the order of the benchmark.
	Phrase string `json:"phrase,omitempty"`
	// Group is the heading under which a report shows a metric that is one part of a quantity, such as "CPU time by
	// component". Component is the part. Both are empty for a metric that stands by itself.
	Group     string `json:"group,omitempty"`
	Component string `json:"component,omitempty"`
	// Layer is the role of the metric in the split of a container's start into layers. It is empty for other metrics.
	Layer Layer `json:"layer,omitempty"`
	// DerivedFrom is the metric of the same benchmark from which this one is computed. A derived metric is no evidence of
	// its own: verdicts do not count it.
	DerivedFrom string `json:"derived_from,omitempty"`
	// Bound is what the values stay below if something holds that the metric tells of, such as a limit.
	Bound Bound `json:"bound,omitzero"`
}

// Layer is the role of a metric in the split of a container's start into layers.
type Layer string

// The roles of metrics in the split into layers.
const (
	LayerTotal   Layer = "total"   // the quantity that is split
	LayerSandbox Layer = "sandbox" // the part of the first total that a pod's sandbox and its network take
)

// Bound is a value that a metric should not exceed. There is none if Broken is empty.
type Bound struct {
	Most float64 `json:"most"`
	// Broken says in words what it means for a target whose median is more: "does not hold its CPU limit".
	Broken string `json:"broken"`
}

// Status is how a trial ended.
type Status string

// The ends of a trial.
const (
	OK      Status = "ok"
	Failed  Status = "failed"
	Timeout Status = "timeout"
	Skipped Status = "skipped"
)

// Cell is what a trial repeats: one benchmark with its parameters on one target.
type Cell struct {
	Benchmark string `json:"benchmark"`
	// Params is the canonical spelling of the parameters, "name=value name=value"
	// in order of names.
	Params string `json:"params,omitempty"`
	Target string `json:"target"`
}

// Trial is one execution of one benchmark on one target. It is recorded however
// it ended.
type Trial struct {
	// Seq counts the trials of a run from 1 in the order of their execution.
	Seq int `json:"seq"`
	Cell
	// Block counts the blocks of this benchmark from 0; warm-up blocks have a
	// count of their own.
	Block  int    `json:"block"`
	Warmup bool   `json:"warmup,omitempty"`
	Status Status `json:"status"`
	// Reason says why a trial is not ok, with what to do where that is known.
	Reason string `json:"reason,omitempty"`
	// Output is the end of what the failed program or runtime wrote.
	Output string `json:"output,omitempty"`
	// Started is wall-clock time, for reading; nothing is computed from it.
	Started time.Time `json:"started"`
	// Elapsed is the length of the whole trial with its set-up and clean-up.
	Elapsed time.Duration `json:"elapsed_ns"`
	Phases  []Phase       `json:"phases,omitempty"`
	Samples []Sample      `json:"samples,omitempty"`
	// Distributions are what a program inside found out of many values that it
	// does not report one by one.
	Distributions []Distribution `json:"distributions,omitempty"`
	// Conditions are what the trial was measured under, in words by name: the path of the packets, the
	// file system, whether caches were cold.
	Conditions map[string]string `json:"conditions,omitempty"`
	Host       Disturbance       `json:"host"`
	// Self is the CPU time that Touchstone itself used during the trial.
	Self time.Duration `json:"self_cpu_ns"`
}

// Bounds of what a trial says of its conditions.
const (
	MaxConditions = 32
	// MaxCondition is the longest name or value, in bytes.
	MaxCondition = 1000
)

// ConditionText makes text that programs or the host gave fit for a condition, or for another place on one line: printable, and
// not longer than MaxCondition.
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
		const more = "…"
		text = strings.ToValidUTF8(text[:MaxCondition-len(more)], "") + more
	}
	return text
}

// Phase is a named timed region of a trial. It holds exactly one call of the engine. Where that
// consists of several calls to a daemon, each is a step, named "phase/Step", within the phase.
type Phase struct {
	Name string `json:"name"`
	// Start counts from the start of the trial.
	Start    time.Duration `json:"start_ns"`
	Duration time.Duration `json:"duration_ns"`
}

// Sample is one value of a metric. The samples of a series stand in order.
type Sample struct {
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
}

// Distribution is a histogram. Bucket i begins at Lows[i], where the one before ends at
// the latest, and has Counts[i] values.
type Distribution struct {
	Metric string    `json:"metric"`
	Unit   Unit      `json:"unit"`
	Lows   []float64 `json:"lows"`
	Counts []uint64  `json:"counts"`
	// Batch is the number of events each value is the mean of, 1 for single events.
	Batch uint64 `json:"batch"`
}

// Values gives the values of a metric in the order in which they were taken.
func (t *Trial) Values(metric string) []float64 {
	var values []float64
	for _, s := range t.Samples {
		if s.Metric == metric {
			values = append(values, s.Value)
		}
	}
	return values
}

// Disturbance is what the host did during a trial beside the trial. Fields that
// the host does not offer are absent (nil), never zero.
type Disturbance struct {
	// Steal is the share (0–1) of all CPU time that the hypervisor withheld.
	Steal *float64 `json:"steal,omitempty"`
	// CPUPressure, MemoryPressure and IOPressure are the shares (0–1) of the
	// trial in which some task waited for it (PSI, "some").
	CPUPressure    *float64 `json:"cpu_pressure,omitempty"`
	MemoryPressure *float64 `json:"memory_pressure,omitempty"`
	IOPressure     *float64 `json:"io_pressure,omitempty"`
	// Load is the load average of the last minute at the end of the trial.
	Load *float64 `json:"load1,omitempty"`
	// MHz is the mean frequency of the CPUs at the end of the trial.
	MHz *float64 `json:"cpu_mhz,omitempty"`
	// Throttled counts thermal throttling events of all cores during the trial.
	Throttled *int64 `json:"throttled,omitempty"`
	// Marks says in words why the trial counts as disturbed; empty if it does not.
	Marks []string `json:"marks,omitempty"`
}

// Target is a target of a run as it was found on the host.
type Target struct {
	Name string `json:"name"`
	// Kind is the way in which the target starts a program. It is empty for a target that takes no part in the split
	// into layers.
	Kind Kind `json:"kind,omitempty"`
	// Runtime is the runtime with its options, such as "runsc@platform=systrap". The targets of a bare runtime and of
	// the engines that drive it have the same.
	Runtime   string `json:"runtime,omitempty"`
	Binary    string `json:"binary,omitempty"`
	Version   string `json:"version,omitempty"`
	Isolation string `json:"isolation,omitempty"`
	Cgroup    string `json:"cgroup,omitempty"`
	Rootless  bool   `json:"rootless,omitempty"`
	// Notes says what had to be arranged for this target on this host.
	Notes []string `json:"notes,omitempty"`
	// Unavailable is the reason why no trial could run on it, empty if one could.
	Unavailable string `json:"unavailable,omitempty"`
}

// Kind is the way in which a target starts a program.
type Kind string

// The kinds of targets, from the inside out.
const (
	KindNative  Kind = "native"  // a process of the host, without a container
	KindRuntime Kind = "runtime" // a runtime that Touchstone calls itself
	KindEngine  Kind = "engine"  // an engine, with its shim or monitor, that calls the runtime
)

// Benchmark is a benchmark of a run with its metrics, so that a stored run can
// be read without the program that made it.
type Benchmark struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Source  string   `json:"source"`
	Metrics []Metric `json:"metrics"`
	// Phases is set if a report shows the timed regions of the trials.
	Phases bool `json:"phases,omitempty"`
	// Place labels the places of a series in plots, such as "number of the container, in order of start".
	Place string `json:"place,omitempty"`
}

// Image is an image that programs of a run come from.
type Image struct {
	// Name is as plans have it: "workload", or a path or reference of the user's.
	Name string `json:"name"`
	// Digest is that of the image's manifest: "sha256:…". It is absent if the image could not be had.
	Digest string `json:"digest,omitempty"`
	// Size is that of all layers as a registry serves them, in bytes.
	Size int64 `json:"size_bytes,omitempty"`
	// Unavailable is the reason why it could not be had, empty if it could.
	Unavailable string `json:"unavailable,omitempty"`
}

// Overhead is Touchstone's own cost, measured at the start of the run.
type Overhead struct {
	// EmptyRegion is the median length of a timed region that holds nothing.
	EmptyRegion time.Duration `json:"empty_region_ns"`
	// Exec is the median time to start the probe as a bare process, which does
	// nothing, and to see its end: what every call of a runtime's binary pays.
	Exec time.Duration `json:"exec_ns"`
}

// State is how far a run came.
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
	// Images are those that the run's programs come from, beside the probe's own.
	Images []Image `json:"images,omitempty"`
	// Caveats are sentences about things that Touchstone did not measure or could not hold constant in this run.
	Caveats []string `json:"caveats,omitempty"`
	Trials  []Trial  `json:"trials"`
}

// Tool is the program that made a run.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
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
	LSM        string `json:"lsm,omitempty"`             // active security modules
	Mitigation string `json:"mitigations,omitempty"`     // one line: which vulnerabilities are mitigated and how
	Cmdline    string `json:"kernel_cmdline,omitempty"`
	Root       bool   `json:"root"`
	// Warnings says what on this host makes results less stable, and what to do.
	Warnings []string `json:"warnings,omitempty"`
}
