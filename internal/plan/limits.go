package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Limits are the limits of each container of a benchmark, and of each process that stands for a container on native. A field is
// empty if a plan does not set it, and noLimit if a plan removes a limit that it would have otherwise. All other values have
// their canonical spelling.
type Limits struct {
	CPUs   string `yaml:"cpus,omitempty"`
	CPUSet string `yaml:"cpuset,omitempty"`
	Memory string `yaml:"memory,omitempty"`
	PIDs   string `yaml:"pids,omitempty"`
}

// noLimit is the value that removes a limit.
const noLimit = "none"

// The bounds of limits. A Go program such as runc needs about 10 MiB and 16 threads to set a container up in its cgroup.
const (
	leastCPUs   = 0.01 // the kernel's shortest quota, 1 ms in 100 ms
	mostCPUs    = 8192
	leastMemory = 16 << 20
	mostMemory  = 1 << 50
	leastPIDs   = 32
	mostPIDs    = 4 << 20 // the kernel's PID_MAX_LIMIT
)

// limit is one of the limits. canonical returns the canonical spelling of a value.
type limit struct {
	name      bench.Limit
	value     *string
	canonical func(string) (string, *problem)
}

// all lists the limits in the order of their keys.
func (l *Limits) all() []limit {
	return []limit{
		{bench.CPULimit, &l.CPUs, canonicalCPUs},
		{bench.CPUSetLimit, &l.CPUSet, canonicalCPUSet},
		{bench.MemoryLimit, &l.Memory, canonicalMemory},
		{bench.ProcessLimit, &l.PIDs, canonicalPIDs},
	}
}

// limitNames lists the keys.
func limitNames() []string {
	var names []string
	for _, l := range new(Limits).all() {
		names = append(names, string(l.name))
	}
	return names
}

// set checks a value and stores it.
func (l limit) set(value string) *problem {
	canonical := noLimit
	if value != noLimit {
		var f *problem
		if canonical, f = l.canonical(value); f != nil {
			return f
		}
	}
	*l.value = canonical
	return nil
}

var cpuCount = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,2})?$`)

func canonicalCPUs(s string) (string, *problem) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !cpuCount.MatchString(s) || n < leastCPUs || n > mostCPUs {
		return "", &problem{quote(s) + " is not a number of CPUs", fmt.Sprintf("write a number from %v to %d, such as 2 or 0.5, or none", leastCPUs, mostCPUs)}
	}
	return spellCPUs(n), nil
}

func spellCPUs(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func canonicalCPUSet(s string) (string, *problem) {
	if f := checkCPUs(s); f != nil {
		return "", f
	}
	set, _ := cpuset.Parse(s)
	return set.String(), nil
}

func canonicalPIDs(s string) (string, *problem) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || !decimal.MatchString(s) || n < leastPIDs || n > mostPIDs {
		return "", &problem{
			fmt.Sprintf("%s is not a whole number from %d to %d", quote(s), leastPIDs, mostPIDs),
			"a runtime needs some processes and threads to set a container up; write it like 512, or none",
		}
	}
	return s, nil
}

// amounts are the units of memory, the largest first.
var amounts = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}}

var amount = regexp.MustCompile(`^([1-9][0-9]{0,11})(GiB|GB|MiB|MB|KiB|kB)$`)

func canonicalMemory(s string) (string, *problem) {
	const advice = "write a whole number and a unit (KiB, MiB, GiB, kB, MB, GB), such as 512MiB, or none"
	m := amount.FindStringSubmatch(s)
	if m == nil {
		return "", &problem{quote(s) + " is not an amount of memory", advice}
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	for _, unit := range amounts {
		if unit.name != m[2] {
			continue
		}
		if err != nil || n > mostMemory/unit.bytes {
			return "", &problem{quote(s) + " is more than " + spellMemory(mostMemory), "give less"}
		}
		n *= unit.bytes
		break
	}
	if n < leastMemory {
		return "", &problem{quote(s) + " is less than " + spellMemory(leastMemory) + ", which a runtime needs to set a container up", "give more"}
	}
	return spellMemory(n), nil
}

// spellMemory spells an amount in the unit with the fewest digits.
func spellMemory(n int64) string {
	best := ""
	for _, unit := range amounts {
		if s := fmt.Sprintf("%d%s", n/unit.bytes, unit.name); n%unit.bytes == 0 && (best == "" || len(s) < len(best)) {
			best = s
		}
	}
	return best
}

// resources returns the limits for engines.
func (l Limits) resources() engine.Resources {
	var r engine.Resources
	if l.CPUs != noLimit {
		r.CPU, _ = strconv.ParseFloat(l.CPUs, 64) // 0 without a limit
	}
	if l.CPUSet != noLimit {
		r.CPUSet = l.CPUSet
	}
	if m := amount.FindStringSubmatch(l.Memory); m != nil {
		r.Memory, _ = strconv.ParseInt(m[1], 10, 64) // canonicalMemory has checked it
		for _, unit := range amounts {
			if unit.name == m[2] {
				r.Memory *= unit.bytes
			}
		}
	}
	if l.PIDs != noLimit {
		r.PIDs, _ = strconv.ParseInt(l.PIDs, 10, 64) // 0 without a limit
	}
	return r
}

// limitsOf is the inverse of resources.
func limitsOf(r engine.Resources) Limits {
	l := Limits{CPUSet: r.CPUSet}
	if r.CPU > 0 {
		l.CPUs = spellCPUs(r.CPU)
	}
	if r.Memory > 0 {
		l.Memory = spellMemory(r.Memory)
	}
	if r.PIDs > 0 {
		l.PIDs = strconv.FormatInt(r.PIDs, 10)
	}
	return l
}

// over returns l with the values of base where l has none.
func (l Limits) over(base Limits) Limits {
	return Limits{
		CPUs: cmp.Or(l.CPUs, base.CPUs), CPUSet: cmp.Or(l.CPUSet, base.CPUSet), Memory: cmp.Or(l.Memory, base.Memory), PIDs: cmp.Or(l.PIDs, base.PIDs),
	}
}

// without returns l without some limits.
func (l Limits) without(names []bench.Limit) Limits {
	for _, limit := range l.all() {
		if slices.Contains(names, limit.name) {
			*limit.value = ""
		}
	}
	return l
}

// pinned returns the limits of a work with a value for each limit that the paper's parameters would set.
func (w Work) pinned() Limits {
	l, paper := limitsOf(w.Limits), limitsOf(w.Benchmark.PaperLimits)
	defaults := paper.all()
	for i, limit := range l.all() {
		if *limit.value == "" && *defaults[i].value != "" {
			*limit.value = noLimit
		}
	}
	return l
}

// Key spells the parameters and the limits of the work, which distinguish it from other work with the same benchmark.
func (w Work) Key() string {
	items := []string{w.Params.String()}
	l := limitsOf(w.Limits)
	for _, limit := range l.all() {
		if *limit.value != "" {
			items = append(items, "limits."+string(limit.name)+"="+*limit.value)
		}
	}
	return strings.TrimSpace(strings.Join(items, " "))
}

// limitFields are the keys of limits. record receives the location of each value.
func (r *reader) limitFields(dest *Limits, record func(name bench.Limit, l Location)) []field {
	var fields []field
	for _, l := range dest.all() {
		fields = append(fields, field{string(l.name), func(n ast.Node) {
			key := "limits." + string(l.name)
			s, ok := scalar(n)
			if !ok {
				r.wrongKind(n, key, "a single value", "write it like "+limitExample)
				return
			}
			if f := l.set(s); f != nil {
				r.failKey(n, key, f)
				return
			}
			record(l.name, r.at(n))
		}})
	}
	return fields
}

const limitExample = `{cpus: 2, cpuset: "0-1", memory: 4GiB, pids: 512}`

// limit reads the values of --limit: name=value, separated by commas. A list of CPUs contains commas too: an item without name=
// belongs to the item before it. The flag also replaces the limits of single benchmarks.
func (p *Plan) limit(values []string, fail func(flag, value string, f *problem) bool) {
	p.Benchmarks = slices.Clone(p.Benchmarks)
	for _, item := range splitNamed(values) {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			fail("--limit", item, &problem{quote(item) + " is not limit=value", "write it like cpus=2,memory=4GiB"})
			continue
		}
		limits := p.Limits.all()
		i := slices.IndexFunc(limits, func(l limit) bool { return string(l.name) == name })
		if i < 0 {
			names := limitNames()
			fail("--limit", name, &problem{quote(name) + " is not a limit", didYouMean(name, names, "the limits are "+strings.Join(names, ", "))})
			continue
		}
		if fail("--limit", value, limits[i].set(value)) {
			continue
		}
		put(&p.at, "limits."+name, Location{Flag: "--limit"})
		for n := range p.Benchmarks {
			p.Benchmarks[n].Limits = p.Benchmarks[n].Limits.without([]bench.Limit{limits[i].name})
		}
	}
}

// limitsFor returns the limits of a benchmark: the item's, the plan's, and with paper parameters the paper's. Limits that the
// benchmark sets itself are left out.
func (p Plan) limitsFor(i Item, b bench.Benchmark) engine.Resources {
	l := i.Limits.over(p.Limits)
	if p.Parameters == PaperValues {
		l = l.over(limitsOf(b.PaperLimits))
	}
	return l.without(b.OwnLimits).resources()
}

// idle reports the limits of an item that none of the chosen benchmarks accepts.
func (i Item) idle(choice []bench.Benchmark, problems *problems) {
	for _, l := range i.Limits.all() {
		if *l.value == "" || len(choice) == 0 || slices.ContainsFunc(choice, func(b bench.Benchmark) bool { return !slices.Contains(b.OwnLimits, l.name) }) {
			continue
		}
		problems.add(i.limitLocation(l.name), *l.value, problem{
			fmt.Sprintf("limits.%s has no effect: %s sets this limit itself", l.name, choice[0].Name), "leave it out, or change the benchmark's parameters",
		})
	}
}

func (i Item) limitLocation(name bench.Limit) Location {
	if location, ok := i.limitAt[string(name)]; ok {
		return location
	}
	return i.at
}

// checkLimits compares all limits of the plan with the machine and the pinned CPUs.
func (p Plan) checkLimits(m Machine, problems *problems) (notes []string) {
	p.Limits.check(p, m, func(name bench.Limit) Location { return p.at["limits."+string(name)] }, problems)
	maximum := p.Limits.resources().CPU
	for _, item := range p.Benchmarks {
		item.Limits.check(p, m, item.limitLocation, problems)
		maximum = max(maximum, item.Limits.resources().CPU)
	}
	if maximum > float64(len(m.Online)) {
		notes = append(notes, fmt.Sprintf("limits.cpus: %s CPUs are no limit on this machine, which has %d", spellCPUs(maximum), len(m.Online)))
	}
	return notes
}

// check refuses CPU sets that cannot work.
func (l Limits) check(p Plan, m Machine, locate func(bench.Limit) Location, problems *problems) {
	r := l.resources()
	if r.CPUSet == "" {
		return
	}
	set, _ := cpuset.Parse(r.CPUSet) // canonicalCPUSet has checked it
	if missing := set.Without(m.Online); len(missing) > 0 {
		problems.add(locate(bench.CPUSetLimit), l.CPUSet, problem{
			fmt.Sprintf("limits.cpuset has CPU %s, which this machine does not have", missing), "the CPUs are " + m.Online.String(),
		})
	} else if closedCPUs := m.closed(set); len(closedCPUs) > 0 {
		problems.add(locate(bench.CPUSetLimit), l.CPUSet, problem{
			fmt.Sprintf("limits.cpuset has CPU %s, which the cpuset or the mask of this process excludes", closedCPUs), m.usableAdvice(),
		})
	}
	if cpus := p.Pinning.sets()["workload"]; len(cpus) > 0 && len(set.And(cpus)) == 0 {
		problems.add(locate(bench.CPUSetLimit), l.CPUSet, problem{
			fmt.Sprintf("limits.cpuset %s and pinning.workload %s have no CPU in common", set, cpus), "limits.cpuset replaces pinning.workload: leave one of them out",
		})
	}
}
