package limits

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Bounds of a limit that is held and followed. As with limits.cpu.time, the kernel lets a bit more through, and gives a whole
// quota at once with each new limit.
const (
	mostUsed   = 1.25
	mostBehind = 1.4
)

func cpuScaling() bench.Benchmark {
	metrics := []result.Metric{
		seconds("TotalTime", "time until all events are done while the limit is raised (espe: ScalingLimit)"),
		{
			Name: "Update", Unit: result.Seconds, Better: result.Lower, Series: true,
			Help: "time of a call that raises the limit, to its answer",
		},
		optional(bounded("Used", mostUsed, "does not hold a CPU limit that is raised",
			"the most CPU time in a second of the container and its sandbox, without shims and daemons, over what the limit in force allows: 1 where it holds, more where there is none or a raise ends it")),
		optional(bounded("Behind", mostBehind, "does not follow a raised CPU limit",
			"how many times a doubled limit is what the program makes of it: 1 where it works twice as fast, 2 where it works no faster than before; left out where the host is too busy to give what a limit allows, and where the limit does not hold")),
	}
	return bench.Benchmark{
		Name:    "limits.cpu.scaling",
		Summary: "a CPU limit raised, by default from half to full, a step each second while a program runs, and whether it holds and the program follows",
		Source:  "espe section 5.5, table 1 (ScalingLimit): from half to full; TouchStone's code: from 10 % to full",
		Metrics: metrics,
		Image:   bench.WorkloadImage, Components: true,
		Needs: []engine.Capability{engine.CanUpdate},
		// Enough events for a second under the full limit, up to 2000 and 2400 events a second without any.
		Params: append(primes("3000", "20000"),
			bench.Param{
				Name: "steps", Help: "in how many steps the limit is raised; a fast machine needs more events to get to the last",
				Quick: "3", Paper: "10", Check: bench.IntRange(1, 100),
			},
			bench.Param{
				Name: "percent", Help: "the last limit, the full one, in per cent of a CPU",
				Quick: "50", Paper: "100", Check: bench.IntRange(10, 100), // 10 % of 10 % is the least that the kernel takes
			},
			bench.Param{
				Name: "from", Help: "the first limit in per cent of the full one; TouchStone's code takes 10",
				Quick: "50", Paper: "50", Check: bench.IntRange(10, 80), // more would be too little to tell whether it follows
			},
		),
		Run: func(ctx context.Context, t bench.Trial) error {
			var prime, events, steps, percent, from int
			err := bench.Numbers(t, map[string]*int{"prime": &prime, "events": &events, "steps": &steps, "percent": &percent, "from": &from})
			if err != nil {
				return err
			}
			p := workload.SysbenchCPUProgress(prime, events, 1)
			full := float64(percent) / 100
			run := &progress{t: t, first: full * float64(from) / 100, full: full, steps: steps, passed: make(chan struct{}, steps+2)}
			text, err := run.scale(ctx, bench.SpecOf(t, p))
			if err != nil {
				return err
			}
			limits, err := run.limits(ctx)
			if err != nil {
				return err
			}
			values, err := p.Parse(text)
			if err != nil {
				return fmt.Errorf("read the output of %q: %w", p.Args, err)
			}
			rates, err := workload.Rates(text)
			if err != nil {
				return fmt.Errorf("read the output of %q: %w", p.Args, err)
			}
			stretches := run.stretches()
			used, known := most(stretches)
			holds := !known || used <= mostUsed
			missed, err := behind(limits, rates)
			if err != nil && (holds || len(run.raised) == 0) { // without a limit it is done in no time
				return err
			}
			t.Condition("CPU limit", fmt.Sprintf("from %s to %s", percentOfCPU(limits[0]), percentOfCPU(limits[len(limits)-1])))
			t.Record("TotalTime", values["TotalTime"])
			if known {
				t.Record("Used", used)
			}
			// Who gains so much more than is allowed does not go by the limit at all, known or not.
			if holds && missed > 1/mostBehind && !run.starved(stretches) {
				t.Record("Behind", missed)
			}
			return nil
		},
	}
}

// progress is how far a program has come, whose limit is raised in steps.
type progress struct {
	t           bench.Trial
	first, full float64 // limits in CPUs
	steps       int
	raised      []time.Duration // when each step had been made
	passed      chan struct{}   // a token for the first output and for each second, as far as there is room
	spoke       bool            // there was output
	marks       []mark          // for each token
	calls       time.Duration   // CPU time of calls so far that counts as the container's

	mu      sync.Mutex
	seconds []bench.Watch // when it said that each had passed
}

func (p *progress) line(line string) {
	if workload.IsProgress(line) {
		p.mu.Lock()
		p.seconds = append(p.seconds, heard(p.t))
		p.mu.Unlock()
	} else if p.spoke {
		return
	}
	p.spoke = true
	select {
	case p.passed <- struct{}{}:
	default:
	}
}

// limit is that after so many steps.
func (p *progress) limit(steps int) float64 {
	return p.first + (p.full-p.first)*float64(steps)/float64(p.steps)
}

// limits gives the limits that were in force when each of the program's seconds had passed. The program has ended.
func (p *progress) limits(ctx context.Context) ([]float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []float64
	for _, second := range p.seconds {
		_, at, err := second.FirstLine(ctx)
		if err != nil {
			return nil, err
		}
		steps := 0
		for steps < len(p.raised) && p.raised[steps] < at {
			steps++
		}
		all = append(all, p.limit(steps))
	}
	return all, nil
}

// scale runs a program that tells of each second, and raises its limit each time. It gives what the program wrote.
func (p *progress) scale(ctx context.Context, spec engine.Spec) ([]byte, error) {
	out, complaints := &follower{Watch: p.t.Watch(), line: p.line}, p.t.Watch()
	spec.Process.Stdout, spec.Process.Stderr = out, complaints
	spec.Resources.CPU = p.limit(0)
	c, err := start(ctx, p.t, spec)
	if err != nil {
		return nil, err
	}
	defer c.cancel()
	if err := p.follow(ctx, c, spec.Resources); err != nil {
		return nil, err
	}
	<-c.ended
	if err := c.failed(); err != nil {
		return nil, err
	}
	if _, err := c.remove(ctx, p.t, out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// follow raises the limit with each second that the program has worked, until it has been raised to the full, and ends with
// the program.
func (p *progress) follow(ctx context.Context, c *running, limits engine.Resources) error {
	updater, ok := c.Container.(engine.Updater)
	if !ok {
		return errors.New("the engine says that it can update containers, and has no way to")
	}
	for step := 0; ; step++ {
		select {
		case <-p.passed:
		case <-c.ended:
			return nil
		}
		limits.CPU = p.limit(min(step, p.steps))
		if err := p.mark(ctx, limits.CPU); err != nil {
			return err
		}
		if step == 0 || step > p.steps {
			continue
		}
		span, err := p.t.Time(ctx, "update", func(ctx context.Context) error { return updater.Update(ctx, limits) })
		if err != nil {
			if state, asked := c.State(ctx); asked == nil && state == engine.Stopped {
				return nil // it ended in between
			}
			return err
		}
		p.t.Record("Update", span.Seconds())
		p.raised = append(p.raised, span.End)
		if err := p.called(); err != nil {
			return err
		}
	}
}

// behind compares how much faster a program became with how much more it was allowed, over seconds with known limits. The
// rate is taken for a power of the limit, and the power fitted to all seconds, so that one disturbed second does not
// decide: 2 to the power of what is missing from 1.
func behind(limits, rates []float64) (float64, error) {
	n := min(len(limits), len(rates))
	if n < 2 || limits[n-1] < 1.15*limits[0] {
		return 0, fmt.Errorf("the program was done after %d whole seconds, too soon to raise its limit: give it more events", n)
	}
	if slices.Min(rates[:n]) <= 0 {
		return 0, errors.New("the program got nothing done in one of its seconds")
	}
	var x, y, xx, xy float64
	for i := range n {
		limit, rate := math.Log(limits[i]), math.Log(rates[i])
		x, y, xx, xy = x+limit, y+rate, xx+limit*limit, xy+limit*rate
	}
	count := float64(n)
	power := (count*xy - x*y) / (count*xx - x*x)
	return math.Exp2(1 - power), nil
}
