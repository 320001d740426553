package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Facts of machines: emulated, perhaps emulated, a guest on a real CPU, and a guest with KVM in an emulated machine.
var (
	tcg     = result.Host{Arch: "amd64", CPU: "QEMU TCG CPU version 2.5+", Virtual: "qemu (QEMU Standard PC)"}
	perhaps = result.Host{Arch: "arm64", CPU: "Cortex-A72", Virtual: "qemu"}
	kvm     = result.Host{Arch: "amd64", CPU: "Example CPU", Virtual: "kvm (QEMU Standard PC)"}
	nested  = result.Host{Arch: "amd64", CPU: "QEMU TCG CPU version 2.5+", Virtual: "kvm (QEMU Standard PC)"}
)

// onMachine gives a run the kind of machine.
func onMachine(run result.Run, h result.Host) result.Run {
	run.Host.Arch, run.Host.CPU, run.Host.Virtual = h.Arch, h.CPU, h.Virtual
	return run
}

// Invariant emulated-speed.
func TestOnlyEmulatedMachinesHaveTheNote(t *testing.T) {
	for _, c := range []struct {
		host result.Host
		want string
	}{
		{result.Host{Arch: "amd64"}, ""},
		{kvm, ""},
		{tcg, "The CPU of this machine is emulated (bench1: emulated by qemu (QEMU Standard PC)). "},
		{nested, "The CPU of this machine is emulated (bench1: guest of kvm (QEMU Standard PC) on a CPU that qemu emulates). "},
		{perhaps, "The CPU of this machine may be emulated (bench1: guest of qemu, and perhaps emulated). "},
	} {
		r := report.New([]result.Run{onMachine(reporttest.Small(), c.host)}, analysis.Options{})
		e := finding.EmulationOf(r.Analysis)
		if (e != nil) != (c.want != "") || e != nil && !strings.HasPrefix(e.Note, c.want) {
			t.Errorf("%+v has the note %+v, want %q", c.host, e, c.want)
		}
		if got := r.Runs[0].Withheld > 0; got != (c.want != "") {
			t.Errorf("%+v: verdicts are withheld: %v", c.host, got)
		}
	}
}

// The same run on an emulated machine has the same values and ratios. It has verdicts on memory and counts only, unless all are asked
// for.
//
// Invariant emulated-speed: A report of an emulated machine says so at the top, and has no verdict about speed unless asked.
func TestEmulatedRunsHaveNoVerdictOfSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("it has many reports")
	}
	speed, rest := 0, 0
	// cmp takes seconds for the points of a suite.
	rows := cmp.Options{cmpopts.EquateNaNs(), cmp.Comparer(slices.Equal[[]analysis.Point])}
	for name, run := range map[string]result.Run{"sample": reporttest.Sample(), "engines": reporttest.Engines(), "suite": reporttest.Suite()} {
		physical := report.New([]result.Run{onMachine(run, kvm)}, analysis.Options{})
		emulated := report.New([]result.Run{onMachine(run, tcg)}, analysis.Options{})
		override := report.New([]result.Run{onMachine(run, tcg)}, analysis.Options{EmulatedVerdicts: true})
		for i, b := range physical.Benchmarks() {
			for j, m := range b.Metrics {
				if diff := cmp.Diff(m.Rows, override.Benchmarks()[i].Metrics[j].Rows, rows); diff != "" {
					t.Errorf("%s: %s %s differs with EmulatedVerdicts (-without an emulator +with):\n%s", name, b.Title(), m.Name, diff)
				}
				if !m.OfSpeed() {
					// There are fewer comparisons together, so more of them hold everywhere.
					option := cmpopts.IgnoreFields(stats.Comparison{}, "Everywhere")
					if diff := cmp.Diff(m.Rows, emulated.Benchmarks()[i].Metrics[j].Rows, rows, option); diff != "" {
						t.Errorf("%s: %s %s in %s differs (-without an emulator +with):\n%s", name, b.Title(), m.Name, m.Unit, diff)
					}
				}
				for n, row := range m.Rows {
					want, got := row.Cells[0].Comparison, emulated.Benchmarks()[i].Metrics[j].Rows[n].Cells[0].Comparison
					switch {
					case want == nil && got == nil:
					case want == nil || got == nil:
						t.Errorf("%s: %s %s on %s has the comparison %v, want %v", name, b.Title(), m.Name, row.Target, got, want)
					case !m.OfSpeed():
						rest++
					case got.Verdict != stats.Withheld && got.Verdict != stats.NotComparable || got.P == got.P || got.Adjusted == got.Adjusted:
						t.Errorf("%s: %s %s on %s has the verdict %q with p %v", name, b.Title(), m.Name, row.Target, got.Verdict, got.P)
					default:
						speed++
						if diff := cmp.Diff(want.CI, got.CI); diff != "" || want.Ratio != got.Ratio && want.Ratio == want.Ratio {
							t.Errorf("%s: %s %s on %s has the ratio %v, want %v; %s", name, b.Title(), m.Name, row.Target, got.Ratio, want.Ratio, diff)
						}
					}
				}
			}
		}
		families, comparisons := emulated.Families()
		if total, _ := physical.Families(); families >= total || emulated.Runs[0].Withheld == 0 || override.Runs[0].Withheld != 0 {
			t.Errorf("%s: %d families with %d comparisons are judged, and %d are withheld", name, families, comparisons, emulated.Runs[0].Withheld)
		}
	}
	if speed < 50 || rest < 5 {
		t.Errorf("%d comparisons of speed and %d others are too few for this test", speed, rest)
	}
}

// The scorecard and its summary keep the verdict on memory.
func TestEmulatedScorecard(t *testing.T) {
	run := scoredRun(1, 10,
		scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 1.01, 3), 0.001},
		scoredMetric{"net", result.DimensionNetwork, result.Higher, on(1, 1, 0.1), 0.001},
		scoredMetric{"start", result.DimensionStartUp, result.Lower, on(1, 2, 9), 0.001},
		scoredMetric{"mem", result.DimensionMemoryOverhead, result.Lower, on(1, 2, 4), 0.001},
	)
	r := report.New([]result.Run{onMachine(run, tcg)}, analysis.Options{})
	for _, c := range []struct {
		dimension result.Dimension
		verdict   analysis.ScoreVerdict
		text      string
	}{
		{result.DimensionCPU, analysis.EmulatedScore, "3.00 ×"},
		{result.DimensionNetwork, analysis.EmulatedScore, "10.0 ×"},
		{result.DimensionStartUp, analysis.NoVerdict, "900 s (9.00 ×, emulated)"},
		{result.DimensionMemoryOverhead, analysis.Met, "300 B (0.0000028 %)"},
	} {
		if s := score(t, r, c.dimension, "oci/runsc"); s.Verdict != c.verdict || finding.Score(&s) != c.text {
			t.Errorf("%s is %q, %q; want %q, %q", c.dimension, s.Verdict, finding.Score(&s), c.verdict, c.text)
		}
	}
	if want := "No verdict on an emulated CPU: CPU on all targets; network on all targets."; !slices.Contains(r.Findings.Open, want) {
		t.Errorf("the open goals %q lack %q", r.Findings.Open, want)
	}
	sample := scoredRun(1, 10,
		scoredMetric{"start", result.DimensionStartUp, result.Lower, on(1, 2, 9), 0.001},
		scoredMetric{"mem", result.DimensionMemoryOverhead, result.Lower, on(1, 2, 4), 0.001},
	)
	for _, answer := range report.New([]result.Run{onMachine(sample, tcg)}, analysis.Options{}).Findings.Answers {
		if strings.Contains(answer.Text, "start") {
			t.Errorf("an emulated CPU has an answer about speed: %s", answer.Text)
		}
	}
	if r.Findings.Withheld != "No verdict on 6 comparisons of speed: see the note on the emulated CPU at the top." {
		t.Errorf("withheld is %q", r.Findings.Withheld)
	}
	override := report.New([]result.Run{onMachine(run, tcg)}, analysis.Options{EmulatedVerdicts: true})
	if s := score(t, override, result.DimensionCPU, "oci/runsc"); s.Verdict != analysis.Missed || finding.Score(&s) != "3.00 ×, slower" {
		t.Errorf("with EmulatedVerdicts CPU is %q, %q", s.Verdict, finding.Score(&s))
	}
	if e := finding.EmulationOf(override.Analysis); e == nil || !strings.Contains(e.Note, "because of --emulated-verdicts. They hold for the emulator alone.") {
		t.Errorf("with EmulatedVerdicts the note is %+v", e)
	}
}

// A limit that does not hold is a finding on an emulated machine too. A bound of a time is not, and neither is a verdict about speed
// in the words of a benchmark.
func TestEmulatedBreaches(t *testing.T) {
	run := onMachine(reporttest.Small(), tcg)
	bench := slices.Clone(run.Bench)
	bench[0].Metrics = slices.Clone(bench[0].Metrics)
	bench[0].Judged = []string{"loss"}
	run.Bench, run.Trials = bench, slices.Clone(run.Trials)
	for i := range run.Trials {
		run.Trials[i].Conditions = map[string]string{"loss": "shown", "cache": "cold"}
	}
	m := &bench[0].Metrics[0]
	for _, c := range []struct {
		unit  result.Unit
		bound result.Bound
		want  bool
	}{
		{result.Ratio, result.Bound{Most: 1e-9, Broken: "does not hold its CPU limit"}, true},
		{result.Seconds, result.Bound{Most: 1e-9, Broken: "does not hold its time limit"}, false},
	} {
		m.Unit, m.Bound = c.unit, c.bound
		r := report.New([]result.Run{run}, analysis.Options{})
		if got := len(r.Findings.Breaches) > 0; got != c.want {
			t.Errorf("a bound in %s: the breaches are %q", c.unit, r.Findings.Breaches)
		}
		var conditions []string
		for _, condition := range r.Benchmarks()[0].Sections[0].Conditions {
			conditions = append(conditions, condition.String())
		}
		if want := []string{"cache cold", "loss no verdict, because the CPU is emulated"}; !slices.Equal(conditions, want) {
			t.Errorf("the conditions are %q, want %q", conditions, want)
		}
	}
}
