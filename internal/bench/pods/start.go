package pods

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func start() bench.Benchmark {
	first := bench.Headed(result.ColumnStart, bench.Scored(result.DimensionStartUp,
		bench.Seconds("FirstInstruction", "from just before the request that creates the pod to the first line of its program, by the time in the log")))
	first.Phrase = "brings a pod to its first instruction in"
	return bench.Benchmark{
		Name:    "pods.start",
		Summary: "one pod, from the request to the first instruction of its program, by stages",
		Source:  "peers (ClusterLoader2, PodStartupLatency of Kubernetes), with the node's clock instead of whole seconds",
		Metrics: []result.Metric{
			first,
			optional(bench.Seconds("Sandbox", "from scheduled to the sandbox with its network: by the event Pulled, or without the right to read events by the condition PodReadyToStartContainers")),
			optional(bench.Seconds("Container", "from the sandbox to the first instruction")),
			optional(bench.Seconds("CreateContainer", "from the sandbox to the event Created: the runtime's create, and the files of the container")),
			optional(bench.Seconds("StartContainer", "from the event Created to the first instruction: the runtime's start")),
			unjudged(ofControlPlane, bench.Seconds("Request", "an empty request to the API server, before the pod")),
			unjudged(ofControlPlane, bench.Seconds("Accept", "from the request that creates the pod to its answer")),
			unjudged(ofControlPlane, bench.Seconds("Schedule", "from the answer to the condition PodScheduled")),
			unjudged(lagging, bench.Seconds("Running", "from the request to the state running")),
			unjudged(lagging, bench.Seconds("Ready", "from the request to the condition Ready")),
		},
		Phases: true,
		Run: func(ctx context.Context, t bench.Trial) error {
			request, err := t.Pods.Ping(ctx)
			if err != nil {
				return err
			}
			p, err := launch(ctx, t)
			if err != nil {
				return err
			}
			t.Record("Request", request.Seconds())
			begin := p.StartSpan.Start
			record(t, "FirstInstruction", begin, p.first)
			p.between(t, "Sandbox", engine.StageScheduled, engine.StageSandboxed)
			p.between(t, "Container", engine.StageSandboxed, engine.StageFirstLine)
			p.between(t, "CreateContainer", engine.StageSandboxed, engine.StagePrepared)
			p.between(t, "StartContainer", engine.StagePrepared, engine.StageFirstLine)
			p.since(t, "Accept", begin, engine.StageAccepted)
			p.between(t, "Schedule", engine.StageAccepted, engine.StageScheduled)
			p.since(t, "Running", begin, engine.StageRunning)
			p.since(t, "Ready", begin, engine.StageReady)
			return nil
		},
	}
}
