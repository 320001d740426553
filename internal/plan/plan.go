// Package plan reads a plan: a YAML file with targets × benchmarks × parameters × repetitions, or a file of TouchStone's own
// format. It resolves the plan against the catalogue of benchmarks.
//
// A plan is untrusted and written by hand, so a mistake must neither pass unnoticed nor be hard to find. Keys are strict, every
// error has the line and the column of its value, advice contains similar names, and several errors are reported together. For this
// reason the package reads the syntax tree. Decoding into a struct would lose the locations, which Resolve needs long after the
// parsing.
//
// The package refuses input that only an attacker needs: more than MaxSize bytes, more than MaxTokens tokens, anchors, aliases,
// merge keys, tags, directives and several documents in a file. Without aliases no input can grow when it is read.
//
// The engines, not this package, check the existence of targets on this machine.
package plan

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/examples"
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/custom"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// Limits of a plan.
const (
	// Version is the version of the format. It is raised when a key changes its meaning or is removed; a new key or a new name does
	// not raise it.
	Version = 1
	// MaxSize is the maximum size of a file in bytes.
	MaxSize = 1 << 20
	// MaxTokens is the maximum number of tokens in a file. The parser's effort can grow with the square of this number, and its
	// recursion depth with the number itself.
	MaxTokens = 10_000
	// MaxBlocks is the highest number of blocks.
	MaxBlocks = 100_000
	// MaxTargets and MaxItems bound the lists of a plan.
	MaxTargets = 100
	MaxItems   = 1000
	// MaxRuntimes is the maximum number of named runtimes, sockets and binaries, MaxOptions of options per runtime.
	MaxRuntimes = 100
	MaxOptions  = 100
	// MaxWorkloads is the maximum number of custom workloads, MaxMetrics of metrics per workload.
	MaxWorkloads = 100
	MaxMetrics   = 100
	// MaxDuration is the longest budget or time limit.
	MaxDuration = 365 * 24 * time.Hour
)

// Defaults of a plan.
const (
	DefaultBlocks = 20
	DefaultWarmup = 1
	// DefaultTrialTimeout applies to quick parameters, DefaultPaperTimeout to paper parameters. With paper parameters programs do a
	// fixed amount of work. Work that takes bare metal ten seconds may take a runtime that intercepts each system call ten minutes.
	DefaultTrialTimeout = 2 * time.Minute
	DefaultPaperTimeout = 30 * time.Minute
	DefaultCallTimeout  = 30 * time.Second
	// DefaultGrowth × Blocks is the default limit of blocks for a stop rule.
	DefaultGrowth = 5
)

// Plan is a plan after reading. The zero value is not valid; use Load, Parse, Builtin or Quick. The tags are the keys of the format;
// the order of the fields is the canonical order of the keys.
type Plan struct {
	Name string `yaml:"name"`
	// Targets are measured in every block. Nil selects the targets found that an engine offers by default.
	Targets []Pattern `yaml:"targets,omitempty"`
	// Baseline is the target for comparisons. The zero value selects native if it can run the benchmark, otherwise the first
	// target.
	Baseline target.Target `yaml:"baseline,omitempty"`
	// Benchmarks selects the benchmarks; nil selects the whole catalogue.
	Benchmarks []Item     `yaml:"benchmarks,omitempty"`
	Parameters Parameters `yaml:"parameters"`
	// Limits are the limits of all containers. The limits of an item take precedence.
	Limits Limits `yaml:"limits,omitempty"`
	// Blocks is the number of measured repetitions, Warmup of the repetitions before them.
	Blocks int `yaml:"blocks"`
	Warmup int `yaml:"warmup"`
	// Until is the rule that ends single cells; empty for none. Blocks is then the number of blocks before its first look.
	Until Until `yaml:"until,omitempty"`
	// Precision is the required half-width of each interval as a share of its median. If it is not 0, the run
	// continues after Blocks until all intervals have it. With Until it is of the intervals of ratios, and ends single cells.
	Precision Share `yaml:"precision,omitempty"`
	// MaxBlocks is the limit of blocks for Until and Precision; 0 is not set. See BlockLimit.
	MaxBlocks int `yaml:"max-blocks,omitempty"`
	// Budget is the maximum time of the whole run; 0 is no limit.
	Budget  time.Duration `yaml:"budget,omitempty"`
	Timeout Timeout       `yaml:"timeout"`
	// Seed is the seed of the order of trials; without it a seed is drawn.
	Seed *uint64 `yaml:"seed,omitempty"`
	// Runtimes holds the plan's own runtimes by name.
	Runtimes map[string]target.Runtime `yaml:"runtimes,omitempty"`
	// Engines are the daemons and programs of the engines.
	Engines Engines `yaml:"engines,omitempty"`
	// Seccomp is the filter of system calls of all containers.
	Seccomp engine.Seccomp `yaml:"seccomp,omitempty"`
	// Pods are the properties of pods over CRI.
	Pods Pods `yaml:"pods,omitempty"`
	// Pinning holds the CPUs for each part of the run.
	Pinning Pinning `yaml:"pinning,omitempty"`
	// DropCaches lets benchmarks of cold files drop the host's page cache; nil leaves it to DropsCaches.
	DropCaches *bool `yaml:"drop-caches,omitempty"`
	// Monitor holds what is sampled during the trials of all benchmarks.
	Monitor Monitor `yaml:"monitor,omitempty"`
	// Trace is the number of traced trials of each cell, after the timed ones.
	Trace int `yaml:"trace,omitempty"`
	// TracePaths adds the paths of opened files to the traces.
	TracePaths bool `yaml:"trace-paths,omitempty"`
	// Workloads are the custom workloads.
	Workloads []Workload `yaml:"workloads,omitempty"`
	// Nodes are the nodes of a cluster. Parallel is the number of nodes that measure at once; 0 is all of them. On a machine they have no effect.
	Nodes    Nodes `yaml:"nodes,omitempty"`
	Parallel int   `yaml:"parallel,omitempty"`
	// Export is the name of a JSON file for an export of the run, in the folder of the database; empty for none.
	Export string `yaml:"export,omitempty"`
	// TouchstoneOutput is the name of a JSON file in TouchStone's form, in the same folder. The run is appended. It is empty for none.
	TouchstoneOutput string `yaml:"touchstone-output,omitempty"`
	// Notes list keys without effect, each with the reason. They describe the file, so YAML omits them.
	Notes []string `yaml:"-"`

	// at holds the locations of values for Check, by key.
	at map[string]Location
}

// Item selects benchmarks, and may set their parameters.
type Item struct {
	// Name is a filter over whole components of names; see bench.Matches.
	Name string `yaml:"name"`
	// Image selects only benchmarks with programs from this image of Touchstone's; empty selects all.
	Image  string       `yaml:"image,omitempty"`
	Params bench.Params `yaml:"params,omitempty"`
	Limits Limits       `yaml:"limits,omitempty"`
	// Monitor takes precedence over the plan's.
	Monitor Monitor `yaml:"monitor,omitempty"`
	// Blocks takes precedence over the plan's blocks and precision; 0 is not set.
	Blocks int `yaml:"blocks,omitempty"`

	at      Location
	paramAt map[string]Location
	limitAt map[string]Location
}

// Timeout holds limits for calls and trials that can hang.
type Timeout struct {
	Trial time.Duration `yaml:"trial"` // one trial, with its set-up
	Call  time.Duration `yaml:"call"`  // one call of an engine
}

// Until selects a rule that ends single cells.
type Until string

// Decided is the rule that a cell ends once its comparisons with the baseline show a difference, or are as precise as Precision.
const Decided Until = "decided"

// Share is a part of a whole: 0.02 is 2 %.
type Share float64

// Parameters selects the default values of benchmark parameters.
type Parameters string

// The sets of default values.
const (
	QuickValues Parameters = "quick"
	PaperValues Parameters = "paper"
)

// trialTimeout returns the default time limit of a trial.
func (p Parameters) trialTimeout() time.Duration {
	if p == PaperValues {
		return DefaultPaperTimeout
	}
	return DefaultTrialTimeout
}

// BlockLimit returns the maximum number of measured blocks: Blocks without a rule that adds blocks; with one MaxBlocks, or DefaultGrowth ×
// Blocks.
func (p Plan) BlockLimit() int {
	switch {
	case p.Precision == 0 && p.Until == "":
		return p.Blocks
	case p.MaxBlocks != 0:
		return p.MaxBlocks
	default:
		return min(DefaultGrowth*p.Blocks, MaxBlocks)
	}
}

// Load reads a plan from a file. Its errors have the types of Parse's errors.
func Load(path string) (Plan, error) {
	data, err := read(path)
	if err != nil {
		return Plan{}, fmt.Errorf("open plan: %w", err)
	}
	return Parse(path, data)
}

// read reads a file up to one byte more than MaxSize, which shows that the file is too long.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// WithRuntimes returns p with the user's own runtimes added. A runtime of the plan takes precedence.
func (p Plan) WithRuntimes(users map[string]target.Runtime) Plan {
	if len(users) == 0 {
		return p
	}
	union := maps.Clone(users)
	maps.Copy(union, p.Runtimes)
	p.Runtimes = union
	return p
}

// Parse reads a plan in Touchstone's format or in TouchStone's own, which have different keys. The file name appears in errors and
// is the default name of the plan. The error is an *Error, or several of them joined.
func Parse(file string, data []byte) (Plan, error) {
	data, root, err := parseTree(file, data, textfile.Plan)
	if err == nil && root == nil {
		err = Location{File: file}.error("", problem{"the plan is empty", `write at least "version: 1"`})
	}
	if err != nil {
		return Plan{}, err
	}
	r := &reader{file: file}
	r.read(root)
	if err := r.problems.with(blemishes(file, data)).err(); err != nil {
		return Plan{}, err
	}
	return r.plan, nil
}

// BuiltinPlan is a plan that needs no file.
type BuiltinPlan struct {
	Name string
	// Summary is a one-line description.
	Summary string
}

// Builtins lists the plans that need no file, the shortest first.
func Builtins() []BuiltinPlan {
	return []BuiltinPlan{
		{"quick", "a first look in a few minutes, without a workload image; the plan when none is given"},
		{"explain", "the life of a container with traces, for touchstone explain, in three minutes"},
		{"standard", "every benchmark with short parameters, on native, runc, crun and gVisor, in 30 minutes"},
		{"latency", "the worst case of exec, start and a system call, from many thousand samples, in an hour"},
		{"paper", "every benchmark with the parameters of the studies, in hours"},
	}
}

// Builtin returns a built-in plan. The error for an unknown name lists the names.
func Builtin(name string) (Plan, error) {
	var names []string
	for _, b := range Builtins() {
		if b.Name == name {
			return builtin(name)
		}
		names = append(names, b.Name)
	}
	f := problem{"no plan is named " + quote(name), didYouMean(name, names, "there are "+strings.Join(names, ", ")+"; a plan of your own is given with -f")}
	return Plan{}, Location{Flag: "--plan"}.error(name, f)
}

func builtin(name string) (Plan, error) {
	file := name + ".yaml"
	text, err := fs.ReadFile(examples.Builtin, file)
	if err != nil {
		return Plan{}, fmt.Errorf("read the plan %s: %w", name, err)
	}
	return Parse(file, text)
}

// Quick returns the default plan.
func Quick() Plan { return own("quick") }

// Cluster returns the default plan of a cluster run.
func Cluster() Plan { return own("cluster") }

// own returns a plan that is part of the program.
func own(name string) Plan {
	p, err := builtin(name)
	if err != nil {
		panic(fmt.Sprintf("a plan that is part of the program cannot be read: %v", err))
	}
	return p
}

// YAML spells a plan canonically in Touchstone's format, with every default. Parse returns the same plan from it (except Notes),
// and equal plans have equal spellings. A run keeps this form and is resumed from it.
func (p Plan) YAML() []byte {
	document := struct {
		Version int `yaml:"version"`
		Plan    `yaml:",inline"`
	}{Version, p}
	out, err := yaml.MarshalWithOptions(document,
		yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) { return []byte(formatDuration(d)), nil }),
		yaml.CustomMarshaler(func(s Share) ([]byte, error) { return []byte(formatPercent(s)), nil }),
		yaml.CustomMarshaler(func(i bench.Image) ([]byte, error) { return yaml.Marshal(imageName(i)) }),
		yaml.CustomMarshaler(scaleYAML),
		yaml.CustomMarshaler(runtimeYAML),
	)
	if err != nil {
		panic(fmt.Sprintf("a plan of plain texts and numbers cannot be written as YAML: %v", err))
	}
	return out
}

// scaleYAML converts a scale for YAML.
func scaleYAML(s custom.Scale) ([]byte, error) {
	if s.Auto != "" {
		return yaml.Marshal(s.Auto)
	}
	return yaml.Marshal(s.Factor)
}

// runtimeYAML converts a runtime for YAML: to its path if it has nothing else.
func runtimeYAML(r target.Runtime) ([]byte, error) {
	if r.Type == "" && len(r.Options) == 0 {
		return yaml.Marshal(r.Path)
	}
	var doc struct {
		Path    string            `yaml:"path,omitempty"`
		Type    string            `yaml:"type,omitempty"`
		Options map[string]string `yaml:"options,omitempty"`
	}
	doc.Path, doc.Type = r.Path, r.Type
	for _, o := range r.Options {
		put(&doc.Options, o.Name, o.Value)
	}
	return yaml.Marshal(doc)
}
