// Package pods is the suite of pods of a Kubernetes cluster: how long a pod of a RuntimeClass takes to start and to stop on a node, how many
// start at once, and how many the node holds.
//
// The stages of a pod come from three sources with one clock, because the agent and the pod are on one machine: the answer of the API server and
// its watch, as the agent receives them; the log of the pod, whose lines the container engine of the node stamps with nanoseconds; and the names
// of the kubelet's events, which end with its nanoseconds. The log is the headline: its first line is 0.3 to 1.1 ms behind the program's first
// instruction for runc, crun and gVisor alike. The states "running" and "ready" lag by 28 ms for runc and by 80 ms for gVisor, so they are recorded
// and not judged.
package pods

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{start(), stop(), rate(), density()}
}

// The reasons of metrics without a verdict.
const (
	ofControlPlane = "it is the time of the control plane, and the same for all classes"
	lagging        = "the API server learns of it with a delay that depends on the class"
	granular       = "the kubelet removes pods once a second"
)

// unjudged is an optional time without a verdict.
func unjudged(reason string, m result.Metric) result.Metric {
	m.NoVerdict, m.Optional = reason, true
	return m
}

// optional is a time that needs a stage that not every cluster reports.
func optional(m result.Metric) result.Metric {
	m.Optional = true
	return m
}

// stageOf is a stage as a part of the whole time. It needs reports that not every cluster gives.
func stageOf(group, name, stage, help string) result.Metric {
	m := optional(bench.Seconds(name, help))
	m.Group, m.Component = group, stage
	return m
}

// pod is a pod of a trial with its stages.
type pod struct {
	*bench.Running
	stages bench.Stages
	first  time.Duration // the time of its first line
}

// launch starts a pod of a program that writes probe.ReadyLine at once, and returns after this line.
func launch(ctx context.Context, t bench.Trial, spec engine.Spec) (*pod, error) {
	stages, err := t.Pods.Observe()
	if err != nil {
		return nil, err
	}
	r, err := bench.Launch(stages.Within(ctx), t, spec)
	if err != nil {
		return nil, &startError{err}
	}
	if _, err := r.Ready(ctx); err != nil {
		return nil, err
	}
	p := &pod{Running: r, stages: stages}
	first, ok := stages.At(engine.StageFirstLine)
	if !ok {
		return nil, fmt.Errorf("the log of the pod has no time of its first line")
	}
	p.first = first
	return p, nil
}

// idle describes a pod among many. Nothing reads its output after the first line.
func idle(t bench.Trial) engine.Spec {
	spec := t.Spec(probe.Ready()...)
	spec.Process.OneLine = true
	return spec
}

// startError is the error of a pod that the cluster has not started. Of many pods, some may have it. Any other error means that a program or a
// measurement is wrong.
type startError struct{ error }

func (e *startError) Unwrap() error { return e.error }

// notStarted reports whether the cluster has not started a pod.
func notStarted(err error) bool {
	var start *startError
	return errors.As(err, &start)
}

// since records the time from a moment to a stage, unless the stage is unknown.
func (p *pod) since(t bench.Trial, metric string, begin time.Duration, end engine.Stage) {
	if moment, ok := p.stages.At(end); ok {
		record(t, metric, begin, moment)
	}
}

// between records the time from one stage to another, unless one of them is unknown.
func (p *pod) between(t bench.Trial, metric string, begin, end engine.Stage) {
	if moment, ok := p.stages.At(begin); ok {
		p.since(t, metric, moment, end)
	}
}

// record records a time. A stage whose report comes after the next stage has no sample: its report was late. The API server may report a schedule before
// the answer to the request, and on a busy node a sandbox after the first line.
func record(t bench.Trial, metric string, begin, end time.Duration) {
	if begin <= end {
		t.Record(metric, (end - begin).Seconds())
	}
}
