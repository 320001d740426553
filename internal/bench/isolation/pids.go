package isolation

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// bombMargin is the number of processes that the fork bomb makes at most, over its limit. It bounds the harm of a limit that
// does not hold.
const bombMargin = 2

// The fewest and the most processes of the limit. The probe makes at most bombMargin times the most.
const leastLimit, mostLimit = 64, 4096

func pids() bench.Benchmark {
	s := speed{unit: result.PerSecond, work: "containers of the victim per second, created, started, ready, killed and deleted one after the other,", unitOf: "start, from the call of create to the program's first output"}
	return bench.Benchmark{
		Name:    "isolation.pids",
		Summary: "container starts while another container runs a fork bomb inside its limit of processes",
		Source:  "wang section 5.8, equation 2; peers (docker run --pids-limit)",
		Metrics: metrics(s, ""),
		Image:   bench.WorkloadImage,
		Params: joined(
			[]bench.Param{{
				Name: "limit", Help: "limit of processes of the fork bomb, unless the plan sets one; it makes at most twice as many, also without a limit",
				Quick: "256", Paper: "1024", Check: bench.IntRange(leastLimit, mostLimit),
			}},
			phases("2500ms", "3s", "1s"), limitParams(), aggressorParams("1"),
		),
		Needs: func(p bench.Params) bench.Needs {
			// A process of the probe takes less than 64 KiB with its kernel memory, and far more in a sandbox.
			bombs := int64(p.Int(aggressorsParam)) * int64(p.Int("limit")) * bombMargin
			return needs(p, bench.Needs{Capabilities: []engine.Capability{engine.DirectCalls}, Memory: bombs << 18, CPUs: 2, Containers: 2 + p.Int(aggressorsParam)})
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			spec := bomb(t, false)
			if limit := spec.Resources.PIDs; limit > mostLimit {
				return &engine.UnsupportedError{
					What: "a fork bomb", Reason: fmt.Sprintf("the plan's limit of %d processes is above %d, the most of a fork bomb", limit, mostLimit),
					Advice: "set a lower limit of processes for isolation.pids",
				}
			}
			t.Condition("limit of processes", strconv.FormatInt(spec.Resources.PIDs, 10)+" for each aggressor")
			if err := confirm(ctx, t); err != nil {
				return err
			}
			return scene{
				victim: lifecycles,
				aggressor: func(ctx context.Context, t bench.Trial, p *party) error {
					_, err := p.launch(ctx, t, asAggressor(t), bomb(t, false), forks())
					return err
				},
			}.run(ctx, t)
		},
	}
}

// bomb describes the fork bomb.
func bomb(t bench.Trial, runOnce bool) engine.Spec {
	spec := t.Spec()
	if spec.Resources.PIDs == 0 {
		spec.Resources.PIDs = int64(t.Int("limit"))
	}
	spec.Process.Args = probe.Forks(int(bombMargin*spec.Resources.PIDs), longest(t), runOnce)
	return limited(t, spec)
}

// confirm proves that the limit holds, by a container that forks until it is refused and then exits. Without a proof the
// trial is skipped: no fork bomb runs without a limit.
func confirm(ctx context.Context, t bench.Trial) error {
	var last probe.ForksProgress
	var bad error
	spec := bomb(t, true)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newParty("dry run", newGate(), func(error) {})
	c, err := p.launch(ctx, t, asAggressor(t), spec, func(line string) (step, bool, error) {
		last, bad = probe.ParseForks(line)
		return step{}, bad == nil, bad
	})
	if err != nil {
		return err
	}
	select {
	case <-c.Exit.Done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	failure := c.Exit.Failure()
	if err := p.end(ctx, t); err != nil {
		return err
	}
	if err := c.Output.Ended(ctx); err != nil {
		return err
	}
	unconfirmed := func(reason string) error {
		return &engine.UnsupportedError{What: "a fork bomb", Reason: "the limit of processes is not confirmed, and no fork bomb runs without one: " + reason}
	}
	switch {
	case c.Exit.Err != nil:
		return c.Exit.Err
	case bad != nil:
		return bad
	case c.Exit.Code == probe.ForksUnlimited:
		return unconfirmed(fmt.Sprintf("a program could make %d processes under a limit of %d", bombMargin*spec.Resources.PIDs, spec.Resources.PIDs))
	case failure != nil:
		return unconfirmed(fmt.Sprintf("a program that forks until it is refused does not survive it: %v", failure))
	case last.Refused == 0 || int64(last.Live) > spec.Resources.PIDs:
		return errors.New("the dry run of the fork bomb exited without a refusal")
	}
	return nil
}

// forks returns the reader of the fork bomb's lines.
func forks() reader {
	var last probe.ForksProgress
	return func(line string) (step, bool, error) {
		progress, err := probe.ParseForks(line)
		if err == nil && (progress.Total < last.Total || progress.Refused < last.Refused) {
			err = fmt.Errorf("the fork bomb counts backwards: %q", line)
		}
		if err != nil {
			return step{}, false, err
		}
		count := progress.Total - last.Total
		last = progress
		return step{work: float64(count)}, count > 0, nil
	}
}

// lifecycles creates, starts and removes containers one after the other until the party is ended.
func lifecycles(ctx context.Context, t bench.Trial, p *party) error {
	ctx, stop := context.WithCancel(ctx)
	end := make(chan struct{})
	p.stops = append(p.stops, func() {
		<-end
		stop()
	})
	go func() {
		defer close(end)
		for !p.isEnding() && ctx.Err() == nil {
			if err := p.lifecycle(ctx, t); err != nil {
				p.broken(err)
				return
			}
		}
	}()
	return nil
}

// lifecycle is one unit of the victim's work.
func (p *party) lifecycle(ctx context.Context, t bench.Trial) error {
	defer p.gate.enter()()
	c, err := bench.Start(ctx, t, func(s *engine.Spec) { *s = limited(t, *s) })
	if err != nil {
		return err
	}
	ready, err := c.Ready(ctx)
	if err != nil {
		return err
	}
	_, removal, err := c.Destroy(ctx, t)
	if err != nil {
		return err
	}
	p.add(step{at: removal.End, work: 1, times: []times{{seconds: (ready - c.CreateSpan.Start).Seconds(), count: 1}}})
	return nil
}
