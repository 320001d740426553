package plan

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/target"
)

// Overrides are what the flags of the command line change in a plan. What is nil was not
// given and leaves the plan as it is.
type Overrides struct {
	Targets   []string       // --targets
	Filters   []string       // --filter; replaces the plan's benchmarks and their parameters
	Blocks    *int           // --runs
	Warmup    *int           // --warmup
	Precision *string        // --precision, as in a plan
	Budget    *time.Duration // --budget
	Timeout   *time.Duration // --timeout, that of a trial
	Seed      *uint64        // --seed
	Runtimes  []string       // --runtime name=path; added to the plan's
}

// Apply gives p with the overrides. The error is a *FlagError, or several of them joined.
// A filter that selects nothing is found by Resolve.
func (p Plan) Apply(o Overrides) (Plan, error) {
	var faults faults
	fail := func(flag, value string, f *flaw) bool {
		if f != nil {
			faults.add(place{flag: flag}, value, *f)
		}
		return f != nil
	}
	if o.Targets != nil {
		p.Targets = targetsOf(o.Targets, fail)
		if p.Targets != nil && p.Baseline.Engine != "" {
			fail("--targets", strings.Join(o.Targets, ","), checkBaseline(p.Baseline, p.Targets))
		}
	}
	if o.Filters != nil {
		p.Benchmarks = nil
		if len(o.Filters) == 0 {
			fail("--filter", "", &flaw{"no benchmark is named", "name some, or leave the flag out"})
		}
		for _, s := range o.Filters {
			if !fail("--filter", s, checkFilter(s)) {
				p.Benchmarks = append(p.Benchmarks, Item{Name: s, at: place{flag: "--filter"}})
			}
		}
	}
	if o.Precision != nil {
		share, f := parsePercent(*o.Precision)
		fail("--precision", *o.Precision, f)
		p.Precision = share
	}
	if o.Blocks != nil {
		p.Blocks = *o.Blocks
		f := checkCount(p.Blocks, 1, MaxBlocks)
		if f == nil && p.MaxBlocks != 0 && p.Blocks > p.MaxBlocks {
			f = &flaw{fmt.Sprintf("%d is more than max-blocks (%d) of the plan", p.Blocks, p.MaxBlocks), "give less, or raise max-blocks in the plan"}
		}
		fail("--runs", strconv.Itoa(p.Blocks), f)
	}
	if o.Warmup != nil {
		p.Warmup = *o.Warmup
		fail("--warmup", strconv.Itoa(p.Warmup), checkCount(p.Warmup, 0, MaxBlocks))
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
	p.Runtimes = maps.Clone(p.Runtimes)
	for _, s := range o.Runtimes {
		name, path, ok := strings.Cut(s, "=")
		if !ok {
			fail("--runtime", s, &flaw{quote(s) + " is not name=path", "write it like mycrun=/opt/crun/bin/crun"})
			continue
		}
		if fail("--runtime", s, checkRuntimeName(name)) || fail("--runtime", s, checkBinary(name, path)) {
			continue
		}
		if p.Runtimes == nil {
			p.Runtimes = map[string]target.Runtime{}
		}
		p.Runtimes[name] = target.Runtime{Path: path}
	}
	if err := faults.err(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// joinOptions puts targets together that were split at the commas between their options: an
// item such as start=5ms goes on with the options of the target before it.
func joinOptions(list []string) []string {
	var joined []string
	for _, item := range list {
		name, _, isOption := strings.Cut(item, "=")
		last := len(joined) - 1
		if isOption && !strings.ContainsAny(name, "/@") && last >= 0 && strings.Contains(joined[last], "@") {
			joined[last] += "," + item
			continue
		}
		joined = append(joined, item)
	}
	return joined
}

// targetsOf reads the targets of --targets.
func targetsOf(list []string, fail func(flag, value string, f *flaw) bool) []target.Target {
	if len(list) == 0 {
		fail("--targets", "", &flaw{"no target is named", "name some, or leave the flag out to have all that are found"})
		return nil
	}
	var targets []target.Target
	for _, s := range joinOptions(list) {
		t, f := parseTarget(s)
		if f == nil {
			f = checkTargets(append(targets, t))
		}
		if !fail("--targets", s, f) {
			targets = append(targets, t)
		}
	}
	return targets
}
