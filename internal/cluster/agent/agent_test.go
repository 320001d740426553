package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/cluster/agent"
	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/kube/kubetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// bench is an agent with an imitated API server and an imitated execution.
type bench struct {
	testing.TB
	server *kubetest.Server
	fleet  cluster.Fleet
	config agent.Config
	// lines are the records of all starts of the agent.
	lines chan record.Record
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{TB: t, server: kubetest.New(t), lines: make(chan record.Record, 1000)}
	b.fleet = cluster.Fleet{
		ID: "20261129-120000-abcd", Namespace: "ns", Name: "p", Plan: "version: 1\ntargets: [k8s]\nbenchmarks: [pods.start]\n", Image: "i", Lease: time.Hour,
		Nodes: []cluster.Node{{Node: result.Node{Fleet: "20261129-120000-abcd", Name: "n1"}}},
	}
	pod := b.fleet.Agent(b.fleet.Nodes[0])
	b.server.Set(t, b.path(), pod)
	root := t.TempDir()
	files := filepath.Join(root, cluster.PlanDir)
	must.Do(t, os.MkdirAll(files, 0o700), os.WriteFile(filepath.Join(files, cluster.PlanFile), []byte(b.fleet.Plan), 0o600))
	variables := map[string]string{
		cluster.NodeVariable: "n1", cluster.PodVariable: pod.Name, cluster.UIDVariable: "uid", cluster.FactVariable: pod.Annotations[cluster.FactsAnnotation],
	}
	b.config = agent.Config{Client: b.server.Client(t), Root: root, Getenv: func(name string) string { return variables[name] }}
	return b
}

func (b *bench) path() string {
	return "/api/v1/namespaces/ns/pods/" + b.fleet.AgentName("n1")
}

// annotate changes an annotation of the agent's pod, as the coordinator does.
func (b *bench) annotate(key, value string) {
	b.Helper()
	var pod corev1.Pod
	b.server.Read(b, b.path(), &pod)
	pod.Annotations[key] = value
	b.server.Set(b, b.path(), &pod)
}

// start starts the agent, whose execution is imitated. The channel receives its error.
func (b *bench) start(ctx context.Context, execute func(context.Context, execution.Config) (execution.Outcome, error)) <-chan error {
	b.Helper()
	facts := filepath.Join(b.config.Root, cluster.PlanDir, cluster.FleetFile)
	must.Do(b, os.WriteFile(facts, []byte(b.fleet.Facts()), 0o600))
	log, out := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for reader := record.NewReader(log); ; {
			r, err := reader.Next()
			if err != nil {
				return
			}
			b.lines <- r
		}
	}()
	config := b.config
	config.Log, config.Execute = out, execute
	end := make(chan error, 1)
	go func() {
		err := agent.Run(ctx, config)
		_ = out.Close() // a pipe has no error
		<-read
		end <- err
	}()
	return end
}

// next returns the next records of the run, without the progress and the notes.
func (b *bench) next(count int) (list []string) {
	b.Helper()
	for len(list) < count {
		select {
		case r := <-b.lines:
			if r.Kind == record.Failure {
				b.Fatalf("the agent has failed: %s", r.Data)
			}
			if r.Number > 0 {
				list = append(list, fmt.Sprintf("%d %s", r.Number, r.Kind))
			}
		case <-time.After(time.Minute):
			b.Fatalf("the log ends after %q", list)
		}
	}
	return list
}

// wants checks the next records.
func (b *bench) wants(want ...string) {
	b.Helper()
	if got := b.next(len(want)); !slices.Equal(got, want) {
		b.Errorf("the records are %q, want %q", got, want)
	}
}

// trials records a run with trials up to a number, and returns when its end is requested.
func trials(last int, isEndless bool) func(context.Context, execution.Config) (execution.Outcome, error) {
	return func(ctx context.Context, config execution.Config) (execution.Outcome, error) {
		background := context.WithoutCancel(ctx)
		first := 1
		if config.Earlier != nil {
			first += len(config.Earlier.Trials)
			if err := config.Store.Resume(background, config.RunID); err != nil {
				return execution.Outcome{}, err
			}
		} else {
			run := result.Run{
				ID: config.RunID, Name: "p", State: result.Running, Started: time.Unix(1_800_000_000, 0).UTC(), Plan: string(config.Plan.YAML()), Host: host.Facts("/"),
				Targets: []result.Target{{Name: "k8s"}},
				Bench:   []result.Benchmark{{Name: "b", Metrics: []result.Metric{{Name: "M", Unit: result.Seconds, Better: result.Lower}}}},
			}
			run.Host.Node = config.Node
			if err := config.Store.Create(background, run); err != nil {
				return execution.Outcome{}, err
			}
		}
		for seq := first; seq <= last; seq++ {
			trial := result.Trial{
				Seq: seq, Cell: result.Cell{Benchmark: "b", Target: "k8s"}, Block: seq, Status: result.OK, Started: time.Unix(1_800_000_000, 0).UTC(),
				Samples: []result.Sample{{Metric: "M", Value: 1}},
			}
			if err := config.Store.Append(background, config.RunID, trial); err != nil {
				return execution.Outcome{Recorded: true}, err
			}
		}
		state := result.Complete
		if isEndless {
			<-ctx.Done()
			state = result.Interrupted
		}
		return execution.Outcome{Recorded: true}, config.Store.Finish(background, config.RunID, state, time.Unix(1_800_000_100, 0).UTC(), nil)
	}
}

// An agent writes the records that its log has lost again, and exits when the coordinator has all of them.
func TestReplay(t *testing.T) {
	b := newBench(t)
	end := b.start(t.Context(), trials(3, false))
	b.wants("1 begin", "2 trial", "3 trial", "4 trial", "5 finish")
	b.annotate(cluster.ReplayAnnotation, "3/x")
	b.wants("3 trial", "4 trial", "5 finish")
	b.annotate(cluster.ReplayAnnotation, "1/y")
	b.wants("1 begin", "2 trial", "3 trial", "4 trial", "5 finish")
	b.annotate(cluster.ReplayAnnotation, "-7/hostile")
	b.annotate(cluster.EndAnnotation, cluster.EndCollected)
	must.Do(t, <-end)
	if len(b.lines) > 0 {
		t.Errorf("the agent wrote %d more records", len(b.lines))
	}
}

// An agent whose pod is deleted or killed goes on where its records end at its next start, and writes the earlier ones again.
func TestRepeatedStart(t *testing.T) {
	b := newBench(t)
	ctx, terminate := context.WithCancel(t.Context())
	end := b.start(ctx, trials(2, true))
	b.wants("1 begin", "2 trial", "3 trial")
	terminate()
	if err := <-end; err == nil || !strings.Contains(err.Error(), "the pod of the agent was deleted") {
		t.Errorf("the agent ends with %v, want the deletion of its pod", err)
	}
	end = b.start(t.Context(), trials(4, false))
	b.wants("1 begin", "2 trial", "3 trial", "4 trial", "5 trial", "6 finish")
	b.annotate(cluster.EndAnnotation, cluster.EndCollected)
	must.Do(t, <-end)

	// A run that is over is not measured again.
	b.annotate(cluster.EndAnnotation, "")
	end = b.start(t.Context(), func(context.Context, execution.Config) (execution.Outcome, error) {
		return execution.Outcome{}, errors.New("a complete run is measured again")
	})
	b.wants("1 begin", "2 trial", "3 trial", "4 trial", "5 trial", "6 finish")
	b.annotate(cluster.EndAnnotation, cluster.EndCollected)
	must.Do(t, <-end)
}

// A start that the execution refuses is one record with the reason.
func TestRefusedRun(t *testing.T) {
	b := newBench(t)
	end := b.start(t.Context(), func(context.Context, execution.Config) (execution.Outcome, error) {
		return execution.Outcome{}, errors.New("no class works")
	})
	b.annotate(cluster.EndAnnotation, cluster.EndCollected)
	must.Do(t, <-end)
	r := <-b.lines
	var reason string
	must.Do(t, r.Decode(&reason))
	if r.Kind != record.Failure || reason != "no class works" {
		t.Errorf("the record is a %s with %q", r.Kind, reason)
	}
}

// finished returns the end of the run from its last record.
func (b *bench) finished() record.End {
	b.Helper()
	for {
		select {
		case r := <-b.lines:
			if r.Kind == record.Finish {
				var end record.End
				must.Do(b, json.Unmarshal(r.Data, &end))
				return end
			}
		case <-time.After(time.Minute):
			b.Fatal("the run has no end")
		}
	}
}

// The annotation of a stop ends the run, and the trial under way, which does not count. The agent stays until its records are collected.
func TestStopAnnotation(t *testing.T) {
	b := newBench(t)
	end := b.start(t.Context(), trials(2, true))
	b.wants("1 begin", "2 trial", "3 trial")
	b.annotate(cluster.EndAnnotation, cluster.EndStop)
	if e := b.finished(); e.State != result.Interrupted || !slices.Contains(e.Caveats, "the run was stopped by touchstone cluster stop or ^C") {
		t.Errorf("the end is %+v", e)
	}
	select {
	case err := <-end:
		t.Errorf("the agent ends before the collection: %v", err)
	default:
	}
	b.annotate(cluster.EndAnnotation, cluster.EndCollected)
	must.Do(t, <-end)
}

// Without a coordinator the lease ends the run and the agent.
func TestLease(t *testing.T) {
	b := newBench(t)
	b.fleet.Lease = time.Millisecond
	end := b.start(t.Context(), trials(2, true))
	must.Do(t, <-end)
	if e := b.finished(); e.State != result.Interrupted || !slices.Contains(e.Caveats, "no coordinator renewed the lease for 1ms") {
		t.Errorf("the end is %+v", e)
	}
}
