package trace

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/syscalls"
	"github.com/touchstone-bench/touchstone/test/record"
)

// number is the number of a system call on this machine.
func number(t *testing.T, name string) uint32 {
	t.Helper()
	numbers := syscalls.Numbers()
	i := slices.IndexFunc(numbers, func(n uint32) bool { return syscalls.Name(n) == name })
	if i < 0 {
		t.Fatalf("no system call %s", name)
	}
	return numbers[i]
}

// Each moment of a step belongs to the threads that run, else to those without a CPU, else to the wait that held up the target.
func TestWall(t *testing.T) {
	fsync, futex, sleep, read := number(t, "fsync"), number(t, "futex"), number(t, "clock_nanosleep"), number(t, "read")
	const first, second = 1, 2 // programs
	steps := []boundary{{0, 0}, {100, 1}}
	for name, tt := range map[string]struct {
		spans []span
		want  map[part]float64
	}{
		"two run side by side": {
			[]span{{begin: 10, end: 30, program: first}, {begin: 20, end: 40, program: second}, {begin: 0, end: 50, program: second, state: queued}},
			map[part]float64{{0, first, result.WallRunning}: 15, {0, second, result.WallRunning}: 15, {0, second, result.WallQueue}: 20},
		},
		"a futex waits for an fsync": {
			[]span{{begin: 10, end: 30, program: first, state: blocked, call: fsync}, {begin: 0, end: 25, program: second, state: blocked, call: futex}},
			map[part]float64{{0, first, "fsync"}: 20, {0, second, "futex"}: 10},
		},
		"a read waits longer than a futex": {
			[]span{{begin: 10, end: 30, program: first, state: blocked, call: read}, {begin: 0, end: 90, program: second, state: blocked, call: futex}},
			map[part]float64{{0, second, "futex"}: 70, {0, first, "read"}: 20},
		},
		"a sleep across the end of the step is no reason": {
			[]span{{begin: 10, end: 150, program: first, state: blocked, call: sleep}},
			map[part]float64{{1, first, "clock_nanosleep"}: 50},
		},
		"a sleeping thread beside others is no reason": {
			[]span{{begin: 10, end: 30, program: first, state: blocked, call: sleep, thread: 1}, {begin: 40, end: 50, program: first, thread: 2}},
			map[part]float64{{0, first, result.WallRunning}: 10},
		},
		"a wait beyond the end of the trace is no reason": {
			[]span{{begin: 10, end: 200, program: first, state: blocked, call: fsync, isOpen: true}}, map[part]float64{},
		},
		"a page fault waits for the disk": {
			[]span{{begin: 10, end: 30, program: first, state: blocked, call: callOutside}}, map[part]float64{{0, first, result.OutsideCalls}: 20},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "the parts", tt.want, wall(tt.spans, steps, 200))
		})
	}
}

// A wait counts in each step by its time there.
func TestWaitAcrossSteps(t *testing.T) {
	tracer := Tracer{boundaries: []boundary{{100, 0}, {200, 1}, {300, 0}}}
	for _, tt := range []struct {
		begin, end uint64
		want       map[uint32]time.Duration
	}{
		{110, 150, map[uint32]time.Duration{0: 40}},
		{150, 320, map[uint32]time.Duration{0: 70, 1: 100}},
		{200, 300, map[uint32]time.Duration{1: 100}},
		{350, 400, map[uint32]time.Duration{0: 50}},
	} {
		got := map[uint32]time.Duration{}
		tracer.cut(&span{begin: tt.begin, end: tt.end}, func(step uint32, length time.Duration) { got[step] += length })
		if !maps.Equal(got, tt.want) {
			t.Errorf("from %d to %d: %v, want %v", tt.begin, tt.end, got, tt.want)
		}
	}
}

// A program that sleeps is blocked in this call for at least its time, except for moments without a CPU, and all times of a step together are at
// most its length.
func TestTimes(t *testing.T) {
	const sleep = 50 * time.Millisecond
	tracer := start(t, monitor.Target{})
	must.Do(t, tracer.Step("sleep"))
	run(t, "sleep 0.05; :")
	must.Do(t, tracer.Step(""))
	counts, err := tracer.Stop()
	must.Do(t, err)
	if len(counts) != 1 {
		t.Fatalf("one step has the counts %+v", counts)
	}
	c := &counts[0]
	// A thread that loses its CPU after it sets the timer is ready meanwhile, and is not blocked.
	if slept := c.Blocked["clock_nanosleep"]; slept+c.Queued+c.Running < sleep {
		t.Errorf("a sleep of %v: blocked %v, without a CPU %v, running %v", sleep, c.Blocked, c.Queued, c.Running)
	}
	if c.Running == 0 || c.Switches == 0 || c.Wall[result.WallRunning] == 0 {
		t.Errorf("the times of a shell and its sleep: %+v", c)
	}
	sum := time.Duration(0)
	for _, part := range c.Wall {
		sum += part
	}
	// Each moment of the sleep belongs to it, or to a thread that runs or has no CPU meanwhile.
	if length := time.Duration(tracer.boundaries[2].time - tracer.boundaries[1].time); sum > length || sum < sleep {
		t.Errorf("the parts %v of a step of %v", c.Wall, length)
	}
}

// A trace whose buffer of waits was too small has its counts, and no times.
func TestLostWaits(t *testing.T) {
	tracer := start(t, monitor.Target{})
	run(t, ":")
	must.Do(t, tracer.objects.LostWaits.Set(uint64(1)))
	counts, err := tracer.Stop()
	must.Do(t, err)
	if len(counts) != 1 || counts[0].Calls["execve"] == 0 || counts[0].Running != 0 || counts[0].Blocked != nil || counts[0].Wall != nil || counts[0].Switches != 0 {
		t.Errorf("after a lost wait: %+v", counts)
	}
}

// The tables of a tracer take less than 32 MiB.
//
// Invariant trace-memory: A tracer takes less than 32 MiB of the kernel's memory.
func TestMemory(t *testing.T) {
	_ = start(t, monitor.Target{}).close() // skips the test on a machine that cannot trace
	tracer, err := StartWithPaths(monitor.Target{})
	must.Do(t, err)
	t.Cleanup(func() { _ = tracer.close() })
	sum := uint64(0)
	for _, m := range []*ebpf.Map{
		tracer.objects.Counts, tracer.objects.Owners, tracer.objects.Paths, tracer.objects.Processes, tracer.objects.Programs, tracer.objects.Slots,
		tracer.objects.Threads, tracer.objects.Turns, tracer.objects.Waits,
	} {
		info, err := m.Info()
		must.Do(t, err)
		size, ok := info.Memlock()
		if !ok {
			record.Skip(t, "the kernel does not tell the memory of a map")
		}
		sum += size
	}
	t.Logf("the tables take %.1f MiB", float64(sum)/(1<<20))
	if sum == 0 || sum >= 32<<20 {
		t.Errorf("the tables take %d bytes, want less than 32 MiB", sum)
	}
}
