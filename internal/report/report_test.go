package report_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// model is the report of one run, with the same bootstraps whatever the seed of the run.
func model(run result.Run) report.Report {
	run.Seed = 1
	return report.New([]result.Run{run}, analysis.Options{})
}

// measured is a benchmark of a report of one run.
type measured struct {
	*analysis.Section
	Name    string
	Metrics []analysis.Metric
}

func benchmark(t *testing.T, r report.Report, name string) measured {
	t.Helper()
	for _, b := range r.Benchmarks() {
		if b.Name == name {
			return measured{b.Sections[0], b.Name, b.Metrics}
		}
	}
	t.Fatalf("the report has no benchmark %s", name)
	return measured{}
}

func cell(t *testing.T, b measured, metric, target string) analysis.Cell {
	t.Helper()
	for _, m := range b.Metrics {
		if m.Name != metric {
			continue
		}
		for _, r := range m.Rows {
			if r.Target == target {
				return r.Cells[0]
			}
		}
	}
	t.Fatalf("%s has no %s on %s", b.Name, metric, target)
	return analysis.Cell{}
}

const (
	lifecycle = "operations.container.lifecycle"
	runsc     = "oci/runsc@platform=systrap"
)

func TestSamplesAreValidRuns(t *testing.T) {
	runs := reporttest.Odd()
	runs["sample"], runs["small"], runs["suite"] = reporttest.Sample(), reporttest.Small(), reporttest.Suite()
	for _, run := range reporttest.Machines() {
		runs[run.ID] = run
	}
	for name, run := range runs {
		if err := run.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyGoodTrialsGiveNumbers(t *testing.T) {
	run := reporttest.Small()
	// One warm-up, one failed and eight good trials are left of runc.
	const bad = 1e6
	failed := 0
	for i := range run.Trials {
		tr := &run.Trials[i]
		if tr.Target != "oci/runc" {
			continue
		}
		if tr.Warmup {
			tr.Samples[0].Value = bad
		} else if failed < 2 {
			failed++
			tr.Status, tr.Reason, tr.Samples = result.Failed, "exit code 1", nil
		}
	}
	b := benchmark(t, model(run), lifecycle)
	c := cell(t, b, "Create", "oci/runc")
	if c.Summary.N != 8 || c.Summary.Max >= bad || c.Comparison.N != 8 {
		t.Errorf("n = %d, max = %v, %d pairs; want 8, less than %v, 8", c.Summary.N, c.Summary.Max, c.Comparison.N, bad)
	}
	if got, want := b.Targets[1].Why(), "failed 2 of 10: exit code 1"; got != want {
		t.Errorf("Why() = %q, want %q", got, want)
	}
	if n := len(b.Targets); n != 2 || b.Targets[1].Counts() != "8 ok, 2 failed" || b.Targets[1].Warmup != 1 {
		t.Errorf("the outcomes are %+v", b.Targets)
	}
}

func TestSeriesGivesOneValueATrial(t *testing.T) {
	run := reporttest.Sample()
	b := benchmark(t, model(run), "scalability.runtime.5")
	c := cell(t, b, "StartLatency", "oci/runc")
	if c.Summary.N != 10 || len(c.Points) != 10 || len(c.Curve) != 5 {
		t.Fatalf("n = %d, %d points, a curve of %d; want 10, 10, 5", c.Summary.N, len(c.Points), len(c.Curve))
	}
	var first result.Trial
	for _, tr := range run.Trials {
		if tr.Benchmark == b.Name && tr.Target == "oci/runc" && !tr.Warmup {
			first = tr
			break
		}
	}
	values := first.Values("StartLatency")
	if c.Points[0].Seq != first.Seq || c.Curve[4].Values[0] != values[4] {
		t.Errorf("the first point is of trial %d and its fifth value is %v; want %d, %v", c.Points[0].Seq, c.Curve[4].Values[0], first.Seq, values[4])
	}
	slices.Sort(values)
	if c.Points[0].Value != values[2] {
		t.Errorf("the first point is %v, want the median %v", c.Points[0].Value, values[2])
	}
}

func TestBaseline(t *testing.T) {
	m := model(reporttest.Sample())
	for name, want := range map[string]string{
		lifecycle:                    "native",
		"operations.container.pause": "oci/runc", // native is skipped
	} {
		b := benchmark(t, m, name)
		if b.Baseline != want || (b.BaselineNote == "") != (want == "native") {
			t.Errorf("the baseline of %s is %s (%s), want %s", name, b.Baseline, b.BaselineNote, want)
		}
		for _, metric := range b.Metrics {
			for _, r := range metric.Rows {
				c := r.Cells[0]
				isBaseline := c.Summary != nil && r.Target == want
				if c.Baseline != isBaseline || isBaseline && c.Comparison != nil {
					t.Errorf("%s %s on %s: baseline %v, comparison %v", name, metric.Name, r.Target, c.Baseline, c.Comparison)
				}
				if c.Overhead != nil && want != "native" {
					t.Errorf("%s %s on %s has an overhead against %s", name, metric.Name, r.Target, want)
				}
			}
		}
	}
	create := cell(t, benchmark(t, m, lifecycle), "Create", "oci/crun")
	if want := math.Abs(create.Comparison.Ratio - 1); math.Abs(*create.Overhead-want) > 1e-9 {
		t.Errorf("the overhead is %v, want %v", *create.Overhead, want)
	}
}

// TestFamilyIsOneMetric checks the definition of families in the package comment.
func TestFamilyIsOneMetric(t *testing.T) {
	for _, m := range benchmark(t, model(reporttest.Sample()), "performance.syscall.latency").Metrics {
		var p, adjusted []float64
		for _, r := range m.Rows {
			c := r.Cells[0]
			if c.BlocksNeeded != stats.BlocksNeeded(3) {
				t.Errorf("%s needs %d blocks, want %d", m.Name, c.BlocksNeeded, stats.BlocksNeeded(3))
			}
			if c.Comparison != nil {
				p, adjusted = append(p, c.Comparison.P), append(adjusted, c.Comparison.Adjusted)
			}
		}
		if len(p) != 3 {
			t.Fatalf("%s has %d comparisons, want 3", m.Name, len(p))
		}
		if diff := cmp.Diff(stats.Holm(p), adjusted); diff != "" {
			t.Errorf("%s: adjusted p-values (-want +got):\n%s", m.Name, diff)
		}
	}
}

func TestCellsAreIndependent(t *testing.T) {
	run := reporttest.Sample()
	part := reporttest.Sample()
	part.Trials = slices.DeleteFunc(part.Trials, func(tr result.Trial) bool {
		return tr.Benchmark != lifecycle || tr.Target == runsc
	})
	a := cell(t, benchmark(t, model(run), lifecycle), "Destroy", "oci/runc")
	b := cell(t, benchmark(t, model(part), lifecycle), "Destroy", "oci/runc")
	if diff := cmp.Diff(a.Summary, b.Summary); diff != "" {
		t.Errorf("without other cells the summary is another (-whole +part):\n%s", diff)
	}
	if diff := cmp.Diff(a.Comparison.CI, b.Comparison.CI); diff != "" {
		t.Errorf("without other cells the ratio's interval is another (-whole +part):\n%s", diff)
	}
}

func TestPhases(t *testing.T) {
	phase := func(name string, ms int) result.Phase {
		return result.Phase{Name: name, Duration: time.Duration(ms) * time.Millisecond}
	}
	run := reporttest.Small()
	n := 0
	for i := range run.Trials {
		if run.Trials[i].Target == "native" && !run.Trials[i].Warmup {
			n++
			run.Trials[i].Phases = []result.Phase{phase("create", n), phase("exec", 10), phase("exec", 10*n), phase("exec", 10*n)}
		}
	}
	want := []analysis.Phase{{Name: "create", Seconds: 0.0055, Times: 1}, {Name: "exec", Seconds: 0.055, Times: 3}}
	got := benchmark(t, model(run), lifecycle).Targets[0].Phases
	if len(got) != 2 || got[0].Name != want[0].Name || math.Abs(got[0].Seconds-want[0].Seconds) > 1e-9 || math.Abs(got[1].Seconds-want[1].Seconds) > 1e-9 || got[1].Times != 3 {
		t.Errorf("the phases are %+v, want %+v", got, want)
	}
}

// A step without its phase is not lost.
func TestStepWithoutItsPhase(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		run.Trials[i].Phases = []result.Phase{{Name: "create/RunPodSandbox", Duration: time.Millisecond}}
	}
	if p := benchmark(t, model(run), lifecycle).Targets[0].Phases; len(p) != 1 || p[0].Name != "create/RunPodSandbox" || p[0].Seconds != 0.001 {
		t.Errorf("a step without its phase is %+v", p)
	}
}

func TestManyTargetsWithTooFewBlocks(t *testing.T) {
	run := reporttest.Engines()
	run.Trials = slices.DeleteFunc(run.Trials, func(tr result.Trial) bool { return tr.Block >= 7 })
	for _, g := range model(run).Warnings[0] {
		if g.Title == "Too few blocks" {
			if want := lifecycle + ": a verdict needs 10 blocks; measured: 7 on each target"; g.Items[0] != want {
				t.Errorf("the warning is %q, want %q", g.Items[0], want)
			}
			return
		}
	}
	t.Error("there is no warning of too few blocks")
}

func TestFindingsNeedShownDifferences(t *testing.T) {
	for name, run := range reporttest.Odd() {
		switch name {
		case "the baseline is unknown", "layers of both signs", "huge and tiny layers":
			continue // they have ten blocks like the others
		}
		f := model(run).Findings.Statements
		if failed, ok := strings.CutPrefix(name, "failed: "); ok {
			f = slices.DeleteFunc(f, func(s string) bool { return !strings.HasPrefix(s, failed+" ") })
		}
		if len(f) > 0 {
			t.Errorf("%s: there are findings %q", name, f)
		}
	}
}

// A slower fast path and a faster slow path are a finding, in one run and in several.
func TestFindingInBothDirections(t *testing.T) {
	run := result.Run{
		ID: "a", Baseline: "native", Targets: []result.Target{{Name: "native"}, {Name: "oci/runc"}},
		Bench: []result.Benchmark{{Name: "operations.container.lifecycle", Metrics: []result.Metric{{Name: "Create", Unit: result.Seconds, Better: result.Lower}}}},
	}
	for block := range 60 {
		noise := float64(block*37%60) / 1e4 // of one order for both targets
		for target, values := range map[string][2]float64{"native": {6, 14}, "oci/runc": {7, 12}} {
			run.Trials = append(run.Trials, result.Trial{
				Cell: result.Cell{Benchmark: run.Bench[0].Name, Target: target}, Block: block, Status: result.OK,
				Samples: []result.Sample{{Metric: "Create", Value: values[block%2] * (1 + noise) / 1e3}},
			})
		}
	}
	const phrase = "lowest quarter 1.17 × slower, lower half 1.17 × slower, highest quarter 1.17 × faster"
	parts := []string{phrase + " than native (its parts differ in both directions; ", "shown for the lowest quarter 1.17 ×, lower half 1.17 ×, highest quarter 0.857 ×"}
	m := model(run)
	if v := m.Benchmarks()[0].Metrics[0].Rows[1].Cells[0].Comparison.Verdict; v != stats.Mixed {
		t.Fatalf("the verdict is %q, want %q", v, stats.Mixed)
	}
	second := run
	second.ID = "b"
	for i, f := range []finding.Findings{m.Findings, report.New([]result.Run{run, second}, analysis.Options{}).Findings} {
		if len(f.Statements) != 1 || !strings.HasPrefix(f.Statements[0], []string{"oci/runc: Create ", "oci/runc: Create costs "}[i]) || !strings.Contains(f.Statements[0], parts[i]) {
			t.Errorf("the findings of %d runs are %q, want one with %q", i+1, f.Statements, parts[i])
		}
	}
}

func TestNoFindingOfFewerThanSixBlocks(t *testing.T) {
	for _, blocks := range []int{1, 5, 6} {
		run := reporttest.Small()
		run.Trials = slices.DeleteFunc(run.Trials, func(tr result.Trial) bool { return tr.Block >= blocks })
		m := model(run)
		if got := len(m.Findings.Statements) > 0; got != (blocks >= stats.MinSamples) {
			t.Errorf("with %d blocks the findings are %q", blocks, m.Findings.Statements)
		}
		found := slices.ContainsFunc(m.Warnings[0], func(g finding.WarningGroup) bool { return g.Title == "Too few blocks" })
		if found != (blocks < stats.MinSamples) {
			t.Errorf("with %d blocks the warnings are %+v", blocks, m.Warnings[0])
		}
	}
}

func TestStatementHasTheFactorInTheDirectionOfTheVerdict(t *testing.T) {
	for _, c := range []struct {
		factor float64
		unit   result.Unit
		better result.Direction
		want   string
	}{
		{2.5, result.Seconds, result.Lower, "2.50 × slower than native"},
		{0.4, result.Seconds, result.Lower, "2.50 × faster than native"},
		{1.1, result.Seconds, result.Lower, "1.10 × slower than native"},
		{0.9, result.Seconds, result.Lower, "1.11 × faster than native"},
		{3, result.Bytes, result.Lower, "3.00 × more than native"},
		{0.25, result.PerSecond, result.Higher, "4.00 × slower than native"},
		{1.2, result.Score, result.Higher, "1.20 × better than native"},
		{0.8, result.BytesPerSecond, result.Higher, "1.25 × slower than native"},
	} {
		run := reporttest.Small()
		run.Bench[0].Metrics = []result.Metric{{Name: "Value", Unit: c.unit, Better: c.better}}
		for i := range run.Trials {
			value := 1000 + float64(run.Trials[i].Block)
			if run.Trials[i].Target != "native" {
				value *= c.factor
			}
			run.Trials[i].Samples = []result.Sample{{Metric: "Value", Value: value}}
		}
		f := model(run).Findings.Statements
		if len(f) != 1 || !strings.Contains(f[0], ", "+c.want+" (95 % interval ") {
			t.Errorf("of a factor of %v in %s the findings are %q, want %q", c.factor, c.unit, f, c.want)
		}
	}
}

// Marks that differ only in amounts are counted together, with the range of each amount.
func TestDisturbedTrialsAreCountedByKind(t *testing.T) {
	for name, c := range map[string]struct {
		marks []string // of one trial each
		want  []string
	}{
		"one trial":       {[]string{"programs waited for I/O 14.2 % of the time"}, []string{"1 trial: programs waited for I/O 14.2 % of the time"}},
		"a range":         {[]string{"programs waited for I/O 14.2 % of the time", "programs waited for I/O 3 % of the time", "programs waited for I/O 9.7 % of the time"}, []string{"3 trials: programs waited for I/O 3 to 14.2 % of the time"}},
		"by value":        {[]string{"CPUs were throttled 10 times", "CPUs were throttled 9 times", "CPUs were throttled 1,200.5 times"}, []string{"3 trials: CPUs were throttled 9 to 1,200.5 times"}},
		"equal amounts":   {[]string{"programs waited for I/O 14.0 % of the time", "programs waited for I/O 14 % of the time"}, []string{"2 trials: programs waited for I/O 14.0 % of the time"}},
		"two kinds":       {[]string{"programs waited for I/O 20 % of the time", "programs waited for memory 5 % of the time"}, []string{"1 trial: programs waited for I/O 20 % of the time", "1 trial: programs waited for memory 5 % of the time"}},
		"without amounts": {[]string{"the voltage was too low", "the voltage was too low"}, []string{"2 trials: the voltage was too low"}},
		"several amounts": {
			[]string{"it fell from 2800 to 2400 MHz", "it fell from 2700 to 2600 MHz"}, []string{"2 trials: it fell from 2700–2800 to 2400–2600 MHz"},
		},
		"one of several amounts": {
			[]string{"they ran at 900 MHz, below 2100 MHz", "they ran at 1850 MHz, below 2100 MHz"}, []string{"2 trials: they ran at 900–1850 MHz, below 2100 MHz"},
		},
		"names":            {[]string{"cpu3 was 70 °C hot", "cpu4 was 80 °C hot", "cpu3 was 90 °C hot"}, []string{"2 trials: cpu3 was 70 to 90 °C hot", "1 trial: cpu4 was 80 °C hot"}},
		"no amounts":       {[]string{"CPUs 0-1 of v1.2.3", "CPUs 0-3 of v1.2.3", "CPUs 0-3 of v1.2.3"}, []string{"1 trial: CPUs 0-1 of v1.2.3", "2 trials: CPUs 0-3 of v1.2.3"}},
		"below zero":       {[]string{"it was -5 °C", "it was -3 °C"}, []string{"1 trial: it was -5 °C", "1 trial: it was -3 °C"}},
		"too large":        {[]string{"it was " + strings.Repeat("9", 400), "it was 7"}, []string{"1 trial: it was " + strings.Repeat("9", 400), "1 trial: it was 7"}},
		"in the last word": {[]string{"it was 5.", "it was 3."}, []string{"2 trials: it was 3 to 5."}},
	} {
		run := reporttest.Small()
		next := 0
		for i := range run.Trials {
			trial := &run.Trials[i]
			trial.Host.Marks = nil
			switch {
			case trial.Warmup:
				trial.Host.Marks = []string{"programs waited for I/O 50 % of the time"}
			case trial.Status == result.OK && next < len(c.marks):
				trial.Host.Marks = c.marks[next : next+1]
				next++
			}
		}
		var got []string
		for _, g := range model(run).Warnings[0] {
			if g.Title == "Disturbed trials" {
				got = g.Items
			}
		}
		if next != len(c.marks) || !slices.Equal(got, c.want) {
			t.Errorf("%s: the items are %q, want %q", name, got, c.want)
		}
	}
}

func TestNewDoesNotChangeTheRun(t *testing.T) {
	run := reporttest.Sample()
	model(run)
	if diff := cmp.Diff(reporttest.Sample(), run); diff != "" {
		t.Errorf("New has changed the run (-before +after):\n%s", diff)
	}
}

func TestStateText(t *testing.T) {
	start := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for text, end := range map[string]time.Time{
		"complete after 2m51s": start.Add(171 * time.Second),
		"complete":             start.Add(-time.Hour), // the clock was set back before the run was resumed
	} {
		run := analysis.Run{Run: result.Run{State: result.Complete, Started: start, Ended: end}}
		if got := finding.State(&run); got != text {
			t.Errorf("a run that ended at %v is %q, want %q", end, got, text)
		}
	}
}
