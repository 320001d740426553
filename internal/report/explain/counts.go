package explain

import (
	"cmp"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Kind is the kind of a count.
type Kind string

// The kinds in display order.
const (
	Program Kind = "exec"
	Mount   Kind = "mount"
	Sync    Kind = "fsync"
	Process Kind = "new process"
	Thread  Kind = "new thread"
	Call    Kind = "system call"
	Fault   Kind = "page fault"
)

var kinds = []Kind{Program, Mount, Sync, Process, Thread, Call, Fault}

// Count is a count that differs.
type Count struct {
	Step, Component string
	Kind            Kind
	// Name is the program or the system call. It is empty for kinds without names.
	Name string
	A, B analysis.Range
}

// Difference is the smallest difference between a trace of B and a trace of A.
func (c *Count) Difference() int64 {
	if c.B.Least > c.A.Most {
		return c.B.Least - c.A.Most
	}
	return c.B.Most - c.A.Least
}

// Exact reports whether each target has the same count in all traces.
func (c *Count) Exact() bool { return c.A.Least == c.A.Most && c.B.Least == c.B.Most }

// countKey is a count of a place.
type countKey struct {
	place
	kind Kind
	name string
}

// newCounts lists the counts of a phase whose ranges do not overlap. They must not overlap either if the work between the calls is added: the first
// calls of a container's program are in start or after it, by chance.
func newCounts(phase string, tracesA, tracesB []*result.Trace) (counts []Count) {
	valuesA, valuesB := countsOf(phase, tracesA), countsOf(phase, tracesB)
	betweenA, betweenB := countsOf("", tracesA), countsOf("", tracesB)
	keys := map[countKey]bool{}
	for _, trace := range slices.Concat(valuesA, valuesB) {
		for key := range trace {
			keys[key] = true
		}
	}
	for key := range keys {
		c := Count{Step: key.step, Component: key.component, Kind: key.kind, Name: key.name, A: rangeOf(valuesA, key, nil), B: rangeOf(valuesB, key, nil)}
		if !overlap(c.A, c.B) && !overlap(rangeOf(valuesA, key, betweenA), rangeOf(valuesB, key, betweenB)) {
			counts = append(counts, c)
		}
	}
	size := func(c *Count) int64 { return max(c.Difference(), -c.Difference()) }
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(
			slices.Index(kinds, a.Kind)-slices.Index(kinds, b.Kind), cmp.Compare(size(&b), size(&a)),
			cmp.Compare(a.Step, b.Step), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name),
		)
	})
	return counts
}

// countsOf are the counts of a phase in each trace.
func countsOf(phase string, traces []*result.Trace) []map[countKey]int64 {
	list := make([]map[countKey]int64, len(traces))
	for i, t := range traces {
		counts := map[countKey]int64{}
		for _, c := range t.Counts {
			if analysis.PhaseOf(c.Step) != phase {
				continue
			}
			add := func(kind Kind, name string, n int64) { counts[countKey{place{c.Step, c.Component}, kind, name}] += n }
			for name, n := range c.Programs {
				add(Program, name, n)
			}
			for name, n := range c.Calls {
				add(kindOf(name), name, n)
			}
			add(Process, "", c.Processes)
			add(Thread, "", c.Threads)
			add(Fault, "", c.Faults)
		}
		list[i] = counts
	}
	return list
}

// kindOf is the kind of a system call.
func kindOf(call string) Kind {
	switch {
	case call == "mount" || call == "move_mount":
		return Mount
	case result.CauseOf(call) == result.CauseDisk:
		return Sync
	default:
		return Call
	}
}

// rangeOf is the range of a count over traces, with the same count in addition. A trace without it has 0.
func rangeOf(traces []map[countKey]int64, key countKey, addition []map[countKey]int64) analysis.Range {
	values := make([]int64, len(traces))
	for i, trace := range traces {
		values[i] = trace[key]
		if addition != nil {
			rest := key
			rest.step = ""
			values[i] += addition[i][rest]
		}
	}
	return analysis.Range{Least: slices.Min(values), Most: slices.Max(values)}
}

func overlap(a, b analysis.Range) bool { return a.Least <= b.Most && b.Least <= a.Most }
