// Package plan reads what to measure: a YAML file that says targets × benchmarks
// × parameters × repetitions, or a file of TouchStone's own format, and resolves
// it against the catalogue of benchmarks.
//
// A plan is untrusted and is written by hand, so a mistake must neither pass nor
// cost a search: keys are strict, every error has the line and the column of the value
// it is about, near names are offered, and several errors are told at once. That is why
// the file is read from its syntax tree and not decoded into a struct, which would
// lose the positions that Resolve needs long after the parsing.
//
// It refuses what a plan has no use for and an attacker might: input above MaxSize, more
// than MaxTokens tokens, anchors, aliases, merge keys, tags, directives and
// several documents in a file. Without aliases no input can grow when it is read.
//
// Whether a target exists on this machine is not known here; the engines say so.
package plan

import (
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Limits of a plan.
const (
	// Version is the version of the format. It is raised when a key changes its
	// meaning or goes away; a new key does not raise it.
	Version = 1
	// MaxSize is the longest file that is read, in bytes.
	MaxSize = 1 << 20
	// MaxTokens bounds the tokens of a file. The parser's effort can grow with their
	// square, and its depth with their number.
	MaxTokens = 10_000
	// MaxBlocks is the highest number of blocks.
	MaxBlocks = 100_000
	// MaxTargets and MaxItems bound the lists of a plan.
	MaxTargets = 100
	MaxItems   = 1000
	// MaxRuntimes bounds the named runtimes, sockets and binaries, MaxOptions the options of a
	// runtime.
	MaxRuntimes = 100
	MaxOptions  = 100
	// MaxWorkloads bounds the user's own workloads, MaxMetrics the metrics of one.
	MaxWorkloads = 100
	MaxMetrics   = 100
	// MaxDuration is the longest budget or time limit.
	MaxDuration = 365 * 24 * time.Hour
)

// What holds where a plan file is silent.
const (
	DefaultBlocks = 20
	DefaultWarmup = 1
	// DefaultTrialTimeout holds for quick parameters, DefaultPaperTimeout for the paper's, with which programs do
	// a fixed amount of work: what takes bare metal ten seconds may take a runtime that intercepts each system
	// call ten minutes.
	DefaultTrialTimeout = 2 * time.Minute
	DefaultPaperTimeout = 30 * time.Minute
	DefaultCallTimeout  = 30 * time.Second
	// DefaultGrowth times the blocks is the most a stop rule may ask for.
	DefaultGrowth = 5
)

// Plan says what to measure and how often. Its zero value is no plan: one comes from
// Load, Parse, Builtin or Quick.
type Plan struct {
	Name string
	// Targets are measured in every block; nil stands for those that are found and that an engine
	// offers by default.
	Targets []Pattern
	// Baseline is the target the others are compared with. The zero value stands
	// for native where it can run the benchmark, and else the first target.
	Baseline target.Target
	// Benchmarks are what is measured; nil stands for all of the catalogue.
	Benchmarks []Item
	Parameters Parameters
	// Blocks is the number of measured repetitions, Warmup that of those before them.
	Blocks, Warmup int
	// Precision is the wanted half-width of each interval as a share of its median (0.02
	// is ± 2 %). If it is not 0, blocks go on after Blocks until it is reached.
	Precision float64
	// MaxBlocks ends the search for Precision; 0 is not set. See BlockLimit.
	MaxBlocks int
	// Budget is the longest time for the whole run; 0 is without limit.
	Budget  time.Duration
	Timeout Timeout
	// Seed decides the order of trials; nil asks for one to be drawn.
	Seed *uint64
	// Runtimes says what names of runtimes stand for.
	Runtimes map[string]target.Runtime
	// Engines says which daemons and programs engines use.
	Engines Engines
	// Pinning says on which CPUs the parts of the run stay.
	Pinning Pinning
	// DropCaches lets benchmarks of cold files drop the host's page cache; nil leaves it to DropsCaches.
	DropCaches *bool
	// Workloads are benchmarks of the user's own.
	Workloads []Workload
	// Export is the name of a JSON file to which the run is exported beside the database; empty for none.
	Export string
	// Notes say what in the file has no effect, and why. They are about the file
	// and no part of the plan: YAML leaves them out.
	Notes []string

	// Hints name the present keys for old ones in the file, each with its location. YAML leaves them out.
	Hints []string

	// at is where the values stand that Check looks at, by their keys.
	at map[string]location
}

// Item selects benchmarks, and may set parameters of theirs.
type Item struct {
	// Name is a filter over whole components of names; see bench.Matches.
	Name string
	// Image leaves all benchmarks out whose programs come from another image than this one of ours; empty leaves none out.
	Image  string
	Params bench.Params

	at      location
	paramAt map[string]location
}

// Timeout limits the time of what can hang.
type Timeout struct {
	Trial time.Duration // one trial, with its set-up
	Call  time.Duration // one call of an engine
}

// Parameters says which values benchmark parameters have unless they are given.
type Parameters string

// The choices of values there are.
const (
	QuickValues Parameters = "quick"
	PaperValues Parameters = "paper"
)

// trialTimeout is what holds where none is given.
func (p Parameters) trialTimeout() time.Duration {
	if p == PaperValues {
		return DefaultPaperTimeout
	}
	return DefaultTrialTimeout
}

// BlockLimit is the highest number of measured blocks that the plan allows: Blocks
// without a stop rule, and with one MaxBlocks or DefaultGrowth × Blocks.
func (p Plan) BlockLimit() int {
	switch {
	case p.Precision == 0:
		return p.Blocks
	case p.MaxBlocks != 0:
		return p.MaxBlocks
	default:
		return min(DefaultGrowth*p.Blocks, MaxBlocks)
	}
}

// Load reads a plan from a file. Errors of its content are as Parse has them.
func Load(path string) (Plan, error) {
	data, err := read(path)
	if err != nil {
		return Plan{}, fmt.Errorf("open plan: %w", err)
	}
	return Parse(path, data)
}

// read reads a file, of which more than MaxSize shows that it has more.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// WithRuntimes gives p with the user's own runtimes too. What the plan itself says of the same name
// holds.
func (p Plan) WithRuntimes(users map[string]target.Runtime) Plan {
	if len(users) == 0 {
		return p
	}
	both := maps.Clone(users)
	maps.Copy(both, p.Runtimes)
	p.Runtimes = both
	return p
}

// Parse reads a plan in our format or in TouchStone's own, which it tells apart by
// their keys. The name of the file is for errors, and for the plan if it has no name.
// The error is an *Error, or several of them joined.
func Parse(file string, data []byte) (Plan, error) {
	root, err := parseTree(file, data)
	if err == nil && root == nil {
		err = location{file: file}.error("", problem{"the plan is empty", `write at least "version: 1"`})
	}
	if err != nil {
		return Plan{}, err
	}
	r := &reader{file: file}
	r.read(root)
	if err := r.problems.err(); err != nil {
		return Plan{}, err
	}
	r.plan.Hints = r.hints
	return r.plan, nil
}
