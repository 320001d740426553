package advice_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/advice"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func adviceFor(t *testing.T, p advice.Profile, runs ...result.Run) *advice.Advice {
	t.Helper()
	return advice.New(runs, analysis.New(runs, analysis.Options{}), advice.Options{Profile: p})
}

func weights(t *testing.T, texts ...string) advice.Profile {
	t.Helper()
	p, err := advice.Parse(texts)
	must.Do(t, err)
	return p
}

// TestBenchmarks: the benchmark that a command names measures its dimension.
func TestBenchmarks(t *testing.T) {
	benchmarks := catalogue.Catalogue{}.All()
	for _, d := range advice.Dimensions() {
		filter := advice.Benchmarks(d)
		if !slices.ContainsFunc(benchmarks, func(b bench.Benchmark) bool {
			return bench.Matches(filter, b.Name) && slices.ContainsFunc(b.Metrics, func(m result.Metric) bool {
				return m.Dimension == d || d == advice.WorstCase && strings.HasSuffix(m.Name, "Max")
			})
		}) {
			t.Errorf("%s: %q selects no benchmark that measures it", d, filter)
		}
	}
}

// TestProfiles: each profile has weights of known dimensions, and at least one is required.
func TestProfiles(t *testing.T) {
	for _, p := range advice.Profiles() {
		required := 0
		for _, w := range p.Weights {
			if w.Required {
				required++
			}
			if w.Weight <= 0 || !slices.Contains(advice.Dimensions(), w.Dimension) {
				t.Errorf("profile %s: %+v", p.Name, w)
			}
		}
		if got, err := advice.Find(p.Name); err != nil || got.Name != p.Name || required == 0 {
			t.Errorf("profile %s: %v, %d required dimensions", p.Name, err, required)
		}
	}
	if _, err := advice.Find("game"); err == nil || !strings.Contains(err.Error(), "web, database, batch") {
		t.Errorf("the error of an unknown profile is %v", err)
	}
}

func TestWeights(t *testing.T) {
	p := weights(t, "memory-speed=1", "CPU=0.5", "disk=0")
	if len(p.Weights) != 2 || p.Weights[0].Dimension != result.DimensionMemorySpeed || !p.Weights[1].Required || p.Arguments() != "--weight memory-speed=1 --weight cpu=0.5" {
		t.Errorf("the profile is %+v: %s", p, p.Arguments())
	}
	for text, want := range map[string]string{
		"disk": "has no number", "disks=1": `no dimension is called "disks"`, "disk=-1": "no number from 0", "disk=NaN": "no number from 0", "disk=1e300": "no number from 0",
		"disk=x": "no number from 0", "disk=0": "all weights are 0",
	} {
		if _, err := advice.Parse([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		}
	}
	if _, err := advice.Parse([]string{"disk=1", "Disk=2"}); err == nil || !strings.Contains(err.Error(), "has a weight already") {
		t.Errorf("the error of two weights is %v", err)
	}
}

// TestMissing: an answer without data of a required dimension ranks nothing, and has the commands.
func TestMissing(t *testing.T) {
	run := reporttest.Small()
	a := adviceFor(t, weights(t, "disk=1", "network=1"), run)
	if len(a.Ranked) > 0 || a.Reason != "no target has a usable value of disk and network" || a.Class != nil {
		t.Fatalf("the answer is %q, %+v", a.Reason, a.Ranked)
	}
	want := []string{
		"touchstone benchmark -t native,oci/runc --filter performance.disk.throughput,performance.network.http -n 14",
		"touchstone advise --weight disk=1 --weight network=1 " + run.ID + " latest",
	}
	if !slices.Equal(a.Commands, want) {
		t.Errorf("the commands are %q", a.Commands)
	}
}

// TestHostileNames: a name of an imported run is one word of a command.
func TestHostileNames(t *testing.T) {
	run := reporttest.Small()
	rename(&run, "oci/runc", "oci/x;rm -rf '$HOME'")
	a := adviceFor(t, weights(t, "disk=1"), run)
	if len(a.Commands) == 0 || !strings.Contains(a.Commands[0], `'native,oci/x;rm -rf '\''$HOME'\'''`) {
		t.Errorf("the commands are %q", a.Commands)
	}
}

func rename(run *result.Run, name, replacement string) {
	for i := range run.Targets {
		if run.Targets[i].Name == name {
			run.Targets[i].Name = replacement
		}
	}
	for i := range run.Trials {
		if run.Trials[i].Target == name {
			run.Trials[i].Target = replacement
		}
	}
}

// TestSandboxed: the profile untrusted excludes targets with a shared kernel.
func TestSandboxed(t *testing.T) {
	p := weights(t, "cpu=1")
	p.Sandboxed = true
	a := adviceFor(t, p, reporttest.Suite())
	for _, r := range a.Ranked {
		if !r.Sandboxed() {
			t.Errorf("%s has a place, and its isolation is %q", r.Name, r.Isolation)
		}
	}
	if !slices.ContainsFunc(a.Unranked, func(u advice.Unranked) bool {
		return strings.HasPrefix(u.Reason, "excluded: its isolation is shared kernel")
	}) {
		t.Errorf("the others are %+v", a.Unranked)
	}
}

// TestLostTrials: a target that has lost more than 5 % of its trials has no place.
func TestLostTrials(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		if tr := &run.Trials[i]; tr.Target == "oci/runc" && tr.Block == 2 {
			tr.Status, tr.Samples = result.Timeout, nil
		}
	}
	a := adviceFor(t, weights(t, "start-up=1"), run)
	if len(a.Unranked) != 1 || !strings.Contains(a.Unranked[0].Reason, "1 of 10 blocks is lost") || a.Reason == "" {
		t.Errorf("the answer is %+v, %q", a.Unranked, a.Reason)
	}
}

// TestVersions: a target has no place if the runs have different versions of it.
func TestVersions(t *testing.T) {
	run, second := reporttest.Small(), reporttest.Small()
	second.ID = "20261121-000000-bbbb"
	if a := adviceFor(t, weights(t, "start-up=1"), run, second); len(a.Ranked) != 1 || len(a.Counted[0].Sources) != 2 {
		t.Errorf("two equal runs give %+v, %q", a.Ranked, a.Reason)
	}
	second.Targets = slices.Clone(second.Targets)
	second.Targets[1].Version = "other"
	if a := adviceFor(t, weights(t, "start-up=1"), run, second); len(a.Unranked) != 1 || !strings.HasPrefix(a.Unranked[0].Reason, "the runs have different versions of it: ") {
		t.Errorf("two versions give %+v", a.Unranked)
	}
}

// TestEmulated: an emulated CPU has no ranking by speed, and a measurement on it is no remedy.
func TestEmulated(t *testing.T) {
	run := reporttest.Small()
	run.Host.CPU = "QEMU TCG CPU"
	a := adviceFor(t, weights(t, "start-up=1"), run)
	if len(a.Ranked) > 0 || len(a.Missing) != 1 || !strings.Contains(a.Missing[0].Reason, "emulated CPU") || len(a.Commands) > 0 {
		t.Errorf("the answer is %+v, %+v, %q", a.Ranked, a.Missing, a.Commands)
	}
}

// pods adds trials of density.memory on a target: each has a growing memory of ten pods.
func pods(run *result.Run, target string, trials int, memory func(trial, pod int) float64) {
	run.Targets = append(run.Targets, result.Target{Name: target, Kind: result.KindEngine, Runtime: "runc", Version: "containerd v2.1.0, runc version 1.3.0", Isolation: "shared kernel"})
	run.Bench = append(run.Bench, result.Benchmark{Name: "density.memory", Metrics: []result.Metric{
		{Name: "Memory", Unit: result.Bytes, Better: result.Lower, Series: true, Growth: true, DerivedFrom: "MemoryPerContainer"},
		{Name: "PSSPerContainerShim", Unit: result.Bytes, Better: result.Lower, Group: "Memory by component", Component: "shim"},
	}})
	for n := range trials {
		tr := result.Trial{Seq: len(run.Trials) + 1, Cell: result.Cell{Benchmark: "density.memory", Params: "containers=10", Target: target}, Block: n, Status: result.OK}
		var sum float64
		for pod := range 10 {
			sum += memory(n, pod)
			tr.Samples = append(tr.Samples, result.Sample{Metric: "Memory", Value: sum})
		}
		tr.Samples = append(tr.Samples, result.Sample{Metric: "PSSPerContainerShim", Value: 8 << 20})
		run.Trials = append(run.Trials, tr)
	}
}

// TestClass: the overhead is the bound over the most expensive pods of the trials. Few trials, and lost ones, have none.
func TestClass(t *testing.T) {
	memory := func(trial, pod int) float64 {
		if pod == trial%10 {
			return float64(10<<20 + trial)
		}
		return 9 << 20
	}
	build := func(trials int) result.Run {
		run := reporttest.Small()
		pods(&run, "containerd/runc", trials, memory)
		return run
	}
	p := weights(t, "start-up=1")
	full := adviceFor(t, p, build(59)).Class
	if full == nil || full.Target.Name != "oci/runc" || full.Measured != "containerd/runc" || full.Handler != "runc" || full.Memory != 10<<20+58 || full.Trials != 59 || full.Pods != 10 || !full.IsWhole {
		t.Fatalf("the class is %+v", full)
	}
	if len(full.Parts) != 1 || full.Parts[0] != (advice.Part{Component: "shim", Bytes: 8 << 20}) {
		t.Errorf("the parts are %+v", full.Parts)
	}
	brief := adviceFor(t, p, build(12)).Class
	if brief.Memory != 0 || !strings.Contains(brief.Reason, "12 trials of density.memory, and a bound for 95 % of the pods needs 59") ||
		brief.Command != "touchstone benchmark -t containerd/runc --filter density.memory -n 59" {
		t.Errorf("12 trials give %+v", brief)
	}
	lossy := build(59)
	lossy.Trials[len(lossy.Trials)-1].Status = result.Failed
	if c := adviceFor(t, p, lossy).Class; c.Memory != 0 || !strings.Contains(c.Reason, "lost too many trials") {
		t.Errorf("a lost trial gives %+v", c)
	}
	if c := adviceFor(t, p, reporttest.Small()).Class; c.Memory != 0 || c.Command != "touchstone benchmark -t containerd/runc --filter density.memory -n 59" {
		t.Errorf("no trial gives %+v", c)
	}
}

// TestHandler: a handler is a DNS label.
func TestHandler(t *testing.T) {
	run := reporttest.Small()
	rename(&run, "oci/runc", "oci/RunSC@platform=kvm")
	for i := range run.Targets {
		run.Targets[i].Runtime = ""
	}
	c := adviceFor(t, weights(t, "start-up=1"), run).Class
	if c == nil || c.Handler != "runsc-platform-kvm" || c.Name() != "RunSC" || fmt.Sprint(c.Options()) != "[platform=kvm]" {
		t.Errorf("the class is %+v", c)
	}
}

// TestSuite: the costs of the suite are finite, the counted weights sum up to 1, and all pairs have an order.
func TestSuite(t *testing.T) {
	a := adviceFor(t, weights(t, "cpu=2", "disk=1"), reporttest.Suite())
	var share float64
	for _, c := range a.Counted {
		share += c.Share
	}
	if n := len(a.Ranked); n < 2 || len(a.Orders) != n*(n-1)/2 || math.Abs(share-1) > 1e-12 || a.Reference != "native" {
		t.Fatalf("%d targets, %d orders, weights of %v, reference %q, reason %q", len(a.Ranked), len(a.Orders), share, a.Reference, a.Reason)
	}
	for _, r := range a.Ranked {
		if !(r.Cost > 0) || math.IsInf(r.Cost, 0) || r.CI == nil || r.CI.Lo > r.Cost || r.CI.Hi < r.Cost || len(r.Costs) != 2 {
			t.Errorf("%+v", r)
		}
	}
}
