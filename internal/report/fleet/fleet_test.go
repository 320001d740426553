package fleet_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

func build(t testing.TB, runs []result.Run, o analysis.Options) *fleet.Report {
	t.Helper()
	b := fleet.NewBuilder(o)
	for i := range runs {
		must.Do(t, b.Add(&runs[i]))
	}
	r, err := b.Report()
	must.Do(t, err)
	return r
}

func class(t testing.TB, r *fleet.Report, metric, target string) *fleet.Class {
	t.Helper()
	for i := range r.Metrics {
		for n := range r.Metrics[i].Classes {
			if c := &r.Metrics[i].Classes[n]; r.Metrics[i].Metric.Name == metric && c.Target == target {
				return c
			}
		}
	}
	t.Fatalf("the report has no %s of %s", metric, target)
	return nil
}

func names(r *fleet.Report, nodes []int) string {
	var list []string
	for _, n := range nodes {
		list = append(list, r.Nodes[n].Name)
	}
	return strings.Join(list, " ")
}

// A node gives the ratio and the interval of the report of its own run.
func TestNodesAgreeWithTheirReports(t *testing.T) {
	runs := reporttest.Cluster()
	r := build(t, runs, analysis.Options{})
	values := 0
	for i := range runs[:3] {
		single := report.New(runs[i:i+1], analysis.Options{})
		node := slices.IndexFunc(r.Nodes, func(n fleet.Node) bool { return n.Run == runs[i].ID })
		for _, b := range single.Benchmarks() {
			for _, m := range b.Metrics {
				for _, row := range m.Rows {
					c, v := row.Cells[0].Comparison, class(t, r, m.Name, row.Target).Values[node]
					if v.Median != row.Cells[0].Summary.Median {
						t.Errorf("%s %s: the median is %g, in the report of the run %g", m.Name, row.Target, v.Median, row.Cells[0].Summary.Median)
					}
					if c != nil && (v.Ratio != c.Ratio || *v.CI != *c.CI) {
						t.Errorf("%s %s: the ratio is %g %v, in the report of the run %g %v", m.Name, row.Target, v.Ratio, v.CI, c.Ratio, c.CI)
					}
					values++
				}
			}
		}
	}
	if values < 30 {
		t.Errorf("%d values are compared, want at least 30", values)
	}
}

func TestCluster(t *testing.T) {
	r := build(t, reporttest.Cluster(), analysis.Options{})
	for _, c := range []struct {
		target  string
		verdict stats.Verdict
		nodes   int
	}{{"k8s/crun", stats.Faster, 13}, {reporttest.FleetGvisor, stats.Slower, 12}, {reporttest.FleetKata, stats.Slower, 8}} {
		got := class(t, r, "Start", c.target)
		if got.Comparison.Verdict != c.verdict || !got.Comparison.Everywhere || got.Fleet.N != c.nodes {
			t.Errorf("Start of %s is %s over %d nodes, everywhere %v, want %s over %d nodes", c.target, got.Comparison.Verdict, got.Fleet.N, got.Comparison.Everywhere, c.verdict, c.nodes)
		}
	}
	gvisor := class(t, r, "Start", reporttest.FleetGvisor)
	if rest := math.Exp(gvisor.Rest.Log); rest < 1.15 || rest > 1.2 || gvisor.Comparison.Ratio < rest {
		t.Errorf("without the odd node the ratio is %.3f, with it %.3f", rest, gvisor.Comparison.Ratio)
	}
	var odd []string
	for _, n := range r.OddNodes() {
		odd = append(odd, r.OddText(&n))
	}
	if len(odd) != 2 || !strings.HasPrefix(odd[0], "worker-06 (m5.large) differs from the other nodes of its kind: Delete of k8s/runc +85.7 %, Start of k8s/runc +85.2 %") ||
		!strings.HasPrefix(odd[1], "worker-04 (m5.large) differs from the other nodes of its kind: ratio of Start of k8s/gvisor +59.8 %, ratio of Delete of k8s/gvisor +55.0 %") {
		t.Errorf("the odd nodes are %q", odd)
	}
	if kinds := r.KindTexts(); len(kinds) != 2 || !strings.HasPrefix(kinds[0], "Start of k8s/crun: the cost is 0.801 × on the 5 nodes of c7g.large") {
		t.Errorf("the differences between kinds are %q", kinds)
	}
	calls := class(t, r, "CallsPerSecond", reporttest.FleetGvisor)
	if len(calls.Separations) != 1 {
		t.Fatalf("the separations are %+v", calls.Separations)
	}
	if s := calls.Separations[0]; names(r, s.Nodes) != "worker-09 worker-11 worker-01 worker-03 worker-05 worker-07" || len(s.Peers) != 7 || s.Facts[0].Text != "5.15.0-91-generic" || s.Quotient > 0.65 {
		t.Errorf("the separation is %+v", s)
	}
	if texts := r.SeparationTexts(); len(texts) != 2 || texts[1] != "CallsPerSecond of k8s/gvisor (1.69 × slower): all 6 nodes with Kernel 5.15.0-91-generic are worse than all 7 without" {
		t.Errorf("the separations are %q", texts)
	}
}

// A node that does not count has a reason.
func TestReasons(t *testing.T) {
	runs := reporttest.Cluster()
	runs[0].Trials = slices.DeleteFunc(runs[0].Trials, func(t result.Trial) bool { return t.Target == "k8s/crun" && t.Block > 4 })
	runs[1].Trials = slices.DeleteFunc(runs[1].Trials, func(t result.Trial) bool { return t.Benchmark == "pods.start" && t.Target == "k8s/runc" })
	for i := range runs[2].Trials {
		if c := &runs[2].Trials[i]; c.Benchmark == "pods.delete" {
			c.Samples[0].Value = 0
		}
	}
	for i := range runs[3].Trials {
		if c := &runs[3].Trials[i]; c.Target == "k8s/crun" && c.Benchmark == "pods.delete" {
			c.Status, c.Reason, c.Samples = result.Failed, "no such handler", nil
		}
	}
	r := build(t, runs, analysis.Options{})
	for _, c := range []struct{ node, metric, target, want string }{
		{"worker-00", "Start", "k8s/crun", "5 common blocks; an interval needs 6"},
		{"worker-01", "Start", "k8s/crun", "the baseline k8s/runc has no value on this node"},
		{"worker-02", "Delete", "k8s/crun", "the baseline has no value of the metric other than 0 on this node"},
		{"worker-03", "Delete", "k8s/crun", "failed 12 of 12: no such handler"},
		{"worker-09", "Start", "k8s/gvisor", "25 % of its blocks are lost"},
		{"worker-13", "Start", "k8s/gvisor", "the node has no trial; its run is killed"},
		{"worker-08", "Start", "k8s/kata", "node worker has no handler kata; install it there, or leave the node out of the plan"},
	} {
		node := slices.IndexFunc(r.Nodes, func(n fleet.Node) bool { return n.Name == c.node })
		if v := class(t, r, c.metric, c.target).Values[node]; v.Counts || v.Reason != c.want {
			t.Errorf("%s of %s on %s counts: %v, with the reason %q, want %q", c.metric, c.target, c.node, v.Counts, v.Reason, c.want)
		}
	}
	for _, g := range r.Gaps() {
		if g.Reason == "" || len(g.Nodes) == 0 || len(g.Targets) == 0 || len(g.Metrics) == 0 {
			t.Errorf("a gap is %+v", g)
		}
	}
}

// A metric without verdicts has values, and no ratios, reasons and odd nodes.
func TestUnjudgedMetric(t *testing.T) {
	runs := reporttest.Cluster()
	for i := range runs {
		runs[i].Bench[1].Metrics[0].Component = "part"
	}
	r := build(t, runs, analysis.Options{})
	for _, target := range []string{"k8s/runc", "k8s/crun"} {
		c := class(t, r, "Delete", target)
		if c.Comparison != nil || c.Odd != nil || math.IsNaN(c.Typical) || slices.ContainsFunc(c.Values[:5], func(v fleet.Value) bool { return v.Counts || v.Reason != "" }) {
			t.Errorf("the metric without verdicts on %s is %+v", target, c)
		}
	}
	for _, g := range r.Gaps() {
		if len(g.Metrics) == 1 && g.Metrics[0] == "Delete" {
			t.Errorf("a gap is %+v", g)
		}
	}
}

// A class that loses nodes by its own fault is not called faster.
func TestLostNodes(t *testing.T) {
	runs := reporttest.Fleet{ID: "f", Nodes: 12, Blocks: 8, Healthy: true}.Runs()
	if v := class(t, build(t, runs, analysis.Options{}), "Start", "k8s/crun").Comparison.Verdict; v != stats.Faster {
		t.Fatalf("the verdict is %s", v)
	}
	for i := range runs[0].Trials {
		if c := &runs[0].Trials[i]; c.Target == "k8s/crun" {
			c.Status, c.Reason, c.Samples = result.Failed, "it does not start", nil
		}
	}
	c := class(t, build(t, runs, analysis.Options{}), "Start", "k8s/crun")
	if c.Comparison.Verdict != stats.TrialsLost || c.Fleet.N != 11 {
		t.Errorf("with a lost node of 12 the verdict is %s over %d nodes", c.Comparison.Verdict, c.Fleet.N)
	}
}

// Invariant fleet-nodes: No target has a verdict about a fleet of fewer than six nodes, and the report says so with the remedy.
func TestFewNodes(t *testing.T) {
	for n, want := range map[int]stats.Verdict{2: stats.TooFew, 5: stats.TooFew, 6: stats.Slower} {
		r := build(t, reporttest.Fleet{ID: "f", Nodes: n, Blocks: 8, Healthy: true}.Runs(), analysis.Options{})
		c := class(t, r, "Start", reporttest.FleetKata)
		if c.Comparison.Verdict != want || (c.Comparison.CI != nil) != (want == stats.Slower) {
			t.Errorf("%d nodes: the verdict is %s with the interval %v, want %s", n, c.Comparison.Verdict, c.Comparison.CI, want)
		}
		if text := r.Withheld(); (text == "") != (want == stats.Slower) || text != "" && !strings.Contains(text, "Measure more nodes") {
			t.Errorf("%d nodes: the reason is %q", n, text)
		}
	}
}

// A fleet with the baseline alone asks for another target, and not for more nodes.
func TestBaselineAlone(t *testing.T) {
	runs := reporttest.Fleet{ID: "f", Nodes: 8, Blocks: 8, Healthy: true}.Runs()
	for i := range runs {
		runs[i].Targets = runs[i].Targets[:1]
		runs[i].Trials = slices.DeleteFunc(runs[i].Trials, func(t result.Trial) bool { return t.Target != "k8s/runc" })
	}
	if text := build(t, runs, analysis.Options{}).Withheld(); !strings.Contains(text, "Measure another class") {
		t.Errorf("the reason is %q", text)
	}
}

// A caveat of all nodes is one of the fleet. A caveat of some nodes is in their reports alone.
func TestCaveats(t *testing.T) {
	runs := reporttest.Fleet{ID: "f", Nodes: 3, Blocks: 8, Healthy: true}.Runs()
	for i := range runs {
		runs[i].Caveats = []string{"node x is not measured", "the clock is coarse", fmt.Sprint("caveat ", min(i, 1))}
	}
	runs[2].Caveats[1], runs[2].Caveats[2] = runs[2].Caveats[2], runs[2].Caveats[1]
	want := []string{"node x is not measured", "the clock is coarse"}
	if got := build(t, runs, analysis.Options{}).Caveats; !slices.Equal(got, want) {
		t.Errorf("the caveats are %q, want %q", got, want)
	}
}

func TestOptions(t *testing.T) {
	runs := reporttest.Fleet{ID: "f", Nodes: 8, Blocks: 8, Healthy: true}.Runs()
	if v := class(t, build(t, runs, analysis.Options{MinEffect: 0.2}), "Start", "k8s/crun").Comparison.Verdict; v != stats.Negligible {
		t.Errorf("with a margin of 20 %% the verdict is %s", v)
	}
	runs[3].Host.Virtual = "qemu"
	r := build(t, runs, analysis.Options{})
	if c := class(t, r, "Start", reporttest.FleetKata); c.Comparison.Verdict != stats.Withheld || c.Odd != nil || r.OddNodes() != nil {
		t.Errorf("with an emulated CPU the verdict is %s, and the odd nodes are %v", c.Comparison.Verdict, r.OddNodes())
	}
	if v := class(t, build(t, runs, analysis.Options{EmulatedVerdicts: true}), "Start", reporttest.FleetKata).Comparison.Verdict; v != stats.Slower {
		t.Errorf("with verdicts for emulated CPUs the verdict is %s", v)
	}
}

// Runs that do not belong to the fleet are refused, or left out with a reason.
func TestBelonging(t *testing.T) {
	runs := reporttest.Fleet{ID: "f", Nodes: 9, Blocks: 8, Healthy: true}.Runs()
	runs[0].Plan = strings.Replace(runs[0].Plan, "blocks: 12", "blocks: 9", 1)
	runs[1].Tool.Version = "2.0.0"
	twin := runs[2]
	twin.ID, twin.Trials = "twin", twin.Trials[:10]
	r := build(t, append(runs, twin), analysis.Options{})
	if len(r.Nodes) != 7 {
		t.Errorf("%d nodes count, want 7", len(r.Nodes))
	}
	got := map[string]string{}
	for _, l := range r.LeftOut {
		got[l.Run] = l.Reason
	}
	for run, want := range map[string]string{
		runs[0].ID: "it has another plan or baseline than most nodes; measure this node again with their plan",
		runs[1].ID: "Touchstone 2.0.0 38e14e7 measured it, and Touchstone 1.0.0 38e14e7 the other nodes; measure this node again with their version",
		"twin":     "run " + runs[2].ID + " of the same node has as many trials or more; a node counts once",
	} {
		if got[run] != want {
			t.Errorf("run %s is left out because %q, want %q", run, got[run], want)
		}
	}
	var b fleet.Builder
	if _, err := b.Report(); !errors.Is(err, fleet.ErrEmpty) {
		t.Errorf("an empty fleet gives the error %v", err)
	}
	must.Do(t, b.Add(&runs[0]))
	stranger, single := reporttest.Fleet{ID: "g", Nodes: 1, Blocks: 1, Healthy: true}.Run(0), reporttest.Small()
	for run, want := range map[*result.Run]string{&stranger: "belongs to the fleet g, and run", &single: "is no run of a node"} {
		if err := b.Add(run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("run %s gives the error %v, want one with %q", run.ID, err, want)
		}
	}
}

// Runs without a baseline have the first target that most nodes have. Facts that each node has for itself do not hide the one that separates the nodes.
func TestBaselineAndOwnFacts(t *testing.T) {
	runs := reporttest.Cluster()
	for i := range runs {
		runs[i].Baseline = ""
		labels := map[string]string{}
		for n := range 60 {
			labels[fmt.Sprintf("label-%d", n)] = fmt.Sprintf("value-%d", i)
		}
		runs[i].Host.Node.Labels = labels
	}
	r := build(t, runs, analysis.Options{})
	if r.Baseline != "k8s/runc" || r.Targets[0] != "k8s/runc" {
		t.Errorf("the baseline is %q, and the targets are %v", r.Baseline, r.Targets)
	}
	if s := class(t, r, "CallsPerSecond", reporttest.FleetGvisor).Separations; len(s) != 1 || s[0].Facts[0].Text != "5.15.0-91-generic" {
		t.Errorf("the separations are %+v", s)
	}
}

// The nodes of an anonymous fleet are distinct, although they have no names.
func TestAnonymous(t *testing.T) {
	runs := reporttest.Fleet{ID: "f", Nodes: 7, Blocks: 8, Healthy: true}.Runs()
	for i := range runs {
		runs[i] = runs[i].Anonymous()
	}
	r := build(t, runs, analysis.Options{})
	if len(r.Nodes) != 7 || r.Nodes[6].Name != "node 7" || len(r.LeftOut) != 0 {
		t.Errorf("the nodes are %v, and left out are %v", r.Nodes, r.LeftOut)
	}
}

// Stages are means over nodes, and add up to the whole of the means.
func TestStages(t *testing.T) {
	r := build(t, reporttest.Cluster(), analysis.Options{})
	if len(r.Stages) != 1 || r.Stages[0].Title != "Stages of a start" || fmt.Sprint(r.Stages[0].Parts) != "[accepted scheduled sandbox first instruction]" {
		t.Fatalf("the stages are %+v", r.Stages)
	}
	for _, row := range r.Stages[0].Rows {
		sandbox := row.Stages[2]
		if want := map[string]int{"k8s/kata": 8}[row.Target]; want != 0 && sandbox.Nodes != want {
			t.Errorf("the sandbox of %s has %d nodes, want %d", row.Target, sandbox.Nodes, want)
		}
		if sandbox.CI == nil || sandbox.Mean < sandbox.CI.Lo || sandbox.Mean > sandbox.CI.Hi {
			t.Errorf("the sandbox of %s takes %g with the interval %v", row.Target, sandbox.Mean, sandbox.CI)
		}
	}
	report := build(t, reporttest.Cluster()[:4], analysis.Options{})
	if ci := report.Stages[0].Rows[0].Stages[0].CI; ci != nil {
		t.Errorf("four nodes have the interval %v of a stage", ci)
	}
}

// A healthy fleet of equal nodes has few false statements: an odd node, a difference between kinds, or a separating fact, from the trials to the report.
func TestFalseAlarmsOfHealthyFleets(t *testing.T) {
	trials := simulation.Trials(t, 40, 400)
	alarmCount := 0
	random := rand.New(rand.NewPCG(3, 4))
	for trial := range trials {
		runs := reporttest.Fleet{ID: fmt.Sprintf("f%d", trial), Nodes: 12, Blocks: 12, Healthy: true}.Runs()
		for i := range runs { // each fleet has a spread and noise of its own
			spread := map[result.Cell]float64{}
			for n := range runs[i].Trials {
				c := &runs[i].Trials[n]
				if _, ok := spread[c.Cell]; !ok {
					spread[c.Cell] = 0.03 * random.NormFloat64()
				}
				for s := range c.Samples {
					c.Samples[s].Value *= math.Exp(spread[c.Cell] + 0.05*random.NormFloat64())
				}
			}
		}
		r := build(t, runs, analysis.Options{})
		facts := slices.DeleteFunc(r.SeparationTexts(), func(text string) bool { return strings.HasSuffix(text, "in this metric alone") })
		if len(r.OddNodes())+len(r.KindTexts())+len(facts) > 0 {
			alarmCount++
		}
	}
	t.Logf("%.1f %% of healthy fleets have an odd node, a difference between kinds or a separating fact", 100*float64(alarmCount)/float64(trials))
	simulation.AtMost(t, 0.15, alarmCount, trials, "healthy fleets with a false statement, of three families at 5 %% each")
}

// BenchmarkFleet is a fleet of 1000 nodes, 5 targets and 30 blocks, from the samples in memory to the report.
func BenchmarkFleet(b *testing.B) {
	f := reporttest.Fleet{ID: "f", Nodes: 1000, Blocks: 30, Classes: 1}
	for b.Loop() {
		builder := fleet.NewBuilder(analysis.Options{})
		for i := range f.Nodes {
			b.StopTimer()
			run := f.Run(i)
			b.StartTimer()
			must.Do(b, builder.Add(&run))
		}
		_, err := builder.Report()
		must.Do(b, err)
	}
}
