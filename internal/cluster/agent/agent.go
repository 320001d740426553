// Package agent is the program in an agent's pod: it executes a plan on its own node and writes each record of the run to its log.
//
// The agent keeps its run in a results file in the pod. So a killed agent goes on where its records end when the kubelet starts it again, and it can
// write any record again that the log has lost. It knows of the coordinator only the annotations of its own pod: the lease, the
// missing records, and the end of the run. It has no right to read nodes; the condition Ready of its own pod is False while the control
// plane has lost the node. Then the agent waits, because each pod would fail.
//
// The package refuses to go on with a run of another kernel or CPU, as after a change of the node.
package agent

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// Config describes an agent.
type Config struct {
	Client *kube.Client
	Tool   result.Tool
	// Log receives the records.
	Log io.Writer
	// Getenv reads the variables of the pod. Root is the directory above its files: "/", or a copy in tests.
	Getenv func(string) string
	Root   string
	// Execute executes a plan; nil for the execution on pods.
	Execute func(context.Context, execution.Config) (execution.Outcome, error)
}

// The causes of the end of a run.
var (
	// errTerminated is the deletion of the pod. The run is not over: another agent goes on with it.
	errTerminated = errors.New("the pod of the agent was deleted")
	errStopped    = errors.New("the run was stopped by touchstone cluster stop or ^C")
)

// Run executes the agent. ctx ends when the pod is deleted. An error lets the kubelet start the agent again.
func Run(ctx context.Context, config Config) error {
	a := &agent{Config: config, log: record.NewWriter(config.Log)}
	if a.Execute == nil {
		a.Execute = execute
	}
	if err := a.read(); err != nil {
		return err
	}
	a.pod = newPod(config.Client.Pods(a.fleet.Namespace), config.Getenv(cluster.PodVariable), a.fleet.Lease, a.fleet.Sample(a.node, a.owner()))
	if a.fleet.Privileged {
		defer background(ctx, a.pod.follow)()
		return a.delegate(ctx)
	}
	// The volume admits all users of the pod. Only this one can change the folder in it.
	return a.work(ctx, filepath.Join(a.Root, cluster.DataDir, "run"), a.pod.follow)
}

// background calls f until the returned function ends it.
func background(ctx context.Context, f func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// work executes the plan with the results file in a folder. follow observes the pod meanwhile.
func (a *agent) work(ctx context.Context, folder string, follow func(context.Context)) (err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	db, err := store.Open(ctx, filepath.Join(folder, "touchstone.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer background(ctx, follow)()
	a.journal = &journal{Store: db, log: a.log, runID: a.fleet.RunID(a.node.Name), pod: a.pod}
	return a.run(ctx)
}

// agent is an agent at work.
type agent struct {
	Config
	fleet cluster.Fleet
	node  cluster.Node
	plan  plan.Plan
	// isOnNode is set for the delegate of a privileged agent, and images has the image of its agent.
	isOnNode bool
	images   []result.Image

	log     *record.Writer
	pod     *pod
	journal *journal
}

// read reads the files and variables of the pod.
func (a *agent) read() error {
	facts, err := os.ReadFile(filepath.Join(a.Root, cluster.PlanDir, cluster.FleetFile))
	if err == nil {
		err = json.Unmarshal(facts, &a.fleet)
	}
	if err == nil {
		err = json.Unmarshal([]byte(a.Getenv(cluster.FactVariable)), &a.node)
	}
	if text := a.Getenv(cluster.ImageVariable); err == nil && text != "" {
		a.images = make([]result.Image, 1)
		err = json.Unmarshal([]byte(text), &a.images[0])
	}
	if err != nil {
		return fmt.Errorf("read the facts of the cluster run: %w; an agent runs only in a pod that touchstone cluster run has made", err)
	}
	if name := a.Getenv(cluster.NodeVariable); name != a.node.Name {
		return fmt.Errorf("the agent of node %q runs on node %q", a.node.Name, name)
	}
	name := filepath.Join(a.Root, cluster.PlanDir, cluster.PlanFile)
	if a.plan, err = plan.Load(name); err != nil {
		return err
	}
	seed := a.fleet.NodeSeed(a.node.Name)
	a.plan.Seed = &seed
	return nil
}

// run executes the plan, unless an earlier process of this agent did, and waits until the coordinator has all records.
func (a *agent) run(ctx context.Context) error {
	predecessor, err := a.earlier(ctx)
	if err != nil {
		return err
	}
	switch {
	case predecessor == nil:
		err = a.measure(ctx, nil)
	case predecessor.State == result.Complete || predecessor.State == result.Interrupted:
		err = a.journal.replay(ctx, 1)
	default:
		if err = a.journal.replay(ctx, 1); err == nil {
			err = a.measure(ctx, predecessor)
		}
	}
	if err != nil {
		return err
	}
	return a.journal.serve(ctx)
}

// earlier returns the run that this agent has begun before: from its results file, or from the files of its pod if another pod began it.
func (a *agent) earlier(ctx context.Context) (*result.Run, error) {
	run, err := a.journal.Run(ctx, a.journal.runID)
	if err == nil {
		return &run, nil
	}
	if _, ok := errors.AsType[*store.IDError](err); !ok {
		return nil, err
	}
	part, err := readEarlier(filepath.Join(a.Root, cluster.EarlierDir, cluster.EarlierFile))
	if err != nil || part == nil {
		return nil, err
	}
	trials := part.Trials
	part.Trials, part.State = nil, result.Running
	if err := a.journal.Store.Create(ctx, *part); err != nil {
		return nil, err
	}
	for _, t := range trials {
		if err := a.journal.Store.Append(ctx, part.ID, t); err != nil {
			return nil, err
		}
	}
	part.Trials, part.State = trials, result.Killed
	return part, nil
}

// readEarlier reads the part of a run that another pod has measured; nil without one.
func readEarlier(name string) (*result.Run, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	content, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("read the earlier part of the run: %w", err)
	}
	var run result.Run
	if err := json.NewDecoder(content).Decode(&run); err != nil {
		return nil, fmt.Errorf("read the earlier part of the run: %w", err)
	}
	return &run, nil
}

// measure executes the plan. It returns an error only if another start of the agent may succeed.
func (a *agent) measure(ctx context.Context, predecessor *result.Run) error {
	p := a.plan
	if predecessor != nil {
		var err error
		if p, err = execution.ResumedPlan(*predecessor); err != nil {
			return a.log.Tell(record.Failure, err.Error())
		}
	}
	run, stop := a.pod.untilEnd(ctx)
	defer stop()
	a.journal.measuring = run
	progress := &observer{log: a.log, clock: meter.System{}}
	config := execution.Config{
		Plan: p, Store: a.journal, RunID: a.journal.runID, Earlier: predecessor, Tool: a.Tool, Node: &a.node.Node,
		Observer: progress,
	}
	if a.isOnNode {
		a.onNode(&config)
	} else {
		config.Pods, config.Outages, config.Folder = a.pods(), outages{a.pod, progress.paused}, filepath.Join(a.Root, cluster.DataDir)
	}
	outcome, err := a.Execute(run, config)
	// A node that has just come back takes pods before its container engine works.
	for attempt := 1; predecessor != nil && err != nil && !outcome.Recorded && attempt < resumeAttempts && run.Err() == nil; attempt++ {
		_ = kube.Pause(run, resumePause)
		outcome, err = a.Execute(run, config)
	}
	switch {
	case ctx.Err() != nil:
		return errTerminated
	case outcome.Recorded && err != nil:
		return a.log.Tell(record.Note, err.Error())
	case !outcome.Recorded && err == nil:
		err = errors.New("no run was recorded")
		fallthrough
	case !outcome.Recorded:
		return a.log.Tell(record.Failure, err.Error())
	}
	return nil
}

// The attempts to go on with a run, and the pause between them.
const (
	resumeAttempts = 5
	resumePause    = 3 * time.Second
)

// execute executes a plan on pods.
func execute(ctx context.Context, config execution.Config) (execution.Outcome, error) {
	e, err := execution.New(config)
	if err != nil {
		return execution.Outcome{}, err
	}
	return e.Run(ctx)
}

// pods describes the place of the measured pods.
func (a *agent) pods() *k8s.Config {
	_, err := os.Stat(filepath.Join(a.Root, programs.Busybox))
	return &k8s.Config{
		Client: a.Client, Namespace: a.fleet.Namespace, Node: a.node.Name, Fleet: a.fleet.ID, Image: a.fleet.Image, PullSecrets: a.fleet.PullSecrets,
		Programs:       err == nil,
		Owner:          a.owner(),
		KubeletVersion: a.node.Kubelet, Handlers: a.fleet.Handlers, Events: a.fleet.Events,
	}
}

// owner is the agent's pod as the owner of all pods that it makes: they go with it.
func (a *agent) owner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: a.Getenv(cluster.PodVariable), UID: types.UID(a.Getenv(cluster.UIDVariable))}
}
