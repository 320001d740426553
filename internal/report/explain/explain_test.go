package explain_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func all(string) bool { return true }

// create explains the phase create of a run.
func create(t *testing.T, run result.Run, a, b string) *explain.Phase {
	t.Helper()
	e, err := explain.New(&run, a, b, explain.Options{Matches: all})
	must.Do(t, err)
	phases := e.Benchmarks[0].Phases
	return &phases[slices.IndexFunc(phases, func(p explain.Phase) bool { return p.Name == "create" })]
}

// names are the causes of a phase.
func names(p *explain.Phase) (list []string) {
	for _, t := range p.Causes() {
		list = append(list, t.Component+" "+string(t.Cause))
	}
	slices.Sort(list)
	return list
}

// The causes and the unexplained rest are the whole difference, and the other way round they change only their signs.
//
// Invariant explained-sum: The causes of a difference and its unexplained rest add up to the difference of the untraced trials.
func TestCauses(t *testing.T) {
	p := create(t, reporttest.Explained(), "native", "oci/runc")
	if p.Reason != "" || !p.Differs() {
		t.Fatalf("no causes: %s", p.Reason)
	}
	// The run queue overlaps, and the running time of the container on native is below 2 % of the difference.
	expect.Equal(t, "the causes", []string{"outside ", "runtime other call", "runtime running", "runtime sleep"}, names(p))
	sum := p.Unexplained()
	for _, cause := range p.Causes() {
		sum += cause.Difference
		if cause.Cause == result.CauseCall {
			expect.Equal(t, "the calls of a cause", []string{"mount", "umount2"}, cause.Calls)
		}
	}
	if math.Abs(sum-p.Difference.Median) > 1e-12 {
		t.Errorf("the causes and the rest are %g, the difference is %g", sum, p.Difference.Median)
	}
	back := create(t, reporttest.Explained(), "oci/runc", "native")
	if back.Difference.Median != -p.Difference.Median || math.Abs(back.Unexplained()+p.Unexplained()) > 1e-12 {
		t.Errorf("the other way round: %g and %g, want %g and %g with another sign", back.Difference.Median, back.Unexplained(), p.Difference.Median, p.Unexplained())
	}
}

// Running time is scaled to the untraced median, and never up. Time in run queues does not shrink it, and waits keep their length.
func TestScale(t *testing.T) {
	part := func(cause result.TimeCause, change func(*result.Trace)) float64 {
		run := reporttest.Explained()
		for i := range run.Traces {
			if run.Traces[i].Target == "oci/runc" {
				change(&run.Traces[i])
			}
		}
		p := create(t, run, "native", "oci/runc")
		i := slices.IndexFunc(p.Times, func(t explain.Time) bool { return t.Cause == cause })
		return p.Times[i].B.Median
	}
	lengthen := func(factor float64) func(*result.Trace) {
		return func(t *result.Trace) {
			t.Phases = slices.Clone(t.Phases)
			for i := range t.Phases {
				t.Phases[i].Duration = time.Duration(factor * float64(t.Phases[i].Duration))
			}
			for _, c := range t.Counts {
				for name := range c.Wall {
					c.Wall[name] = time.Duration(factor * float64(c.Wall[name]))
				}
			}
		}
	}
	double, quadruple := part(result.CauseRunning, lengthen(2)), part(result.CauseRunning, lengthen(4))
	if math.Abs(double/quadruple-1) > 1e-6 {
		t.Errorf("a tracer that slows everything down changes a part from %g to %g s", double, quadruple)
	}
	half, quarter := part(result.CauseRunning, lengthen(0.5)), part(result.CauseRunning, lengthen(0.25))
	if math.Abs(half/quarter-2) > 1e-6 {
		t.Errorf("parts of short traces are %g and %g s, want the first twice the second", half, quarter)
	}
	queue := part(result.CauseRunning, func(t *result.Trace) {
		lengthen(2)(t)
		t.Phases[0].Duration += time.Second
		t.Counts[0].Wall[result.WallQueue] += time.Second
	})
	if math.Abs(queue/double-1) > 1e-6 {
		t.Errorf("a second in the run queue changes a part from %g to %g s", double, queue)
	}
	if first, second := part(result.CauseSleep, lengthen(2)), part(result.CauseSleep, lengthen(4)); math.Abs(second/first-2) > 1e-6 {
		t.Errorf("sleeps are %g and %g s, want the second twice the first", first, second)
	}
}

// Counts are listed if their ranges do not overlap, the programs first.
func TestCounts(t *testing.T) {
	p := create(t, reporttest.Explained(), "native", "oci/runc")
	var got []string
	for i := range p.Counts {
		c := &p.Counts[i]
		got = append(got, strings.TrimSpace(c.Component+" "+string(c.Kind)+" "+c.Name))
		switch {
		case c.Kind == explain.Fault && c.Component == "runtime":
			if c.Exact() || c.Difference() != 1350 {
				t.Errorf("the page faults %+v: exact %v, difference %d", c, c.Exact(), c.Difference())
			}
		case c.Kind == explain.Mount && c.Component == "container":
			if !c.Exact() || c.Difference() != -8 {
				t.Errorf("the mounts %+v: exact %v, difference %d", c, c.Exact(), c.Difference())
			}
		}
	}
	expect.Equal(t, "the counts", []string{
		"runtime exec runc", "runtime exec sleep", "runtime mount mount", "container mount mount", "runtime fsync fsync", "runtime new process", "runtime new thread",
		"runtime page fault", "container page fault",
	}, got)
}

// Work that is in a call or after it by chance is no difference.
func TestCountsAfterACall(t *testing.T) {
	run := reporttest.Explained()
	for i := range run.Traces {
		trace := &run.Traces[i]
		step := "create"
		if trace.Target == "native" {
			step = ""
		}
		trace.Counts = append(trace.Counts, result.TraceCounts{Step: step, Component: "container", Programs: map[string]int64{"probe": 1}})
	}
	for _, c := range create(t, run, "native", "oci/runc").Counts {
		if c.Name == "probe" {
			t.Errorf("a program that begins in a call or after it counts: %+v", c)
		}
	}
}

// A phase without evidence has no causes, and a reason with a remedy.
//
// Invariant no-cause: A phase without a shown difference, without three traces of both targets, or with a trace without times has no causes, and a reason.
func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*result.Run){
		"the targets have 3 and 2 traces, and each needs 3; measure again with --trace 3": func(r *result.Run) { r.Traces = r.Traces[:5] },
		"no difference is shown (": func(r *result.Run) {
			for i := range r.Trials {
				r.Trials[i].Phases = r.Trials[0].Phases
			}
		},
		"a trace has no times": func(r *result.Run) {
			for i := range r.Traces[0].Counts {
				r.Traces[0].Counts[i].Wall = nil
			}
		},
		"speed has no verdict on an emulated CPU; --emulated-verdicts gives one": func(r *result.Run) { r.Host.CPU = "QEMU TCG CPU" },
	} {
		run := reporttest.Explained()
		change(&run)
		if p := create(t, run, "native", "oci/runc"); !strings.HasPrefix(p.Reason, want) || len(p.Causes()) > 0 {
			t.Errorf("the reason is %q with the causes %q, want %q", p.Reason, names(p), want)
		}
	}
}

// Bad names are refused with the names of the run.
func TestBadInput(t *testing.T) {
	run := reporttest.Explained()
	for want, call := range map[string][3]string{
		`has no target oci/x; its targets are ["native" "oci/runc"]`: {"native", "oci/x", "operations"},
		"native is named twice; name two targets":                    {"native", "native", "operations"},
		"has no benchmark with timed calls of both":                  {"native", "oci/runc", "density"},
	} {
		_, err := explain.New(&run, call[0], call[1], explain.Options{Matches: func(name string) bool { return strings.HasPrefix(name, call[2]) }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", call, err, want)
		}
	}
}
