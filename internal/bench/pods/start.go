package pods

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func start() bench.Benchmark {
	part := func(name, stage, help string) result.Metric { return stageOf("Stages of a start", name, stage, help) }
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
			part("StageAccept", "accepted", "from the request that creates the pod to the answer of the API server"),
			part("StageSchedule", "scheduled", "from the answer to the condition PodScheduled"),
			part("StageSandbox", "sandbox", "Sandbox as a part"),
			part("StageCreate", "container created", "from the sandbox to the event Created: the runtime's create, and the files of the container"),
			part("StageStart", "first instruction", "from the event Created to the first instruction: the runtime's start"),
			unjudged(ofControlPlane, bench.Seconds("Request", "an empty request to the API server, before the pod")),
			unjudged(lagging, bench.Seconds("Running", "from the request to the state running")),
			unjudged(lagging, bench.Seconds("Ready", "from the request to the condition Ready")),
		},
		Phases: true,
		Run: func(ctx context.Context, t bench.Trial) error {
			request, err := t.Pods.Ping(ctx)
			if err != nil {
				return err
			}
			p, err := launch(ctx, t, t.Spec(probe.Ready()...))
			if err != nil {
				return err
			}
			t.Record("Request", request.Seconds())
			begin := p.StartSpan.Start
			record(t, "FirstInstruction", begin, p.first)
			p.between(t, "Sandbox", engine.StageScheduled, engine.StageSandboxed)
			p.between(t, "Container", engine.StageSandboxed, engine.StageFirstLine)
			p.since(t, "StageAccept", begin, engine.StageAccepted)
			p.between(t, "StageSchedule", engine.StageAccepted, engine.StageScheduled)
			p.between(t, "StageSandbox", engine.StageScheduled, engine.StageSandboxed)
			p.between(t, "StageCreate", engine.StageSandboxed, engine.StagePrepared)
			p.between(t, "StageStart", engine.StagePrepared, engine.StageFirstLine)
			p.since(t, "Running", begin, engine.StageRunning)
			p.since(t, "Ready", begin, engine.StageReady)
			return nil
		},
	}
}
