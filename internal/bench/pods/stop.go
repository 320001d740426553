package pods

import (
	"context"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// settle is the time between the start and the deletion. A kubelet handles the next change of a pod only after it has listed all pods since the
// last one, which it does each second. Without the wait the time to the signal has up to 700 ms of this in it.
const settle = 1200 * time.Millisecond

func stop() bench.Benchmark {
	part := func(name, stage, help string) result.Metric { return stageOf("Stages of a stop", name, stage, help) }
	signal := bench.Seconds("Signal", "from just before the request that deletes the pod to SIGTERM in the program, by the time in the log; the program exits at once")
	signal.Phrase = "brings SIGTERM to the program of a pod in"
	end := optional(bench.Seconds("Terminate", "from the request until the API server reports the end of the container and the sandbox (from Kubernetes 1.36 on)"))
	end.Phrase = "ends a pod in"
	return bench.Benchmark{
		Name:    "pods.delete",
		Summary: "one pod, from the request that deletes it to its end, by stages",
		Source:  "peers (ClusterLoader2), with the node's clock instead of whole seconds",
		Metrics: []result.Metric{
			signal, end,
			part("StageStop", "stopping", "from the request to the event Killing of the kubelet"),
			part("StageSignal", "SIGTERM", "from the event Killing to SIGTERM in the program"),
			part("StageTeardown", "terminated", "from the exit of the program until the API server reports the end of the container and the sandbox"),
			part("StageDelete", "deleted", "from then until the API server has removed the pod"),
			unjudged(granular, bench.Seconds("Deleted", "from the request until the API server has removed the pod")),
		},
		Phases: true,
		Run: func(ctx context.Context, t bench.Trial) error {
			p, err := launch(ctx, t, t.Spec(probe.ReadySignal()...))
			if err != nil {
				return err
			}
			if _, err := t.Sleep(ctx, settle); err != nil {
				return err
			}
			span, err := p.Remove(p.stages.Within(ctx), t)
			if err != nil {
				return err
			}
			const want = probe.ReadyLine + "\n" + probe.SignalLine + "\n"
			if output := p.Output.Bytes(); string(output) != want {
				return fmt.Errorf("the program must write %q and has written %.100q: it was killed before it had handled SIGTERM", want, output)
			}
			last, ok := p.stages.At(engine.StageLastLine)
			if !ok || last < span.Start {
				return fmt.Errorf("the log of the pod has no time of the line at SIGTERM after the request")
			}
			record(t, "Signal", span.Start, last)
			p.since(t, "Terminate", span.Start, engine.StageTerminated)
			p.since(t, "StageStop", span.Start, engine.StageStopping)
			p.between(t, "StageSignal", engine.StageStopping, engine.StageLastLine)
			p.between(t, "StageTeardown", engine.StageLastLine, engine.StageTerminated)
			p.between(t, "StageDelete", engine.StageTerminated, engine.StageDeleted)
			p.since(t, "Deleted", span.Start, engine.StageDeleted)
			return nil
		},
	}
}
