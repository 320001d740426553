// Package operations is the suite of what engines do to containers: the latency of
// each operation, and what it costs the host.
package operations

import (
	"context"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	all := []bench.Benchmark{lifecycle(), exec(), pause(), update(), stats(), pull(), service()}
	for i := range all {
		all[i].Phases = true
	}
	return all
}

func seconds(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower, Help: help}
}

// criSteps are the metrics of the steps of CRI, which targets have whose engine speaks it.
func criSteps() []result.Metric {
	steps := []result.Metric{
		layered(result.LayerSandbox, seconds("RunPodSandbox", "CRI step of Create: the pod's sandbox with its network")),
		seconds("CreateContainer", "CRI step of Create: the container in the sandbox"),
		seconds("StartContainer", "CRI step of Run: all of it"),
		seconds("StopContainer", "CRI step of Destroy: kill at once, with the wait for the end"),
		seconds("RemoveContainer", "CRI step of Destroy"),
		seconds("StopPodSandbox", "CRI step of Destroy: the sandbox's end, with its network's"),
		seconds("RemovePodSandbox", "CRI step of Destroy"),
	}
	for i := range steps {
		steps[i].Optional = true
	}
	return steps
}

func phrased(phrase string, m result.Metric) result.Metric {
	m.Phrase = phrase
	return m
}

func layered(role result.Layer, m result.Metric) result.Metric {
	m.Layer = role
	return m
}

// recordSteps records the steps of CRI. Those of other engines are phases of the trial and no metrics.
func recordSteps(t bench.Trial) {
	for _, step := range t.Steps() {
		if slices.ContainsFunc(criSteps(), func(m result.Metric) bool { return m.Name == step.Name }) {
			t.Record(step.Name, step.Seconds())
		}
	}
}

func series(m result.Metric) result.Metric {
	m.Series = true
	return m
}

// layeredCost are the cost metrics, of which the CPU time is split into layers.
func layeredCost() []result.Metric {
	cost := bench.CostMetrics()
	cost[0] = layered(result.LayerTotal, cost[0])
	return cost
}

func lifecycle() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.container.lifecycle",
		Summary: "create, start, kill and delete one container",
		Source:  "espe table 1 and figure 5; nishimura tables 3 and 4; wang section 5.6",
		Metrics: slices.Concat([]result.Metric{
			seconds("Create", "the container exists, its process does not run yet (espe: OpCreate)"),
			seconds("Run", "from created to running (espe: OpRun)"),
			layered(result.LayerTotal, phrased("creates and starts a container in", seconds("CreateAndRun", "Create and Run together (espe: OpCreateAndRun)"))),
			phrased("destroys a container in", seconds("Destroy", "the sum of kill, wait for the exit and delete (espe: OpDestroy)")),
			phrased("brings a container to its first instruction in", seconds("FirstInstruction", "from just before create to the first byte that the container's first process writes, by the host's clock")),
		}, criSteps(), layeredCost(), bench.ComponentMetrics()),
		Components: true,
		Run: func(ctx context.Context, t bench.Trial) error {
			out := t.Watch()
			spec := t.Spec(workload.Ready()...)
			spec.Process.Stdout = out
			c, create, err := t.Create(ctx, spec)
			if err != nil {
				return err
			}
			start, err := t.Time(ctx, "start", c.Start)
			if err != nil {
				return err
			}
			if err := bench.CheckReady(ctx, out); err != nil {
				return err
			}
			_, first, err := out.FirstLine(ctx)
			if err != nil {
				return err
			}
			if err := bench.RecordMemory(t); err != nil {
				return err
			}
			destroy, _, err := bench.Destroy(ctx, t, c)
			if err != nil {
				return err
			}
			t.Record("Create", create.Seconds())
			t.Record("Run", start.Seconds())
			t.Record("CreateAndRun", create.Seconds()+start.Seconds())
			t.Record("Destroy", destroy.Seconds())
			t.Record("FirstInstruction", (first - create.Start).Seconds())
			recordSteps(t)
			return bench.RecordCostByComponent(t)
		},
	}
}

// repeats is the parameter of benchmarks that repeat an operation in one container.
var repeats = bench.Param{
	Name: "repeats", Help: "operations in a row in the same container", Quick: "5", Paper: "20", Check: bench.IntRange(1, 1000),
}

func exec() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.container.exec",
		Summary: "run a further process in a running container, to its end",
		Source:  "peers (bucketbench, critest)",
		Metrics: []result.Metric{series(phrased("runs a further process in a container in", seconds("Exec", "from the call to the end of a process that does nothing")))},
		Params:  []bench.Param{repeats},
		Needs:   []engine.Capability{engine.CanExec},
		Run: func(ctx context.Context, t bench.Trial) error {
			return repeated(ctx, t, func(c engine.Container, _ int) error {
				return timed(ctx, t, "Exec", func(ctx context.Context) error {
					exit, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: workload.Exit(0)})
					if err == nil && !exit.OK() {
						err = fmt.Errorf("the process ended: %v", exit)
					}
					return err
				})
			})
		},
	}
}

func pause() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.container.pause",
		Summary: "freeze and thaw a running container",
		Source:  "peers (bucketbench)",
		Metrics: []result.Metric{
			series(phrased("pauses a container in", seconds("Pause", "from running to paused"))),
			series(seconds("Resume", "from paused to running")),
		},
		Params: []bench.Param{repeats},
		Needs:  []engine.Capability{engine.CanPause},
		Run: func(ctx context.Context, t bench.Trial) error {
			return repeated(ctx, t, func(c engine.Container, _ int) error {
				p := c.(engine.Pauser)
				if err := timed(ctx, t, "Pause", p.Pause); err != nil {
					return err
				}
				return timed(ctx, t, "Resume", p.Resume)
			})
		},
	}
}
