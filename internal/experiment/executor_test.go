package experiment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// script is an executor that makes up the record of each run. A run has a set-up of a second, and each of its trials takes 10 ms.
type script struct {
	requests []Request
	// value is the value of all metrics in a block of a run; nil is 1.
	value func(run, block int, target string) float64
	// change changes the record and the error of a run; nil keeps them.
	change func(run int, r *Run) error
	// deadline is set if a run ends with its budget.
	deadline bool
}

const (
	scriptSetUp = time.Second
	scriptTrial = 10 * time.Millisecond
)

func (s *script) Execute(_ context.Context, request Request) (Run, error) {
	n := len(s.requests)
	s.requests = append(s.requests, request)
	run, err := s.record(n, request.Plan)
	if err == nil && s.change != nil {
		err = s.change(n, &run)
	}
	return run, err
}

// record makes up the record of a plan.
func (s *script) record(n int, p plan.Plan) (Run, error) {
	work, _, err := execution.Check(p)
	if err != nil {
		return Run{}, err
	}
	run := Run{
		Run: result.Run{
			ID: fmt.Sprintf("run-%d", n), Name: p.Name, State: result.Complete, Seed: uint64(n), Baseline: p.Baseline.String(), Plan: string(p.YAML()),
			Host: result.Host{Hostname: "here"},
		},
		Outcome: execution.Outcome{Recorded: true, Available: true, Outcome: runner.Outcome{Counts: map[result.Status]int{}}},
		Took:    scriptSetUp,
	}
	for _, t := range p.Targets {
		run.Targets = append(run.Targets, result.Target{Name: t.String()})
	}
	for _, w := range work {
		run.Bench = append(run.Bench, w.Benchmark.Recorded())
	}
	for block := -p.Warmup; block < p.Blocks; block++ {
		for _, w := range work {
			for _, t := range run.Targets {
				if s.deadline && run.Took+scriptTrial > p.Budget {
					return run, nil
				}
				trial := result.Trial{
					Seq: len(run.Trials) + 1, Cell: result.Cell{Benchmark: w.Benchmark.Name, Params: w.Key(), Target: t.Name},
					Block: max(block, 0), Warmup: block < 0, Status: result.OK, Elapsed: scriptTrial,
				}
				for _, m := range w.Benchmark.Metrics {
					value := 1.0
					if s.value != nil {
						value = s.value(n, block, t.Name)
					}
					trial.Samples = append(trial.Samples, result.Sample{Metric: m.Name, Value: value})
				}
				run.Trials = append(run.Trials, trial)
				run.Counts[result.OK]++
				run.Took += scriptTrial
			}
		}
	}
	return run, nil
}

// inRun changes the record of one run.
func inRun(n int, change func(r *Run)) func(int, *Run) error {
	return func(run int, r *Run) error {
		if run == n {
			change(r)
		}
		return nil
	}
}

func interrupt(r *Run) { r.Interrupted = true }

// loseAll makes all trials of a target fail.
func (r *Run) loseAll(target string) {
	for i := range r.Trials {
		if r.Trials[i].Target == target {
			r.Trials[i].Status, r.Trials[i].Samples, r.Trials[i].Reason = result.Failed, nil, "it does not start"
			r.Counts[result.OK]--
			r.Counts[result.Failed]++
		}
	}
}

// parsePlan returns the plan of a text.
func parsePlan(t *testing.T, text string) plan.Plan {
	t.Helper()
	p, err := plan.Parse("test", []byte("version: 1\n"+text))
	must.Do(t, err)
	return p
}
