package report_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// scoredMetric is a metric of a run for a scorecard, with the values of each target as factors of 100.
type scoredMetric struct {
	name      string
	dimension result.Dimension
	better    result.Direction
	factors   map[string]float64
	spread    float64 // relative standard deviation
}

const gib = 1 << 30

// scoredRun is a run of ten blocks on native, oci/crun and oci/runsc.
func scoredRun(seed uint64, blocks int, metrics ...scoredMetric) result.Run {
	random := rand.New(rand.NewPCG(seed, 0))
	run := result.Run{
		ID: "scored", Baseline: "native", Seed: 1, Host: result.Host{Memory: 10 * gib},
		Targets: []result.Target{
			{Name: "native", Kind: result.KindNative, Isolation: "none"},
			{Name: "oci/crun", Kind: result.KindRuntime, Isolation: "shared kernel"},
			{Name: "oci/runsc", Kind: result.KindRuntime, Isolation: "user-space kernel"},
		},
	}
	seq := 0
	for _, m := range metrics {
		unit := result.Seconds
		if m.better == result.Higher {
			unit = result.PerSecond
		}
		if m.dimension == result.DimensionMemoryOverhead {
			unit = result.Bytes
		}
		b := "suite.of." + strings.ReplaceAll(m.name, " ", "-")
		run.Bench = append(run.Bench, result.Benchmark{Name: b, Metrics: []result.Metric{
			{Name: m.name, Unit: unit, Better: m.better, Dimension: m.dimension},
		}})
		for block := range blocks {
			for _, target := range run.Targets {
				factor, ok := m.factors[target.Name]
				if !ok {
					continue
				}
				seq++
				run.Trials = append(run.Trials, result.Trial{
					Seq: seq, Block: block, Status: result.OK, Cell: result.Cell{Benchmark: b, Target: target.Name},
					Samples: []result.Sample{{Metric: m.name, Value: 100 * factor * (1 + m.spread*random.NormFloat64())}},
				})
			}
		}
	}
	return run
}

// on gives the factors of native, crun and runsc.
func on(native, crun, runsc float64) map[string]float64 {
	return map[string]float64{"native": native, "oci/crun": crun, "oci/runsc": runsc}
}

func score(t *testing.T, r report.Report, d result.Dimension, target string) analysis.Score {
	t.Helper()
	card := r.Runs[0].Scorecard
	index := slices.Index(card.Targets, target)
	for _, row := range card.Rows {
		if row.Dimension == d && index >= 0 {
			return row.Scores[index]
		}
	}
	t.Fatalf("the scorecard has no %s on %s", d, target)
	return analysis.Score{}
}

// Invariant goals: A goal of the scorecard is met or missed only if the intervals show it.
func TestScorecardVerdicts(t *testing.T) {
	m := model(scoredRun(1, 10,
		scoredMetric{"cpu time", result.DimensionCPU, result.Lower, on(1, 1.001, 1.02), 0.0005},
		scoredMetric{"cpu rate", result.DimensionCPU, result.Higher, on(1, 0.99, 0.5), 0.0005},
		scoredMetric{"disk", result.DimensionDisk, result.Lower, on(1, 1.05, 1.051), 0.03},
		scoredMetric{"cost", result.DimensionMemoryOverhead, result.Lower, on(gib/1000, 1.001*gib/1000, 3*gib/1000), 0.001},
		scoredMetric{"start", result.DimensionStartUp, result.Lower, on(1, 30, 100), 0.01},
		scoredMetric{"loss", result.DimensionIsolation, result.Lower, map[string]float64{"oci/crun": 0.3}, 0.01},
	))
	for _, tt := range []struct {
		dimension result.Dimension
		target    string
		verdict   analysis.ScoreVerdict
		metric    string
	}{
		{result.DimensionCPU, "oci/crun", analysis.Met, "cpu rate"},
		{result.DimensionCPU, "oci/runsc", analysis.Missed, "cpu rate"}, // its other metric meets the goal
		{result.DimensionDisk, "oci/crun", analysis.NotShown, "disk"},
		{result.DimensionMemoryOverhead, "oci/crun", analysis.Met, "cost"},
		{result.DimensionMemoryOverhead, "oci/runsc", analysis.Missed, "cost"},
		{result.DimensionStartUp, "oci/runsc", analysis.NoVerdict, "start"},
		{result.DimensionIsolation, "oci/crun", analysis.NoVerdict, "loss"},
		{result.DimensionIsolation, "oci/runsc", analysis.NotMeasured, ""},
		{result.DimensionFootprint, "oci/crun", analysis.NotMeasured, ""},
	} {
		if got := score(t, m, tt.dimension, tt.target); got.Verdict != tt.verdict || got.Metric.Name != tt.metric {
			t.Errorf("%s on %s: %q by %q (%s, %s), want %q by %q", tt.dimension, tt.target, got.Verdict, got.Metric.Name, finding.Score(&got), finding.ScoreInterval(&got), tt.verdict, tt.metric)
		}
	}
	if got := score(t, m, result.DimensionCPU, "oci/runsc"); finding.Score(&got) != "2.00 ×, slower" || finding.ScoreSource(&got) != "suite.of.cpu-rate, cpu rate" || got.Metrics != 2 {
		t.Errorf("the score is %q from %q of %d metrics", finding.Score(&got), finding.ScoreSource(&got), got.Metrics)
	}
	if got := score(t, m, result.DimensionMemoryOverhead, "oci/runsc"); !strings.HasSuffix(finding.Score(&got), " MiB (2.0 %)") {
		t.Errorf("the memory overhead is %q", finding.Score(&got))
	}
}

// Met needs a value of each metric that the run measured: the missing one may be the slowest.
func TestScorecardNeedsEachMetric(t *testing.T) {
	m := model(scoredRun(1, 10,
		scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1, 1), 0.001},
		scoredMetric{"other cpu", result.DimensionCPU, result.Lower, map[string]float64{"native": 1, "oci/crun": 1}, 0.001},
		scoredMetric{"disk", result.DimensionDisk, result.Lower, on(1, 1, 5), 0.001},
		scoredMetric{"other disk", result.DimensionDisk, result.Lower, map[string]float64{"native": 1}, 0.001},
	))
	for _, tt := range []struct {
		dimension result.Dimension
		target    string
		verdict   analysis.ScoreVerdict
		lacking   int
	}{
		{result.DimensionCPU, "oci/crun", analysis.Met, 0},
		{result.DimensionCPU, "oci/runsc", analysis.NotShown, 1},
		{result.DimensionDisk, "oci/crun", analysis.NotShown, 1},
		{result.DimensionDisk, "oci/runsc", analysis.Missed, 1},
	} {
		if got := score(t, m, tt.dimension, tt.target); got.Verdict != tt.verdict || got.Lacking != tt.lacking {
			t.Errorf("%s on %s: %q without %d metrics, want %q without %d", tt.dimension, tt.target, got.Verdict, got.Lacking, tt.verdict, tt.lacking)
		}
	}
	if want := "No verdict without a value of every metric: CPU on oci/runsc; disk on oci/crun."; !slices.Contains(m.Findings.Open, want) {
		t.Errorf("the summary %q lacks %q", m.Findings.Open, want)
	}
	got := score(t, m, result.DimensionCPU, "oci/runsc")
	if got := finding.ScoreSource(&got); !strings.HasSuffix(got, "cpu, with no value of 1 of 2 metrics") {
		t.Errorf("the source is %q", got)
	}
}

// The goals are about bare metal, also if another target is the baseline of the run.
func TestScorecardWithAnotherBaseline(t *testing.T) {
	run := scoredRun(1, 10,
		scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1.01, 1.5), 0.001},
		scoredMetric{"disk", result.DimensionDisk, result.Higher, on(1, 0.99, 0.5), 0.001},
	)
	want := model(run)
	run.Baseline = "oci/crun"
	got := model(run)
	for _, d := range []result.Dimension{result.DimensionCPU, result.DimensionDisk} {
		for _, target := range []string{"oci/crun", "oci/runsc"} {
			a, b := score(t, want, d, target), score(t, got, d, target)
			if a.Verdict != b.Verdict || finding.Score(&a) != finding.Score(&b) || finding.ScoreInterval(&a) != finding.ScoreInterval(&b) || b.Baseline != "native" {
				t.Errorf("%s on %s: %q %q (%s), want %q %q (%s)", d, target, b.Verdict, finding.Score(&b), finding.ScoreInterval(&b), a.Verdict, finding.Score(&a), finding.ScoreInterval(&a))
			}
		}
	}
	if got, want := got.Findings.Open[0], want.Findings.Open[0]; got != want {
		t.Errorf("the summary is %q, want %q", got, want)
	}
}

// A ratio to another target than bare metal says nothing about native speed.
func TestScorecardNeedsBareMetal(t *testing.T) {
	run := scoredRun(1, 10,
		scoredMetric{"cpu", result.DimensionCPU, result.Lower, map[string]float64{"oci/crun": 1, "oci/runsc": 1}, 0.001},
		scoredMetric{"disk", result.DimensionDisk, result.Lower, map[string]float64{"oci/crun": 1, "oci/runsc": 5}, 0.001},
	)
	m := model(run)
	for _, target := range []string{"oci/crun", "oci/runsc"} {
		if got := score(t, m, result.DimensionDisk, target); got.Verdict != analysis.NotShown {
			t.Errorf("disk on %s: %q without bare metal", target, got.Verdict)
		}
	}
	if got := score(t, m, result.DimensionDisk, "oci/runsc"); finding.Score(&got) != "5.00 × oci/crun, slower" {
		t.Errorf("the score is %q", finding.Score(&got))
	}
	text := strings.Join(m.Findings.Open, " ")
	if want := "No verdict without a value on bare metal: CPU on all targets; disk on all targets."; strings.Contains(text, "native speed") || !strings.Contains(text, want) {
		t.Errorf("the summary compares with bare metal, or lacks the reason: %s", text)
	}
}

// The memory of a container includes the program's own, so only the difference from bare metal is an overhead.
func TestMemoryOverheadNeedsBareMetal(t *testing.T) {
	m := model(scoredRun(1, 10,
		scoredMetric{"cost", result.DimensionMemoryOverhead, result.Lower, map[string]float64{"oci/crun": gib / 1000, "oci/runsc": 3 * gib / 1000}, 0.001},
		scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1, 1), 0.001},
	))
	for target, want := range map[string]string{"oci/crun": "102 MiB", "oci/runsc": "307 MiB (3.00 × oci/crun)"} {
		if got := score(t, m, result.DimensionMemoryOverhead, target); got.Verdict != analysis.NotShown || got.Memory != nil || finding.Score(&got) != want {
			t.Errorf("%s: %q with %q, want %q", target, got.Verdict, finding.Score(&got), want)
		}
	}
}

func TestScorecardNeedsTwoDimensions(t *testing.T) {
	m := model(scoredRun(1, 10, scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1, 2), 0.001}))
	if card := m.Runs[0].Scorecard; card.Targets != nil || m.Findings.Open != nil {
		t.Errorf("the scorecard is %+v with the open goals %q", card, m.Findings.Open)
	}
}

// A dimension without a value, and one with a value on bare metal alone, are named. A dimension with a value is not.
func TestOpenDimensions(t *testing.T) {
	m := model(scoredRun(2, 10,
		scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1.01, 1.02), 0.001}, scoredMetric{"disk", result.DimensionDisk, result.Lower, on(1, 1.01, 4), 0.001}))
	if want := "This run did not measure memory speed, network, system calls, start-up, memory overhead, density, isolation and footprint."; !slices.Contains(m.Findings.Open, want) {
		t.Errorf("the open dimensions %q lack %q", m.Findings.Open, want)
	}
	one := func(name string, d result.Dimension, factors map[string]float64) scoredMetric {
		return scoredMetric{name, d, result.Lower, factors, 0.001}
	}
	got := model(scoredRun(1, 10, one("cpu", result.DimensionCPU, map[string]float64{"native": 1, "oci/crun": 1.36}), one("disk", result.DimensionDisk, map[string]float64{"native": 1}))).Findings.Open
	if !slices.Contains(got, "Only bare metal has values of disk.") {
		t.Errorf("the open dimensions are %q", got)
	}
	if text := strings.Join(got, "\n"); strings.Contains(text, "did not measure CPU") || strings.Contains(text, "did not measure disk") {
		t.Errorf("the open dimensions are %q", got)
	}
}

// A target exactly at the goal is rarely said to meet or to miss it.
//
// Invariant goals.
func TestScorecardRarelyErrsAtTheGoal(t *testing.T) {
	runs := simulation.Trials(t, 60, 300)
	counts := map[analysis.ScoreVerdict]int{}
	for seed := range uint64(runs) {
		m := model(scoredRun(seed, 7,
			scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1/0.95, 1), 0.02},
			scoredMetric{"disk", result.DimensionDisk, result.Lower, on(1, 1, 1), 0.02},
		))
		counts[score(t, m, result.DimensionCPU, "oci/crun").Verdict]++
	}
	for _, v := range []analysis.ScoreVerdict{analysis.Met, analysis.Missed} {
		// 2.5 % of each is the level of the interval's end.
		simulation.AtMost(t, 0.025, counts[v], runs, "%s at the goal", v)
	}
}

// A factor without a goal has its verdict beside it, unless the difference is shown.
func TestScorecardMarksUnshownFactors(t *testing.T) {
	for blocks, want := range map[int]string{2: "s (30.0 ×, too few)", 10: "s (30.0 ×)"} {
		m := model(scoredRun(1, blocks,
			scoredMetric{"start", result.DimensionStartUp, result.Lower, on(1, 30, 100), 0.0001},
			scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1, 1), 0.0001},
		))
		if got := score(t, m, result.DimensionStartUp, "oci/crun"); !strings.HasSuffix(finding.Score(&got), want) {
			t.Errorf("with %d blocks the score is %q, want %q", blocks, finding.Score(&got), want)
		}
	}
}
