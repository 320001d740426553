package limits

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// Bounds of a limit that holds and of a program that responds to it. As with limits.cpu.time, the kernel allows slightly
// more, and grants a whole quota at once with each new limit.
const (
	mostUse      = 1.25
	mostResponse = 1.4
)

func cpuScaling() bench.Benchmark {
	metrics := []result.Metric{
		bench.Seconds("TotalTime", "time until all events are done while the limit is raised; with the paper's parameters the ScalingLimit of espe"),
		{
			Name: "Update", Unit: result.Seconds, Better: result.Lower, Series: true,
			Help: "time of a call that raises the limit, until it returns",
		},
		optional(bounded("CPULimitUse", mostUse, "does not hold a CPU limit that is raised",
			"the highest CPU time in a second of the container and its sandbox, without shims and daemons, over the CPU time that the current limit allows: 1 if it holds, more if it is missing or a raise ends it; in a virtual machine the container's own CPU time, as its guest counts it")),
		optional(bounded("LimitResponse", mostResponse, "does not follow a raised CPU limit",
			"doubling of the limit over the speedup of the program: 1 if it works twice as fast, 2 if it works no faster; left out if the host is too busy to grant the limit, if a second passes without an event, and if the limit does not hold")),
	}
	return bench.Benchmark{
		Name:    "limits.cpu.scaling",
		Summary: "a CPU limit raised, by default from half to full, a step each second while a program runs, and whether it holds and the program follows",
		Source:  "espe section 5.5, table 1 (ScalingLimit): from half to full of a CPU over 10 seconds; TouchStone's code: from 10 % to full",
		Metrics: metrics,
		Image:   bench.WorkloadImage, Components: true, OwnLimits: []bench.Limit{bench.CPULimit},
		Needs: bench.Always(engine.CanUpdate),
		// The events suffice for a second under the full limit, on hosts with up to 2000 and 1212 events per second without a limit. The
		// 10000 events are the paper's: section 5.5 has the same load as section 5.2.1.
		Params: append(primes("3000", "10000"),
			bench.Param{
				Name: "steps", Help: "number of steps to the full limit, one a second; a fast machine needs more events to reach the last",
				Quick: "3", Paper: "10", Check: bench.IntRange(1, 100),
			},
			bench.Param{
				Name: "percent", Help: "the last limit, the full one, in per cent of a CPU",
				Quick: "50", Paper: "100", Check: bench.IntRange(10, 100), // 10 % of 10 % is the kernel's minimum
			},
			bench.Param{
				Name: "from", Help: "the first limit in per cent of the full one; TouchStone's code takes 10",
				Quick: "50", Paper: "50", Check: bench.IntRange(10, 80), // above 80 the raise is too small to show a response
			},
		),
		Run: func(ctx context.Context, t bench.Trial) error {
			p := programs.SysbenchCPUProgress(t.Int("prime"), t.Int("events"), 1)
			full, steps := float64(t.Int("percent"))/100, t.Int("steps")
			run := &progress{t: t, first: full * float64(t.Int("from")) / 100, full: full, steps: steps, passed: make(chan struct{}, steps+2)}
			values, text, err := bench.Run(ctx, t, run.scale, bench.SpecOf(t, p), p)
			if err != nil {
				return err
			}
			rates, err := programs.Rates(text)
			if err != nil {
				return err
			}
			limits := run.limits()
			intervals := run.intervals()
			use, ok := mostUsed(intervals)
			holds := !ok || use <= mostUse
			response, err := limitResponse(limits, rates)
			if err != nil && (holds || len(run.raised) == 0) { // without a limit the program exits too soon
				return err
			}
			t.Condition("CPU limit", fmt.Sprintf("from %s to %s", percentOfCPU(limits[0]), percentOfCPU(limits[len(limits)-1])))
			t.Record("TotalTime", values["TotalTime"])
			if ok {
				t.Record("CPULimitUse", use)
			}
			// A program that speeds up far more than the limit allows is not under the limit, even if its use is unknown.
			if holds && response > 1/mostResponse && !run.starved(intervals) {
				t.Record("LimitResponse", response)
			}
			return nil
		},
	}
}

// progress is the progress of a program whose limit is raised in steps.
type progress struct {
	t           bench.Trial
	first, full float64 // limits in CPUs
	steps       int
	raised      []time.Duration // the end of each step
	passed      chan struct{}   // a token for the first output and for each second, up to the channel's capacity
	output      bool            // the program has written output
	marks       []mark          // for each token
	calls       time.Duration   // CPU time of calls so far that is counted as the container's

	mu      sync.Mutex
	seconds []time.Duration // the times of the program's progress lines
}

func (p *progress) line(line string, moment time.Duration) {
	if programs.IsProgress(line) {
		p.mu.Lock()
		p.seconds = append(p.seconds, moment)
		p.mu.Unlock()
	} else if p.output {
		return
	}
	p.output = true
	select {
	case p.passed <- struct{}{}:
	default:
	}
}

// limit is the limit after so many steps.
func (p *progress) limit(steps int) float64 {
	return p.first + (p.full-p.first)*float64(steps)/float64(p.steps)
}

// limits returns the limits that were in force at the end of each of the program's seconds. The program has exited.
func (p *progress) limits() []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var limits []float64
	for _, moment := range p.seconds {
		steps := 0
		for steps < len(p.raised) && p.raised[steps] < moment {
			steps++
		}
		limits = append(limits, p.limit(steps))
	}
	return limits
}

// scale runs a program that reports each second, and raises its limit each time. It is a bench.Where.
func (p *progress) scale(ctx context.Context, t bench.Trial, spec engine.Spec) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	spec.Resources.CPU = p.limit(0)
	c, err := bench.Follow(ctx, t, spec, p.line)
	if err != nil {
		return nil, err
	}
	if err := p.follow(ctx, c, spec.Resources); err != nil {
		return nil, err
	}
	<-c.Exit.Done
	if err := c.Exit.Failure(); err != nil {
		return nil, err
	}
	_, err = c.Remove(ctx, t)
	return c.Output.Bytes(), err
}

// follow raises the limit after each second of the program's work up to the full limit. It returns when the program exits.
func (p *progress) follow(ctx context.Context, c bench.Followed, limits engine.Resources) error {
	updater, err := bench.Optional[engine.Updater](c.Container, engine.CanUpdate)
	if err != nil {
		return err
	}
	for step := 0; ; step++ {
		select {
		case <-p.passed:
		case <-c.Exit.Done:
			return nil
		}
		limits.CPU = p.limit(min(step, p.steps))
		if err := p.mark(ctx, c.Container, limits.CPU); err != nil {
			if p.t.Info.Isolation == engine.VM && exited(ctx, c) {
				return nil // a guest does not count for an exited container
			}
			return err
		}
		if step == 0 || step > p.steps {
			continue
		}
		span, err := p.t.Time(ctx, "update", func(ctx context.Context) error { return updater.Update(ctx, limits) })
		if err != nil {
			if exited(ctx, c) {
				return nil // in between
			}
			return err
		}
		p.t.Record("Update", span.Seconds())
		p.raised = append(p.raised, span.End)
		if err := p.countCall(); err != nil {
			return err
		}
	}
}

// exited reports whether the engine knows that a container has exited. Then a failed call is no error.
func exited(ctx context.Context, c engine.Container) bool {
	state, err := c.State(ctx)
	return err == nil && state == engine.Stopped
}

// limitResponse compares the speedup of a program with the raise of its limit, over seconds with known limits. It models the
// rate as a power of the limit and fits the power to all seconds, so that one disturbed second does not decide. Rates that are not
// numbers are left out. The result is 2 to the power of the shortfall from 1. It is not a number if some seconds passed without an event: the
// program or its host stood still, and a power of the limit cannot describe that.
func limitResponse(limits, rates []float64) (float64, error) {
	var x, y, xx, xy, count, stalls, last float64
	for i := range min(len(limits), len(rates)) {
		if math.IsNaN(rates[i]) {
			continue
		}
		if rates[i] <= 0 {
			stalls++
		}
		limit, rate := math.Log(limits[i]), math.Log(rates[i])
		x, y, xx, xy = x+limit, y+rate, xx+limit*limit, xy+limit*rate
		count, last = count+1, limits[i]
	}
	if count < 2 || last < 1.15*limits[0] {
		return 0, fmt.Errorf("the program exited after %v whole seconds, too soon to raise its limit: set more events", count)
	}
	if stalls == count {
		return 0, errors.New("the program completed no event in any of its seconds")
	}
	if stalls > 0 {
		return math.NaN(), nil
	}
	power := (count*xy - x*y) / (count*xx - x*x)
	return math.Exp2(1 - power), nil
}

// mark is the usage so far at the time when a limit comes into force.
type mark struct {
	at        time.Duration // on the trial's clock
	used      cpuCount
	throttled throttling
	limit     float64 // in CPUs
}

// throttling counts the quota periods with throttled processes of a trial.
type throttling struct {
	periods int64
	known   bool
}

// mark reads the usage so far. In a virtual machine the guest counts the CPU time, and its throttling is unknown: the host
// throttles the whole machine, by another limit.
func (p *progress) mark(ctx context.Context, c engine.Container, limit float64) error {
	moment, err := p.t.Sleep(ctx, 0)
	if err != nil {
		return err
	}
	m := mark{at: moment, limit: limit}
	if p.t.Info.Isolation == engine.VM {
		m.used, err = countGuest(ctx, p.t, c)
		p.marks = append(p.marks, m)
		return err
	}
	if m.used, err = countCPU(p.t); err != nil {
		return err
	}
	m.used.cpu -= p.calls
	if m.throttled.periods, err = p.t.Cost.Throttled(); err != nil && !engine.Unsupported(err) {
		return err
	}
	m.throttled.known = err == nil
	p.marks = append(p.marks, m)
	return nil
}

// countCall counts the CPU time of calls of the runtime if it cannot be separated from the container's: all CPU time between
// the last mark, which excludes earlier calls, and the end of the call.
func (p *progress) countCall() error {
	base := p.marks[len(p.marks)-1].used
	if !base.known || base.exact {
		return nil
	}
	count, err := countCPU(p.t)
	if err != nil || !count.known {
		return err
	}
	p.calls = count.cpu - base.cpu
	return nil
}

// interval is a time under known limits with its usage.
type interval struct {
	seconds       float64
	allowed, used float64 // CPU time in seconds
	known         bool    // used is known
	throttled     throttling
}

// leastInterval is the minimum length of an interval in seconds: a quota that is exhausted at once proves little about a
// limit.
const leastInterval = 0.9

// intervals splits the time after the first output into intervals of about a second. A late report of a second makes the
// next one short; the short one is merged with its successor.
func (p *progress) intervals() []interval {
	var spans []interval
	empty := interval{known: true, throttled: throttling{known: true}}
	s := empty
	for i := 1; i < len(p.marks); i++ {
		last, next := p.marks[i-1], p.marks[i]
		seconds := (next.at - last.at).Seconds()
		s.seconds += seconds
		s.allowed += last.limit * seconds
		s.used += (next.used.cpu - last.used.cpu).Seconds()
		s.known = s.known && last.used.known && next.used.known && last.used.exact == next.used.exact
		periods := next.throttled.periods - last.throttled.periods // negative if a counted cgroup was removed
		s.throttled.periods += periods
		s.throttled.known = s.throttled.known && last.throttled.known && next.throttled.known && periods >= 0
		if s.seconds >= leastInterval {
			spans = append(spans, s)
			s = empty
		}
	}
	return spans
}

// mostUsed is the highest ratio of used to allowed CPU time in an interval.
func mostUsed(intervals []interval) (ratio float64, ok bool) {
	for _, s := range intervals {
		if s.known && s.used > 0 { // a counter that has not changed is not valid
			ratio, ok = max(ratio, s.used/s.allowed), true
		}
	}
	return ratio, ok
}

// starved reports whether the host did not grant the CPU time that the limits allow: the program used less, and no limit
// throttled it, neither the right one nor another. If throttling is unknown only the first limit counts, which even an
// engine that ignores all later ones grants.
func (p *progress) starved(intervals []interval) bool {
	for _, s := range intervals {
		minimum := s.allowed
		switch {
		case !s.known || s.used == 0:
			continue
		case !s.throttled.known:
			minimum = p.first * s.seconds
		case float64(s.throttled.periods) >= s.seconds*periods/2:
			continue
		}
		if s.used < 0.85*minimum {
			return true
		}
	}
	return false
}
