package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const ms = 1_000_000 // nanoseconds

// numbered names a program of made-up spans.
func numbered(id uint64) (string, monitor.Component) { return fmt.Sprint("p", id), monitor.Runtime }

// states lists the begins and the lengths of the states of a lane in milliseconds: "running 0+10; child 10+40; ".
func states(l *result.TraceLane) (text string) {
	for _, s := range l.States {
		for i := range s.At {
			text += fmt.Sprintf("%s %d+%d; ", s.Cause, s.At[i]/ms, s.Lengths[i]/ms)
		}
	}
	return text
}

// A lane has the states of a process from the first call to the end of the last one, with the programs that it executes. A wait for work of a later step is idle time.
func TestTimelineLanes(t *testing.T) {
	const parent, child = 1, 130 * ms // programs; the child executes its own at 130 ms
	wait := number(t, "wait4")
	spans := []span{
		{begin: 0, end: 120 * ms, program: parent, process: 7, thread: 7},
		{begin: 120 * ms, end: 160 * ms, program: parent, process: 7, thread: 7, state: blocked, call: wait},
		{begin: 160 * ms, end: 170 * ms, program: parent, process: 7, thread: 7},
		{begin: 170 * ms, end: 260 * ms, program: parent, process: 7, thread: 7, state: blocked, call: wait},
		{begin: 110 * ms, end: 125 * ms, program: parent, process: 8, thread: 8, state: queued},
		{begin: 125 * ms, end: 130 * ms, program: parent, process: 8, thread: 8},
		{begin: 130 * ms, end: 158 * ms, program: child, process: 8, thread: 8},
		{begin: 20 * ms, end: 30 * ms, program: parent, process: 9, thread: 9}, // before the first call
	}
	steps := []string{"", "create", "start"}
	boundaries := []boundary{{0, 0}, {100 * ms, 1}, {180 * ms, 0}, {190 * ms, 2}, {200 * ms, 0}}
	got := newTimeline(spans, boundaries, steps, 300*ms, numbered)
	expect.Equal(t, "the steps", []result.TraceStep{{Name: "create"}, {At: 80 * ms}, {Name: "start", At: 90 * ms}}, got.Steps)
	expect.Equal(t, "the length and the processes", []any{time.Duration(100 * ms), 2, 2}, []any{got.Length, got.Processes, len(got.Lanes)})
	first, second := &got.Lanes[0], &got.Lanes[1]
	expect.Equal(t, "the states of the parent", "running 0+20; running 60+10; child 20+40; ", states(first))
	expect.Equal(t, "the states of the child", "run queue 10+15; running 25+33; ", states(second))
	expect.Equal(t, "the programs of the child", []result.TraceProgram{{Name: "p1", Component: "runtime", At: 10 * ms}, {Name: "p130000000", Component: "runtime", At: 30 * ms}}, append([]result.TraceProgram{second.TraceProgram}, second.Execs...))
	expect.Equal(t, "the part of the parent", map[result.TimeCause]time.Duration{result.CauseRunning: 30 * ms, result.CauseChild: 2 * ms}, first.Wall)
	expect.Equal(t, "the part of the child", map[result.TimeCause]time.Duration{result.CauseRunning: 33 * ms, result.CauseQueue: 5 * ms}, second.Wall)
	if newTimeline(spans, boundaries[:1], steps, 300*ms, numbered) != nil {
		t.Error("a trace without a call has a timeline")
	}
	if newTimeline([]span{{begin: 20 * ms, end: 30 * ms, program: parent, process: 9, thread: 9}}, boundaries, steps, 300*ms, numbered) != nil {
		t.Error("a call without a process has a timeline")
	}
}

// A timeline stays small: it has the processes that hold the target up longest, and merges short states. Its sums stay exact.
func TestTimelineIsBounded(t *testing.T) {
	var spans []span
	const processes, turns = 3 * mostLanes, 200
	for process := range uint32(processes) {
		begin := uint64(process) * ms
		for range turns {
			spans = append(spans, span{begin: begin, end: begin + 2000 + uint64(process), program: 1, process: process, thread: process})
			begin += 5000
		}
	}
	end := uint64(processes * ms)
	got := newTimeline(spans, []boundary{{0, 0}}, []string{"create"}, end, numbered)
	count, sum := 0, time.Duration(0)
	for i := range got.Lanes {
		for _, s := range got.Lanes[i].States {
			count += len(s.At)
		}
		for _, length := range got.Lanes[i].Wall {
			sum += length
		}
	}
	if got.Processes != processes || len(got.Lanes) != mostLanes || count > mostStates {
		t.Errorf("%d processes have %d lanes with %d states, want at most %d and %d", got.Processes, len(got.Lanes), count, mostLanes, mostStates)
	}
	want := time.Duration(0)
	for process := processes - mostLanes; process < processes; process++ {
		want += time.Duration(turns * (2000 + process))
	}
	expect.Equal(t, "the sum of the lanes", want, sum)
	if got.Lanes[0].At != (processes-mostLanes)*ms {
		t.Errorf("the first lane begins at %v; the processes that run longest begin last", got.Lanes[0].At)
	}
}

// Merged states cover the same time. A state of the length of the resolution keeps its place, and the others are wrong for less than four resolutions.
func TestTimelineMerges(t *testing.T) {
	const resolution = 100
	random := rand.New(rand.NewPCG(1, 2))
	causes := []result.TimeCause{"", result.CauseRunning, result.CauseQueue, result.CauseChild}
	for range 200 {
		var list []stretch
		moment := uint64(0)
		for range 1 + random.IntN(60) {
			length := uint64(1 + random.IntN(150))
			list = extended(list, stretch{moment, moment + length, causes[random.IntN(len(causes))]})
			moment += length
		}
		got := merged(list, resolution)
		for i, s := range got {
			if i > 0 && (s.begin != got[i-1].end || s.cause == got[i-1].cause) {
				t.Fatalf("%v follows %v", s, got[i-1])
			}
		}
		if got[0].begin != 0 || got[len(got)-1].end != moment {
			t.Fatalf("the states cover %v to %v, want 0 to %d", got[0], got[len(got)-1], moment)
		}
		excess := uint64(0) // the length of the adjacent time with another state
		for begin := range moment {
			find := func(list []stretch) *stretch {
				i, _ := slices.BinarySearchFunc(list, begin, func(s stretch, begin uint64) int {
					switch {
					case s.end <= begin:
						return -1
					case s.begin > begin:
						return 1
					}
					return 0
				})
				return &list[i]
			}
			original, state := find(list), find(got)
			if original.cause == state.cause {
				excess = 0
				continue
			}
			if excess++; original.length() >= resolution || excess >= 4*resolution {
				t.Fatalf("at %d: %v became %v, and the time before it is wrong for %d", begin, *original, *state, excess)
			}
		}
	}
}

// The parts of the lanes are the division of the steps' own time in the counts.
//
// Invariant timeline-sums: The lanes of a timeline divide the same time as the parts of the steps.
func TestTimelineSums(t *testing.T) {
	tracer := start(t, monitor.Target{})
	must.Do(t, tracer.Step("create"))
	run(t, "mount -t tmpfs trace /mnt; sync -f /mnt; /bin/sleep 0.02; sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' & wait")
	must.Do(t, tracer.Step(""))
	counts, err := tracer.Stop()
	must.Do(t, err)
	line := tracer.Timeline()
	want, got := map[result.TimeCause]time.Duration{}, map[result.TimeCause]time.Duration{}
	for _, c := range counts {
		for name, length := range c.Wall {
			if c.Step == "create" {
				want[result.CauseOf(name)] += length
			}
		}
	}
	for _, l := range line.Lanes {
		for cause, length := range l.Wall {
			got[cause] += length
		}
	}
	rounding := cmpopts.EquateApprox(0, float64(100*time.Microsecond))
	expect.Equal(t, "the time of the lanes by cause", inNanoseconds(want), inNanoseconds(got), rounding)
	// A sleeper that loses its CPU before it sleeps is in the run queue, or runs if the host takes the CPU.
	if got[result.CauseRunning] == 0 || got[result.CauseSleep]+got[result.CauseQueue]+got[result.CauseRunning] < 15*time.Millisecond {
		t.Errorf("the lanes have %v", got)
	}
	doc := result.Run{Targets: []result.Target{{Name: "oci/runc"}}, Bench: []result.Benchmark{{Name: "b"}}}
	must.Do(t, doc.ValidateTrace(&result.Trace{Seq: 1, Cell: result.Cell{Benchmark: "b", Target: "oci/runc"}, Status: result.OK, Timeline: line}))
}

// inNanoseconds are lengths as numbers.
func inNanoseconds(lengths map[result.TimeCause]time.Duration) map[result.TimeCause]float64 {
	numbers := map[result.TimeCause]float64{}
	for cause, length := range lengths {
		numbers[cause] = float64(length)
	}
	return numbers
}
