package counts

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

var lifecycle = analysis.Key{Name: "operations.container.lifecycle"}

// step is the work of the runtime in a step: calls by name.
func step(name string, calls map[string]int64) result.TraceCounts {
	return result.TraceCounts{Step: name, Component: "runtime", Calls: calls}
}

// side is n traces of a target.
func side(target string, n int, counts func(n int) []result.TraceCounts) Side {
	s := Side{Target: target}
	for i := range n {
		s.Traces = append(s.Traces, &result.Trace{Status: result.OK, Counts: counts(i)})
	}
	return s
}

// constant is a side whose traces have equal counts.
func constant(n int, counts ...result.TraceCounts) Side {
	return side("oci/runc", n, func(int) []result.TraceCounts { return counts })
}

func parse(t *testing.T, text string) Gate {
	t.Helper()
	g, err := ParseGate("--fail-on", text)
	must.Do(t, err)
	return g
}

// TestGate holds the answer of a gate for each relation of two counts.
func TestGate(t *testing.T) {
	base := constant(ShownBy, step("create", map[string]int64{"mount": 33, "openat": 60}), step("start", map[string]int64{"openat": 14}))
	noise := func(i int) []result.TraceCounts {
		return []result.TraceCounts{step("create", map[string]int64{"mount": 33, "openat": 60, "futex": int64(250 + i)}), step("start", map[string]int64{"openat": 14})}
	}
	moreMounts := []result.TraceCounts{step("create", map[string]int64{"mount": 35, "openat": 60}), step("start", map[string]int64{"openat": 14})}
	for _, c := range []struct {
		name, gate string
		a, b       Side
		learned    *Learned
		want       stats.Answer
		reason     string
	}{
		{"equal", "counts:all>0", base, base, nil, stats.NotWorse, "no count exceeds A by more than 0"},
		{"a mount more", "counts:mount,execve>0", base, constant(ShownBy, moreMounts...), nil, stats.Worse, "mount of runtime in create 33 → 35"},
		{"the group", "counts:mounts>0", base, constant(ShownBy, moreMounts...), nil, stats.Worse, "mounts of runtime in create 33 → 35"},
		{"within the difference", "counts:mount>2", base, constant(ShownBy, moreMounts...), nil, stats.NotWorse, "no count exceeds A by more than 2"},
		{"at the difference", "counts:mount>=2", base, constant(ShownBy, moreMounts...), nil, stats.Worse, "33 → 35"},
		{"a mount less", "counts:all>0", constant(ShownBy, moreMounts...), base, nil, stats.NotWorse, "no count exceeds"},
		{"few traces", "counts:mount>0", base, constant(3, moreMounts...), nil, stats.Inconclusive, "3 traces a side do not show that these counts are stable: record both sides with --trace 10"},
		{
			"few traces of a stable count", "counts:mount>0", constant(LearnedBy, base.Traces[0].Counts...), constant(LearnedBy, moreMounts...),
			&Learned{Traces: 20, Benchmarks: []LearnedBenchmark{{Key: lifecycle}}}, stats.Worse, "33 → 35",
		},
		{
			"a count that a selfcheck saw to vary", "counts:openat>0", base, constant(ShownBy, step("create", map[string]int64{"openat": 62}), step("start", map[string]int64{"openat": 14})),
			&Learned{Traces: 20, Benchmarks: []LearnedBenchmark{{Key: lifecycle, Varying: []VaryingCount{
				{Place: Place{"create", "runtime", "openat"}}, {Place: Place{AllSteps, "runtime", "openat"}},
			}}}}, stats.NotWorse, "1 count is not compared, because they vary",
		},
		{"a new call that varies", "counts:futex>0", base, side("oci/runc", ShownBy, noise), nil, stats.Inconclusive, "futex of runtime in create 0 → 250–259; these counts vary from trace to trace and decide nothing: leave futex out"},
		{"all beside a call that varies", "counts:all>0", base, side("oci/runc", ShownBy, noise), nil, stats.NotWorse, "1 count is not compared"},
		{"a call that no side has", "counts:fsync>0", base, base, nil, stats.NotWorse, "no count exceeds"},
		{
			"work that moves to another step", "counts:openat>0", base,
			constant(ShownBy, step("create", map[string]int64{"mount": 33, "openat": 59}), step("start", map[string]int64{"openat": 15})), nil, stats.NotWorse, "no count exceeds",
		},
		{
			"more work in one step, and less in all", "counts:openat>0", base,
			constant(ShownBy, step("create", map[string]int64{"mount": 33, "openat": 61}), step("start", map[string]int64{"openat": 10})), nil, stats.Worse, "openat of runtime in create 60 → 61",
		},
		{
			"work in either step", "counts:openat>0", base, side("oci/runc", ShownBy, func(i int) []result.TraceCounts {
				n := int64(i % 2)
				return []result.TraceCounts{step("create", map[string]int64{"openat": 60 - n}), step("start", map[string]int64{"openat": 15 + n})}
			}), nil, stats.Worse, "openat of runtime in all steps 74 → 75",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := New([]Cell{Compare(lifecycle, c.a, c.b, c.learned)}, []Gate{parse(t, c.gate)})
			if got.Outcome() != c.want || !strings.Contains(got.Checks[0].Reason, c.reason) {
				t.Errorf("the answer is %q: %s; want %q: …%s…", got.Outcome(), got.Checks[0].Reason, c.want, c.reason)
			}
		})
	}
}

// TestChanges holds the list of changes: a step before the sum, a sum where no step is stable, and no count that varies in few traces.
func TestChanges(t *testing.T) {
	a := constant(ShownBy, step("create", map[string]int64{"mount": 33, "read": 10}), step("", map[string]int64{"openat": 1}))
	b := side("oci/runc-b", ShownBy, func(i int) []result.TraceCounts {
		return []result.TraceCounts{
			step("create", map[string]int64{"mount": 34, "read": int64(11 + i%2), "futex": int64(5 + i)}), step("start", map[string]int64{"read": int64(1 - i%2)}),
			step("", map[string]int64{"openat": 1}),
		}
	})
	spell := func(list []Count) (texts []string) {
		for _, c := range list {
			texts = append(texts, c.String())
		}
		return texts
	}
	c := Compare(lifecycle, a, b, nil)
	expect.Equal(t, "the changes", []string{
		"futex of runtime in create 0 → 5–14", "mount of runtime in create 33 → 34", "read of runtime in create 10 → 11–12",
		"futex of runtime in all steps 0 → 5–14", "read of runtime in all steps 10 → 12",
	}, spell(c.Changes))
	if !c.Different() || c.Suspicious() {
		t.Errorf("different %t, suspicious %t", c.Different(), c.Suspicious())
	}
	b.Traces, a.Traces = b.Traces[:3], a.Traces[:3]
	c = Compare(lifecycle, a, b, nil)
	expect.Equal(t, "the changes of few traces", []string{"mount of runtime in create 33 → 34", "read of runtime in all steps 10 → 12"}, spell(c.Changes))
	expect.Equal(t, "the exclusions", []string{"futex of runtime in create 0 → 5–7"}, spell(c.Excluded))
	if c.Different() || !c.Suspicious() {
		t.Errorf("few traces: different %t, suspicious %t", c.Different(), c.Suspicious())
	}
}

// TestErrors holds that an error of a gate names its place, the column and the remedy.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"mount>0":              "column 1: a gate by counts begins with counts:",
		"counts:":              "column 8: a relation is missing",
		"counts:mount":         "column 13: a relation is missing; write > or >= and a number after the names, as in counts:mount>0",
		"counts:mount,,open>0": "column 14: a name is missing",
		"counts:>0":            "column 8: a name is missing",
		"counts:mount,mnt>0":   `column 14: no system call has the name "mnt"`,
		"counts:all,mount>0":   "column 8: all includes the other names; write counts:all>0",
		"counts:mount<1":       `column 13: the relation "<" is unknown; write > or >=, as in counts:mount>0`,
		"counts:mount=1":       `column 13: the relation "=" is unknown`,
		"counts:mount>":        `column 14: the difference "" is no whole number`,
		"counts:mount>3%":      `column 14: the difference "3%" is no whole number from 0 on; write the number of calls, as in counts:mount>1`,
		"counts:mount>=-1":     `column 15: the difference "-1"`,
		"counts:mount>=0":      "column 15: equal counts have a difference of 0",
	} {
		_, err := ParseGate("--fail-on "+text, text)
		var failure *GateError
		if !errors.As(err, &failure) || !strings.HasPrefix(err.Error(), "--fail-on "+text+": "+want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

// TestFalseAlarms makes up traces of equal runtimes with thirty counts that have two values. Three traces a side raise suspicions, and
// no comparison with confirmation has a difference.
func TestFalseAlarms(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	names := strings.Fields("accept bind brk chdir chmod clone close connect dup epoll_ctl execve exit fchmod fcntl fsync futex getcwd getpid getuid ioctl kill listen lseek madvise mmap mount mprotect munmap openat pipe2")
	draw := func(n int) Side {
		return side("oci/runc", n, func(int) []result.TraceCounts {
			calls := map[string]int64{}
			for _, name := range names {
				calls[name] = 10 + random.Int64N(2)
			}
			return []result.TraceCounts{step("create", calls)}
		})
	}
	gate := parse(t, "counts:all>0")
	suspicions := 0
	for range 400 {
		a, b := draw(3), draw(3)
		c := New([]Cell{Compare(lifecycle, a, b, nil)}, []Gate{gate})
		if !c.Suspicious() {
			continue
		}
		suspicions++
		a.Traces, b.Traces = slices.Concat(a.Traces, draw(ShownBy).Traces), slices.Concat(b.Traces, draw(ShownBy).Traces)
		if c = New([]Cell{Compare(lifecycle, a, b, nil)}, []Gate{gate}); c.Cells[0].Different() || c.Outcome() == stats.Worse {
			t.Errorf("equal runtimes differ: %v", c.Cells[0].Changes)
		}
	}
	if suspicions < 100 {
		t.Errorf("%d of 400 comparisons have a suspicion, so the test shows nothing of the confirmation", suspicions)
	}
}

// TestLearn holds that a runtime against itself shows the counts that vary.
func TestLearn(t *testing.T) {
	traces := side("oci/runc", 4, func(i int) []result.TraceCounts {
		return []result.TraceCounts{step("create", map[string]int64{"mount": 33, "futex": int64(i)})}
	})
	c := Compare(lifecycle, Side{Target: "a", Traces: traces.Traces[:2]}, Side{Target: "b", Traces: traces.Traces[2:]}, nil)
	got := Learn([]Cell{c})
	expect.Equal(t, "the knowledge", &Learned{Traces: 4, Benchmarks: []LearnedBenchmark{{Key: lifecycle, Stable: 1, Varying: []VaryingCount{
		{Place{"create", "runtime", "futex"}, analysis.Range{Most: 3}}, {Place{AllSteps, "runtime", "futex"}, analysis.Range{Most: 3}},
	}}}}, got)
	expect.Equal(t, "the names", []string{"futex"}, got.Benchmarks[0].Names())
}
