package pods_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/cluster"
	"github.com/touchstone-bench/touchstone/test/record"
)

// programs is the directory of the handlers, which the cluster needs until its end. It is beside the test program, so that go test removes it after a
// kill.
var programs string

func TestMain(m *testing.M) {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if programs, err = os.MkdirTemp(filepath.Dir(program), "handlers-"); err != nil {
		panic(err)
	}
	code := cluster.Main(m)
	if err := os.RemoveAll(programs); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// delay is added to each create of the class "slow": once for the sandbox and once for the container.
const delay = 50 * time.Millisecond

// classes are three handlers of one runtime behind the same adapter: a baseline, a copy of it, and one that is slower by a known time.
func classes(t *testing.T) cluster.Options {
	t.Helper()
	cluster.Require(t)
	binary, err := exec.LookPath("runc")
	must.Do(t, err)
	handlers := map[string]string{}
	for name, delays := range map[string][]runtimes.Delay{"base": nil, "copy": nil, "slow": {{Verb: "create", Time: delay}}} {
		handlers[name], err = runtimes.Adapter{Binary: binary, Delays: delays}.Write(programs, name)
		must.Do(t, err)
	}
	return cluster.Options{Nodes: 1, Runtimes: handlers}
}

// observer logs the events of an execution.
type observer struct{ *testing.T }

func (observer) Started(result.Trial, runner.Progress) {}

func (o observer) Ended(r result.Trial) {
	if r.Status != result.OK {
		o.Logf("%s on %s: %s: %s", r.Benchmark, r.Target, r.Status, r.Reason)
	}
}

func (o observer) Report(e execution.Event) { o.Log(e.Text) }

// measure executes a plan on pods of a node, with the image of the probe, and returns the recorded run.
func measure(t *testing.T, a cluster.Agent, planText string) result.Run {
	t.Helper()
	return measureWith(t, a, k8s.Config{Image: cluster.ProbeImage}, planText)
}

// measureWith is measure with an image of the configuration.
func measureWith(t *testing.T, a cluster.Agent, config k8s.Config, planText string) result.Run {
	t.Helper()
	folder := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(folder, "results.db"))
	must.Do(t, err)
	defer func() { must.Do(t, db.Close()) }()
	p, err := plan.Parse("plan", []byte(planText))
	must.Do(t, err)
	config.Client, config.Namespace, config.Node, config.Fleet, config.Owner = a.Client, a.Namespace, a.Node, a.Fleet, a.Owner
	config.KubeletVersion, config.Events = "v1.37.2", true
	e, err := execution.New(execution.Config{
		Plan: p, Store: db, RunID: a.Fleet + "-" + a.Node, Folder: folder, Observer: observer{t},
		Node: &result.Node{Fleet: a.Fleet, Name: a.Node},
		Pods: &config,
	})
	must.Do(t, err)
	_, err = e.Run(t.Context())
	must.Do(t, err)
	run, err := db.Run(context.WithoutCancel(t.Context()), a.Fleet+"-"+a.Node)
	must.Do(t, err)
	return run
}

// samples are the values of a metric by block.
func samples(run result.Run, benchmark, target, metric string) []stats.Sample {
	var list []stats.Sample
	for _, trial := range run.Trials {
		if trial.Benchmark != benchmark || trial.Target != target || trial.Warmup {
			continue
		}
		for _, value := range trial.Values(metric) {
			list = append(list, stats.Sample{Block: trial.Block, Value: value})
		}
	}
	return list
}

// A handler that is slower at create by a known time is slower in the stages that call create, by this time, and in no other stage. A class does
// not differ from a copy of itself. The bounds are four standard errors around the truth, which a sound measurement leaves in one of 16000 checks. The
// standard error of the start is 1.3 ms after 60 blocks on an idle host, and more beside other programs. Four of them are less than the delay, so that
// these bounds show it, or the machine is too busy.
func TestDelayIsFoundInItsStages(t *testing.T) {
	blocks := 10
	if cells.Whole(t, "pods/delays") {
		blocks = 60
	}
	a := cluster.Start(t, classes(t)).Agent(t, 1)
	run := measure(t, a, fmt.Sprintf("version: 1\ntargets: [k8s/base, k8s/copy, k8s/slow]\nbaseline: k8s/base\nbenchmarks: [pods.start]\nblocks: %d\nwarmup: 1\n", blocks))
	var start float64 // the standard error of the stage that is delayed
	for _, c := range []struct {
		target, metric string
		truth          time.Duration
	}{
		{"k8s/slow", "Sandbox", delay},
		{"k8s/slow", "StageCreate", 0},
		{"k8s/slow", "StageStart", delay},
		{"k8s/slow", "FirstInstruction", 2 * delay},
		{"k8s/copy", "Sandbox", 0},
		{"k8s/copy", "StageStart", 0},
		{"k8s/copy", "FirstInstruction", 0},
	} {
		base, values := samples(run, "pods.start", "k8s/base", c.metric), samples(run, "pods.start", c.target, c.metric)
		d := stats.Subtract(values, [][]stats.Sample{base})
		if d.CI == nil || d.N < blocks*9/10 {
			t.Errorf("%s of %s has %d blocks of %d", c.metric, c.target, d.N, blocks)
			continue
		}
		standardError := (d.CI.Hi - d.CI.Lo) / 2 / 1.96
		bias := d.Median - c.truth.Seconds()
		t.Logf("%-17s %s: %+.1f ms [%+.1f, %+.1f], true %+.0f ms", c.metric, c.target, 1e3*d.Median, 1e3*d.CI.Lo, 1e3*d.CI.Hi, 1e3*c.truth.Seconds())
		if bound := 4*standardError + 0.002; bias > bound || bias < -bound {
			t.Errorf("%s of %s is off by %.1f ms, more than four standard errors (%.1f ms)", c.metric, c.target, 1e3*bias, 1e3*standardError)
		}
		if c.metric == "StageStart" && c.truth > 0 {
			start = standardError
		}
	}
	if 4*start >= delay.Seconds() {
		record.Skip(t, fmt.Sprintf("the machine is too busy to show %v in %d blocks: the standard error of the start is %.0f ms", delay, blocks, 1e3*start))
	}
}

// Each benchmark of the suite works on each class, and leaves no pod.
func TestSuiteOnPods(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1})
	a := c.Agent(t, 1)
	run := measure(t, a, "version: 1\ntargets: [k8s, k8s/runsc]\nbenchmarks: [pods]\nblocks: 1\nwarmup: 0\n")
	for _, trial := range run.Trials {
		if trial.Status != result.OK {
			t.Errorf("%s on %s: %s: %s", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
		}
		var values []string
		for _, s := range trial.Samples {
			values = append(values, fmt.Sprintf("%s %.6g", s.Metric, s.Value))
		}
		slices.Sort(values)
		t.Logf("%s %s: %s %v", trial.Benchmark, trial.Target, strings.Join(values, ", "), trial.Conditions)
	}
	if len(run.Trials) != 8 {
		t.Errorf("%d trials, want one of four benchmarks on each of two targets", len(run.Trials))
	}
	pods := c.Kubectl(t, "get", "pods", "--namespace", a.Namespace, "--output", "name")
	if strings.TrimSpace(pods) != "pod/agent" {
		t.Errorf("pods are left: %s", pods)
	}
}

// workloadImage is the name of the image with all programs in a cluster.
const workloadImage = "localhost/workload:1"

// loadWorkload loads the workload image into the nodes.
func loadWorkload(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	_, image := enginetest.Workload(t)
	tag, err := name.NewTag(workloadImage)
	must.Do(t, err)
	file := filepath.Join(t.TempDir(), "workload.tar")
	must.Do(t, tarball.WriteToFile(file, tag, image))
	c.Load(t, file)
}

// skips are the benchmarks that a pod cannot run, each with a part of the reason. All others work in a pod.
var skips = map[string]string{
	"operations.container.lifecycle": noCalls, "operations.container.exec": "pods/exec", "operations.container.pause": "cannot freeze",
	"operations.container.update": "resize pods", "operations.container.stats": "metrics", "operations.image.pull": "the kubelet pulls",
	"operations.service.ready": "network of the node", "operations.energy.lifecycle": "", // the gauge may be the reason
	"scalability.runtime.5": noCalls, "scalability.runtime.10": noCalls, "scalability.runtime.50": noCalls,
	"scalability.rate.1": noCalls, "scalability.rate.4": noCalls, "scalability.rate.8": noCalls,
	"performance.disk.read": noDirectory, "performance.disk.write": noDirectory, "performance.disk.throughput": noDirectory, "performance.disk.sqlite": noDirectory,
	"performance.disk.blog": noDirectory, "performance.disk.mount": noDirectory,
	"performance.network.bandwidth": noPeer, "performance.network.netperf": noPeer, "performance.network.http": noPeer, "performance.database.redis": noPeer,
	"performance.energy.cpu": "energy", "limits.cpu.scaling": "resize pods",
	"density.workload": noDirectory, "density.churn": noCalls,
	"isolation.memory.reclaim": noDirectory, "isolation.disk": noDirectory, "isolation.network": noPeer, "isolation.pids": noCalls,
	"latency.exec": "pods/exec", "latency.start": noCalls,
	"surface.calls": noDirectory, "surface.functions": noDirectory, "surface.filters": "a PID namespace of its own",
	"footprint.install": "no programs on this host", "portability.image.run": "cannot pull from an agent",
}

// The reasons of several skips.
const (
	noCalls     = "the kubelet makes a pod in one go"
	noDirectory = "forbids directories of the node"
	noPeer      = "at the other end of the pod's network"
)

// Each benchmark of the catalogue works in a pod, or is skipped with its reason.
func TestCatalogueInPods(t *testing.T) {
	cells.Need(t, "pods/catalogue")
	c := cluster.Start(t, cluster.Options{Nodes: 1})
	loadWorkload(t, c)
	var suites []string
	for _, b := range (catalogue.Catalogue{}).All() {
		if !slices.Contains(suites, b.Suite()) {
			suites = append(suites, b.Suite())
		}
	}
	run := measureWith(t, c.Agent(t, 1), k8s.Config{Image: workloadImage, Programs: true},
		fmt.Sprintf("version: 1\ntargets: [k8s/runc]\nbenchmarks: [%s]\nblocks: 1\nwarmup: 0\nparameters: quick\n", strings.Join(suites, ", ")))
	for _, trial := range run.Trials {
		reason, isSkip := skips[trial.Benchmark]
		switch {
		case isSkip && (trial.Status != result.Skipped || !strings.Contains(trial.Reason, reason)):
			t.Errorf("%s is %s because of %q, want a skip because of %q", trial.Benchmark, trial.Status, trial.Reason, reason)
		case !isSkip && trial.Status != result.OK:
			t.Errorf("%s is %s because of %q %s", trial.Benchmark, trial.Status, trial.Reason, trial.Output)
		}
	}
}
