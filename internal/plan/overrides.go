package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Overrides are the changes to a plan by flags of the command line. A nil field leaves the plan as it is.
type Overrides struct {
	Targets   []string       // --targets
	Baseline  string         // --baseline
	Filters   []string       // --filter; replaces the plan's benchmarks and their parameters
	Blocks    *int           // --runs, of every benchmark
	Warmup    *int           // --warmup
	Precision *string        // --precision, as in a plan
	Until     *string        // --until, as in a plan
	MaxBlocks *int           // --max-blocks
	Budget    *time.Duration // --budget
	Timeout   *time.Duration // --timeout, for a trial
	Seed      *uint64        // --seed
	Runtimes  []string       // --runtime name=path; added to the plan's
	CRI       []string       // --cri name=socket; added to the plan's sockets
	Binaries  []string       // --engine-bin name=path; added to the plan's
	Managed   *bool          // --managed
	// Pin has the values of --pin. Parts without a value keep the plan's CPUs.
	Pin []string
	// Limits has the values of --limit. Other limits keep the plan's values.
	Limits     []string
	DropCaches *bool   // --drop-caches
	Monitor    *string // --monitor, of every benchmark
	Trace      *int    // --trace
	TracePaths *bool   // --trace-paths
	// Engines describes the engines of this version. Getenv reads the environment variables with the addresses of the
	// user's own daemons, over which the plan's sockets take precedence; nil reads none.
	Engines []engine.Description
	Getenv  func(string) string
}

// Apply returns p with the overrides. The error is an *Error, or several of them joined. Resolve finds a filter that selects nothing.
func (p Plan) Apply(o Overrides) (Plan, error) {
	var problems problems
	fail := func(flag, value string, f *problem) bool {
		if f != nil {
			problems.add(Location{Flag: flag}, value, *f)
		}
		return f != nil
	}
	if o.Targets != nil {
		p.Targets = targetsOf(o.Targets, fail)
		if p.Targets != nil && p.Baseline.Engine != "" && o.Baseline == "" {
			fail("--targets", strings.Join(o.Targets, ","), checkBaseline(p.Baseline, p.Targets))
		}
	}
	if o.Baseline != "" {
		baseline, f := parseTarget(o.Baseline)
		if f == nil && p.Targets != nil {
			f = checkBaseline(baseline, p.Targets)
		}
		fail("--baseline", o.Baseline, f)
		p.Baseline = baseline
	}
	if o.Filters != nil {
		p.Benchmarks = nil
		if len(o.Filters) == 0 {
			fail("--filter", "", &problem{"no benchmark is given", "give names, or leave the flag out"})
		}
		for _, s := range o.Filters {
			if !fail("--filter", s, filterSyntax.check(s)) {
				p.Benchmarks = append(p.Benchmarks, Item{Name: s, at: Location{Flag: "--filter"}})
			}
		}
	}
	if o.Precision != nil {
		share, f := parsePercent(*o.Precision)
		fail("--precision", *o.Precision, f)
		p.Precision = share
	}
	if o.Monitor != nil {
		monitor, f := parseMonitor(*o.Monitor)
		fail("--monitor", *o.Monitor, f)
		p.Monitor = monitor
		p.Benchmarks = slices.Clone(p.Benchmarks)
		for i := range p.Benchmarks {
			p.Benchmarks[i].Monitor = Monitor{}
		}
	}
	if o.Blocks != nil {
		p.Blocks = *o.Blocks
		p.Benchmarks = slices.Clone(p.Benchmarks)
		for i := range p.Benchmarks {
			p.Benchmarks[i].Blocks = 0
		}
		f := checkCount(p.Blocks, 1, MaxBlocks)
		if f == nil && o.MaxBlocks == nil && p.MaxBlocks != 0 && p.Blocks > p.MaxBlocks {
			f = &problem{fmt.Sprintf("%d is more than max-blocks (%d) of the plan", p.Blocks, p.MaxBlocks), "give less, or raise max-blocks in the plan"}
		}
		fail("--runs", strconv.Itoa(p.Blocks), f)
	}
	if o.Until != nil {
		rule, f := parseUntil(*o.Until)
		fail("--until", *o.Until, f)
		p.Until = rule
	}
	if o.MaxBlocks != nil {
		p.MaxBlocks = *o.MaxBlocks
		f := checkCount(p.MaxBlocks, 1, MaxBlocks)
		switch {
		case f != nil:
		case p.Precision == 0 && p.Until == "":
			f = &problem{fmt.Sprintf("%d has no effect without --precision or --until", p.MaxBlocks), "give one of them, or leave --max-blocks out"}
		case p.MaxBlocks < p.Blocks:
			f = &problem{fmt.Sprintf("%d is less than the number of blocks (%d)", p.MaxBlocks, p.Blocks), "raise it, or lower --runs"}
		}
		fail("--max-blocks", strconv.Itoa(p.MaxBlocks), f)
	}
	if p.Until != "" && problems.err() == nil && (o.Until != nil || o.Targets != nil || o.Blocks != nil || o.MaxBlocks != nil) {
		if f := p.checkUntil(); f != nil {
			fail("--until", string(p.Until), f)
		}
	}
	if o.Warmup != nil {
		p.Warmup = *o.Warmup
		fail("--warmup", strconv.Itoa(p.Warmup), checkCount(p.Warmup, 0, MaxBlocks))
	}
	if o.Trace != nil {
		p.Trace = *o.Trace
		fail("--trace", strconv.Itoa(p.Trace), checkCount(p.Trace, 0, MaxBlocks))
	}
	if o.TracePaths != nil {
		p.TracePaths = *o.TracePaths
	}
	if o.Budget != nil {
		p.Budget = *o.Budget
		fail("--budget", p.Budget.String(), checkDuration(p.Budget))
	}
	if o.Timeout != nil {
		p.Timeout.Trial = *o.Timeout
		fail("--timeout", p.Timeout.Trial.String(), checkDuration(p.Timeout.Trial))
	}
	if o.Seed != nil {
		seed := *o.Seed
		p.Seed = &seed
	}
	// addEach reads the values of a flag that are name=path.
	addEach := func(flag string, list []string, form, example string, checkName func(string) *problem, check func(name, path string) *problem, add func(name, path string)) {
		for _, s := range list {
			name, path, ok := strings.Cut(s, "=")
			switch {
			case !ok:
				fail(flag, s, &problem{quote(s) + " is not " + form, "write it like " + example})
			case fail(flag, s, checkName(name)) || fail(flag, s, check(name, path)):
			default:
				add(name, path)
			}
		}
	}
	p.Runtimes = maps.Clone(p.Runtimes)
	addEach("--runtime", o.Runtimes, "name=path", "mycrun=/opt/crun/bin/crun", checkRuntimeName, checkBinary, func(name, path string) {
		put(&p.Runtimes, name, target.Runtime{Path: path})
	})
	p.Engines.Sockets, p.Engines.Binaries = maps.Clone(p.Engines.Sockets), maps.Clone(p.Engines.Binaries)
	addEach("--cri", o.CRI, "name=socket", "containerd=/run/containerd/containerd.sock", o.checkCRIName, checkAddress, func(name, address string) {
		put(&p.Engines.Sockets, name, strings.TrimSpace(address))
	})
	for _, d := range o.Engines {
		const key = "engines.sockets"
		if _, ok := p.Engines.Sockets[d.Name]; ok {
			if f := o.checkSocket(d.Name); f != nil {
				problems.add(p.at[key+"."+d.Name], d.Name, problem{key + ": " + f.message, f.advice})
			}
		} else if d.AddressVariable != "" && o.Getenv != nil {
			if address := strings.TrimSpace(o.Getenv(d.AddressVariable)); address != "" {
				put(&p.Engines.Sockets, d.Name, recordable(address))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Engines.Binaries)) {
		const key = "engines.binaries"
		if f := o.checkBinaryName(name); f != nil {
			problems.add(p.at[key+"."+name], name, problem{key + ": " + f.message, f.advice})
		}
	}
	addEach("--engine-bin", o.Binaries, "name=path", "containerd=/usr/local/bin/containerd", o.checkBinaryName, checkBinary, func(name, path string) {
		put(&p.Engines.Binaries, name, path)
	})
	for flag, n := range map[string]int{"--runtime": len(p.Runtimes), "--cri": len(p.Engines.Sockets), "--engine-bin": len(p.Engines.Binaries)} {
		if n > MaxRuntimes {
			fail(flag, strconv.Itoa(n), &problem{fmt.Sprintf("together with the plan there are more than %d", MaxRuntimes), "leave out unused entries"})
		}
	}
	if o.Managed != nil {
		p.Engines.Managed = *o.Managed
	}
	p.at = maps.Clone(p.at)
	p.pin(o.Pin, fail)
	p.limit(o.Limits, fail)
	if o.DropCaches != nil {
		value := *o.DropCaches
		p.DropCaches = &value
		put(&p.at, "drop-caches", Location{Flag: "--drop-caches"})
	}
	if err := problems.err(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// joinOptions repairs targets that were split at the commas between their options: an item such as start=5ms belongs to the target
// before it.
func joinOptions(list []string) []string {
	var options []string
	for _, item := range list {
		name, _, isOption := strings.Cut(item, "=")
		last := len(options) - 1
		if isOption && !strings.ContainsAny(name, "/@") && last >= 0 && strings.Contains(options[last], "@") {
			options[last] += "," + item
			continue
		}
		options = append(options, item)
	}
	return options
}

// targetsOf reads the targets of --targets.
func targetsOf(list []string, fail func(flag, value string, f *problem) bool) []Pattern {
	if len(list) == 0 {
		fail("--targets", "", &problem{"no target is given", "give targets, or leave the flag out for all targets found"})
		return nil
	}
	var targets []Pattern
	for _, s := range joinOptions(list) {
		t, f := parsePattern(s)
		if f == nil {
			f = checkTargets(append(targets, t))
		}
		if !fail("--targets", s, f) {
			targets = append(targets, t)
		}
	}
	return targets
}
