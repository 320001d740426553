package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// virtual is a worker whose containers run in virtual machines. The engine reports their CPU time by the guest's count.
type virtual struct {
	*worker
	overhead engine.Resources
	missing  engine.Missing
	stats    func(w *working, call int) (time.Duration, error)
}

func (e *virtual) Info() engine.Info {
	return engine.Info{Isolation: engine.VM, Overhead: e.overhead}
}

func (e *virtual) Supports(c engine.Capability) error { return e.missing.Supports(c) }

func (e *virtual) Create(ctx context.Context, s engine.Spec) (engine.Container, error) {
	c, err := e.worker.Create(ctx, s)
	if err != nil {
		return nil, err
	}
	return &guestContainer{working: c.(*working), vm: e}, nil
}

// guestContainer implements engine.Meter.
type guestContainer struct {
	*working
	vm    *virtual
	calls int
}

func (c *guestContainer) Stats(context.Context) (engine.Stats, error) {
	c.calls++
	used, err := c.vm.stats(c.working, c.calls)
	return engine.Stats{CPU: used, Memory: 1}, err
}

// In a virtual machine the guest's count judges the container's limit. The machine's CPU time on the host, with its boot and its
// kernel, judges the limit of the pod there, if the engine sets one.
func TestCPULimitInAGuest(t *testing.T) {
	for _, tt := range []struct {
		what         string
		inside, host time.Duration // CPU time in each of three seconds
		pod          engine.Resources
		missing      engine.Missing
		use, hostUse []float64
	}{
		{"both hold", 100 * ms, 350 * ms, engine.Resources{CPU: 0.25}, nil, []float64{1}, []float64{1}},
		{"a busy guest kernel", 100 * ms, 900 * ms, engine.Resources{}, nil, []float64{1}, nil},
		{"only the pod's holds", time.Second, 350 * ms, engine.Resources{CPU: 0.25}, nil, []float64{10}, []float64{1}},
		{"the pod's does not hold", 100 * ms, 700 * ms, engine.Resources{CPU: 0.25}, nil, []float64{1}, []float64{2}},
		{"no statistics", 100 * ms, 350 * ms, engine.Resources{CPU: 0.25}, engine.Missing{engine.CanStats: "it has none"}, nil, []float64{1}},
	} {
		e := &virtual{worker: newWorker(nil), overhead: tt.pod, missing: tt.missing}
		ready := make(chan struct{})
		e.stats = func(w *working, call int) (time.Duration, error) {
			e.pass(0, tt.host)
			if call > 3 {
				close(ready)
				<-w.ended
				return 0, errors.New("there is no such container")
			}
			return 20*ms + time.Duration(call-1)*tt.inside, nil
		}
		e.work = func(w *working) {
			e.pass(20*time.Second, 20*time.Second) // the boot
			line, rest, _ := strings.Cut(sysbenchCPU(w.spec.Process.Args[2:], w.spec).Stdout, "\n")
			w.say(line + "\n")
			<-e.asks // at the beginning of the trial
			<-e.asks
			if tt.missing == nil {
				<-ready
			} else {
				e.pass(3*time.Second, 4*tt.host)
			}
			w.say(rest)
		}
		trial := runOn(t, "limits.cpu.time", e, e, bench.Params{"percent": "10"})
		if trial.Status != result.OK {
			t.Fatalf("%s: %s because %s", tt.what, trial.Status, trial.Reason)
		}
		for metric, want := range map[string][]float64{"CPULimitUse": tt.use, "HostLimitUse": tt.hostUse} {
			// The host's count has four parts: the first reading is at the start.
			got := trial.Values(metric)
			if metric == "HostLimitUse" && len(got) == 1 {
				got[0] *= 3.0 / 4
			}
			if len(got) != len(want) || len(got) > 0 && !near(got[0], want[0]) {
				t.Errorf("%s: %s = %v, want %v", tt.what, metric, got, want)
			}
		}
	}
}

// A raised limit is judged by the guest's count, too. The host's throttling, which belongs to the pod's limit, is not read.
func TestScaledLimitsInAGuest(t *testing.T) {
	for _, tt := range []struct {
		what          string
		cpus          func(limit float64) float64 // that the container gets in its guest
		use, response []float64
	}{
		{"full response", func(limit float64) float64 { return limit }, []float64{1}, []float64{1}},
		{"no response", func(float64) float64 { return 0.5 }, []float64{1}, []float64{2}},
		{"no limit", func(float64) float64 { return 1 }, []float64{2}, nil},
	} {
		var mu sync.Mutex
		var used time.Duration
		read := make(chan struct{})
		e := &virtual{worker: newWorker(nil), stats: func(*working, int) (time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			read <- struct{}{}
			return used, nil
		}}
		e.work = func(w *working) {
			const seconds = 5
			head, tail, _ := strings.Cut(sysbenchCPU(w.spec.Process.Args[2:], w.spec).Stdout, "CPU speed:")
			w.say(head)
			<-read
			limit := w.spec.Resources.CPU
			for n := 1; n <= seconds; n++ {
				cpus := tt.cpus(limit)
				e.pass(time.Second, 0)
				mu.Lock()
				used += time.Duration(cpus * float64(time.Second))
				mu.Unlock()
				w.last.Store(n == seconds)
				w.say(fmt.Sprintf("[ %ds ] thds: 1 eps: %.2f lat (ms,95%%): 0.60\n", n, 800*cpus))
				<-read
				if n < seconds {
					limit = <-w.limits
				}
			}
			w.say("CPU speed:" + tail)
		}
		trial := runOn(t, "limits.cpu.scaling", e, e, bench.Params{"steps": "4", "percent": "100", "events": "8000"})
		if trial.Status != result.OK {
			t.Fatalf("%s: %s because %s", tt.what, trial.Status, trial.Reason)
		}
		for metric, want := range map[string][]float64{"CPULimitUse": tt.use, "LimitResponse": tt.response} {
			if got := trial.Values(metric); len(got) != len(want) || len(got) > 0 && (got[0] < 0.98*want[0] || got[0] > 1.02*want[0]) {
				t.Errorf("%s: %s = %v, want %v", tt.what, metric, got, want)
			}
		}
	}
}

// FirstInstruction is a time of the host's clock alone. A line of the program with a time, by the clock of its guest, is refused.
func TestFirstInstructionRefusesAGuestsClock(t *testing.T) {
	const name = "operations.container.lifecycle"
	e := newWorker(func(w *working) {
		w.engine.pass(3*time.Second, 0)
		w.say(workload.ReadyLine + "\n")
	})
	e.exit = engine.Exit{Signal: 9}
	if got := sample(t, runOn(t, name, e, e, nil), "FirstInstruction"); got != 3 {
		t.Errorf("FirstInstruction = %v, want 3", got)
	}
	e.work = func(w *working) { w.say(workload.ReadyLine + " 0.001\n") }
	if trial := runOn(t, name, e, e, nil); trial.Status != result.Failed || len(trial.Values("FirstInstruction")) > 0 {
		t.Errorf("a line with a time: %s with %v", trial.Status, trial.Samples)
	}
}
