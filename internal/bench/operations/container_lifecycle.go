package operations

import (
	"context"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func lifecycle() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.container.lifecycle",
		Summary: "create, start, kill and delete one container",
		Source:  "espe table 1 and figure 5; nishimura tables 3 and 4; wang section 5.6",
		Metrics: slices.Concat([]result.Metric{
			bench.Seconds("Create", "the container exists, its process does not run yet (espe: OpCreate)"),
			bench.Seconds("Run", "from created to running (espe: OpRun)"),
			layered(result.LayerTotal, phrased("creates and starts a container in", bench.Headed(result.ColumnStart, bench.Scored(result.DimensionStartUp, bench.Seconds("CreateAndRun", "Create and Run together (espe: OpCreateAndRun)"))))),
			phrased("destroys a container in", bench.Seconds("Destroy", "the sum of kill, wait for the exit and delete (espe: OpDestroy)")),
			phrased("brings a container to its first instruction in", bench.Seconds("FirstInstruction", "from just before create to the first byte that the container's first process writes, by the host's clock")),
		}, criSteps(), layeredCost(), bench.ComponentMetrics()),
		Steps:      true,
		Components: true,
		Needs:      bench.Always(engine.DirectCalls),
		Run: func(ctx context.Context, t bench.Trial) error {
			c, err := bench.Launch(ctx, t, t.Spec(probe.Ready()...))
			if err != nil {
				return err
			}
			first, err := c.Ready(ctx)
			if err != nil {
				return err
			}
			if err := bench.RecordMemory(t); err != nil {
				return err
			}
			destroy, _, err := c.Destroy(ctx, t)
			if err != nil {
				return err
			}
			t.Record("Create", c.CreateSpan.Seconds())
			t.Record("Run", c.StartSpan.Seconds())
			t.Record("CreateAndRun", c.CreateSpan.Seconds()+c.StartSpan.Seconds())
			t.Record("Destroy", destroy.Seconds())
			t.Record("FirstInstruction", (first - c.CreateSpan.Start).Seconds())
			return bench.RecordCostByComponent(t)
		},
	}
}

// criSteps are the metrics of the steps of CRI, which only targets over CRI have. The trial records a step that has the
// name of a metric. Steps of other engines are only phases of the trial.
func criSteps() []result.Metric {
	steps := []result.Metric{
		layered(result.LayerSandbox, bench.Seconds("RunPodSandbox", "CRI step of Create: the pod's sandbox with its network")),
		bench.Seconds("CreateContainer", "CRI step of Create: the container in the sandbox"),
		bench.Seconds("StartContainer", "CRI step of Run: all of it"),
		bench.Seconds("StopContainer", "CRI step of Destroy: kill at once, and wait for the exit"),
		bench.Seconds("RemoveContainer", "CRI step of Destroy"),
		bench.Seconds("StopPodSandbox", "CRI step of Destroy: the end of the sandbox and of its network"),
		bench.Seconds("RemovePodSandbox", "CRI step of Destroy"),
	}
	for i := range steps {
		steps[i].Optional = true
	}
	return steps
}

func layered(role result.Layer, m result.Metric) result.Metric {
	m.Layer = role
	return m
}

// layeredCost returns the cost metrics, with the CPU time as a metric that reports split into layers.
func layeredCost() []result.Metric {
	cost := bench.CostMetrics()
	cost[0] = layered(result.LayerTotal, cost[0])
	return cost
}
