package reporttest

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Traced is Small with three traces of each target. oci/runc has one without counts, and futex differs between the others.
func Traced() result.Run {
	run := Small()
	futex := []int64{259, 313}
	add := func(target string, status result.Status, counts ...result.TraceCounts) {
		trace := result.Trace{
			Seq: len(run.Traces) + 1, Cell: result.Cell{Benchmark: run.Bench[0].Name, Params: run.Trials[0].Params, Target: target}, Status: status,
			Started: run.Started.Add(time.Hour), Elapsed: time.Second, Counts: counts,
		}
		if status != result.OK {
			trace.Reason = "2 events are missing from the trace"
		}
		run.Traces = append(run.Traces, trace)
	}
	for n := range 3 {
		if n == 2 {
			add("oci/runc", result.Failed)
		} else {
			add(
				"oci/runc", result.OK,
				result.TraceCounts{Component: "container", Calls: map[string]int64{"write": 1}},
				result.TraceCounts{
					Step: "create", Component: "runtime", Calls: map[string]int64{"mount": 33, "openat": 59, "execve": 1, "futex": futex[n]},
					Processes: 3, Threads: 10, Programs: map[string]int64{"runc": 2, "exe": 1},
					Wall: map[string]time.Duration{result.WallRunning: 16_000_000 + time.Duration(n), "write": 8_000_000, "umount2": 60_000, result.WallQueue: 400_000},
				},
				result.TraceCounts{Step: "start", Component: "runtime", Calls: map[string]int64{"openat": 14}, Programs: map[string]int64{"runc": 1}},
			)
		}
		native := []result.TraceCounts{{Step: "create", Component: "container", Calls: map[string]int64{"mount": 8, "move_mount": 8}, Programs: map[string]int64{"probe": 1}}}
		if n == 1 {
			native = append(native, result.TraceCounts{Step: "start", Component: "container", Calls: map[string]int64{"fsync": 1}})
		}
		add("native", result.OK, native...)
	}
	return run
}

// Explained is Small with three traces of each target that have times. The causes of the difference in create are the running time and the sleep of the
// runtime; the time in the run queue varies.
func Explained() result.Run {
	run := Small()
	for n := range 3 {
		for _, target := range []string{native, runc} {
			trace := result.Trace{
				Seq: len(run.Traces) + 1, Cell: result.Cell{Benchmark: run.Bench[0].Name, Params: run.Trials[0].Params, Target: target}, Status: result.OK,
				Started: run.Started.Add(time.Hour), Elapsed: time.Second,
			}
			for i := range run.Trials {
				if t := &run.Trials[i]; t.Target == target && t.Block == n {
					trace.Phases = t.Phases
				}
			}
			for _, p := range trace.Phases {
				part := func(share float64) time.Duration { return time.Duration(share * float64(p.Duration)) }
				c := result.TraceCounts{
					Step: p.Name, Component: "container", Calls: map[string]int64{"mount": 8}, Faults: int64(100 + n),
					Wall: map[string]time.Duration{result.WallRunning: part(0.6)},
				}
				if target == runc {
					c.Component, c.Calls, c.Programs = "runtime", map[string]int64{"mount": 33, "fsync": 2}, map[string]int64{"runc": 2, "sleep": 1}
					c.Processes, c.Threads, c.Faults = 3, 10, int64(1350+n)
					c.Wall = map[string]time.Duration{
						result.WallRunning: part(0.5 + 0.01*float64(n)), "clock_nanosleep": part(0.3), result.WallQueue: part(0.05 * float64(n)), "umount2": part(0.01), "mount": part(0.02),
					}
				}
				trace.Counts = append(trace.Counts, c)
			}
			trace.Timeline = timeline(target, n)
			run.Traces = append(run.Traces, trace)
		}
	}
	return run
}

// timeline has the processes of trace n of a target. The trace of oci/runc with the number 0 has the median length.
func timeline(target string, n int) *result.TraceTimeline {
	const ms = time.Millisecond
	length := time.Duration(40+[]int{3, 0, 6}[n]) * ms
	program := func(name, component string, moment time.Duration) result.TraceProgram {
		return result.TraceProgram{Name: name, Component: component, At: moment}
	}
	t := &result.TraceTimeline{Length: length, Resolution: 500_000, Steps: []result.TraceStep{{Name: "create"}, {At: 30 * ms}, {Name: "start", At: 31 * ms}}, Processes: 1}
	if target == native {
		t.Length, t.Steps = length/10, t.Steps[:1]
		t.Lanes = []result.TraceLane{{
			TraceProgram: program("probe", "container", 0), End: t.Length, Wall: map[result.TimeCause]time.Duration{result.CauseRunning: t.Length},
			States: []result.TraceState{{Cause: result.CauseRunning, At: []time.Duration{0}, Lengths: []time.Duration{t.Length}}},
		}}
		return t
	}
	t.Processes = 3
	t.Lanes = []result.TraceLane{
		{
			TraceProgram: program("runc", "runtime", 0), End: 30 * ms, Wall: map[result.TimeCause]time.Duration{result.CauseRunning: 6 * ms, result.CauseChild: 2 * ms},
			States: []result.TraceState{{Cause: result.CauseRunning, At: []time.Duration{0, 28 * ms}, Lengths: []time.Duration{5 * ms, ms}}, {Cause: result.CauseChild, At: []time.Duration{5 * ms}, Lengths: []time.Duration{23 * ms}}},
		},
		{
			TraceProgram: program("runc", "runtime", 5*ms), End: length, Execs: []result.TraceProgram{program("sleep", "container", 20*ms)},
			Wall:   map[result.TimeCause]time.Duration{result.CauseRunning: 10 * ms, result.CauseQueue: 3 * ms, result.CauseSleep: 9 * ms},
			States: []result.TraceState{{Cause: result.CauseQueue, At: []time.Duration{5 * ms}, Lengths: []time.Duration{3 * ms}}, {Cause: result.CauseRunning, At: []time.Duration{8 * ms}, Lengths: []time.Duration{10 * ms}}, {Cause: result.CauseSleep, At: []time.Duration{20 * ms}, Lengths: []time.Duration{9 * ms}}},
		},
	}
	return t
}
