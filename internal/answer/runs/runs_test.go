package runs_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/text"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// single is the report of one run, with the same bootstraps whatever the seed of the run.
func single(run result.Run) report.Report {
	run.Seed = 1
	return report.New([]result.Run{run}, analysis.Options{})
}

// once is the report of a sample, which the first caller computes.
func once(run func() result.Run) func() report.Report {
	return sync.OnceValue(func() report.Report { return single(run()) })
}

// computed are the reports that the tests share. A report that is written stays as it is.
var computed = map[string]func() report.Report{
	"sample": once(reporttest.Sample), "engines": once(reporttest.Engines), "suite": once(reporttest.Suite), "stated": once(reporttest.Stated),
	"worded": once(reporttest.Worded), "traced": once(reporttest.Traced), "surfaces": once(reporttest.Surfaces),
	"load": once(reporttest.UnderLoad), "latencies": once(reporttest.Latencies),
	"machines": sync.OnceValue(func() report.Report { return report.New(reporttest.Machines(), analysis.Options{}) }),
	"machines with verdicts": sync.OnceValue(func() report.Report {
		return report.New(reporttest.Machines(), analysis.Options{EmulatedVerdicts: true})
	}),
	"machines across": sync.OnceValue(func() report.Report {
		return report.New(reporttest.Machines(), analysis.Options{AcrossMachines: true, EmulatedVerdicts: true})
	}),
}

// reportOf is a report of computed.
func reportOf(name string) report.Report { return computed[name]() }

func written(t *testing.T, run result.Run, opts text.Options) string {
	return writtenReport(t, single(run), opts)
}

func writtenReport(t *testing.T, r report.Report, opts text.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.Write(&b, runs.Document(&r), opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Invariant same-report.
func TestGolden(t *testing.T) {
	runs := reporttest.Machines()
	for name, c := range map[string]struct {
		report report.Report
		opts   text.Options
	}{
		"sample-100":   {reportOf("sample"), text.Options{Width: 100}},
		"sample-80":    {reportOf("sample"), text.Options{Width: 80}},
		"engines":      {reportOf("engines"), text.Options{Width: 100}},
		"suite":        {reportOf("suite"), text.Options{Width: 80}},
		"stated":       {reportOf("stated"), text.Options{Width: 60}},
		"worded":       {reportOf("worded"), text.Options{Width: 60}},
		"small":        {single(reporttest.Small()), text.Options{}},
		"traced":       {reportOf("traced"), text.Options{Width: 80}},
		"surfaces":     {reportOf("surfaces"), text.Options{Width: 80}},
		"color":        {single(reporttest.Small()), text.Options{Color: true}},
		"machines-80":  {report.New(runs[:3], analysis.Options{}), text.Options{Width: 80}},
		"machines-100": {reportOf("machines across"), text.Options{Width: 100}},
		"one-machine":  {report.New([]result.Run{runs[0], runs[3]}, analysis.Options{}), text.Options{Width: 80}},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, writtenReport(t, c.report, c.opts)) })
	}
}

// golden compares a report with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the report differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
	}
}

// TestLinesFitTheWidth holds what can be broken to the terminal's width.
func TestLinesFitTheWidth(t *testing.T) {
	for name, m := range map[string]report.Report{
		"sample": reportOf("sample"), "engines": reportOf("engines"), "suite": reportOf("suite"),
		"traced": reportOf("traced"), "surfaces": reportOf("surfaces"), "machines": reportOf("machines across"),
	} {
		for _, width := range []int{60, 80, 100, 120, 160} {
			for _, line := range strings.Split(writtenReport(t, m, text.Options{Width: width}), "\n") {
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%s: at a width of %d a line has %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

// TestStepsFollowTheirPhase holds that steps which are no metrics have columns of their own.
func TestStepsFollowTheirPhase(t *testing.T) {
	run := reporttest.Engines()
	for i := range run.Trials {
		tr := &run.Trials[i]
		for j := range tr.Phases {
			tr.Phases[j].Name = strings.Replace(tr.Phases[j].Name, "/RunPodSandbox", "/Sandbox", 1)
		}
	}
	got := written(t, run, text.Options{Width: 160})
	_, table, _ := strings.Cut(got, "Phases, median")
	for _, line := range strings.Split(table, "\n") {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "create" {
			if f[1] != "/Sandbox" || f[2] != "start" {
				t.Errorf("the columns of the phases are %q", f)
			}
			return
		}
	}
	t.Errorf("the report lacks the table of phases:\n%s", got)
}

// Invariant terminal.
func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	run := reporttest.Small()
	bad := "\x1b]0;owned\a\x1b[2J\u009b"
	run.Name += bad
	run.Host.CPU += bad
	run.Bench[0].Summary += bad
	run.Targets[1].Name += bad
	run.Caveats = []string{bad}
	run.Images = []result.Image{{Name: bad, Digest: bad}, {Name: bad + "2", Unavailable: bad}}
	run.Bench[0].Metrics[0].Bound = result.Bound{Most: -1, Broken: bad}
	run.Bench[0].Metrics = append(run.Bench[0].Metrics, result.Metric{Name: "Part", Unit: result.Seconds, Better: result.Lower, Group: bad, Component: bad})
	for i := range run.Trials {
		run.Trials[i].Conditions = map[string]string{bad: bad}
		if t := &run.Trials[i]; t.Status == result.OK && t.Benchmark == run.Bench[0].Name {
			t.Samples = append(t.Samples, result.Sample{Metric: "Part", Value: 1})
		}
		if run.Trials[i].Target != "native" {
			run.Trials[i].Target += bad
		}
	}
	run.Trials[8].Status, run.Trials[8].Reason, run.Trials[8].Samples = result.Failed, bad, nil
	run.Host.Hostname += bad
	one := reporttest.Small()
	one.ID = "one"
	for _, r := range written(t, run, text.Options{}) + writtenReport(t, report.New([]result.Run{one, run}, analysis.Options{AcrossMachines: true}), text.Options{}) {
		if r < ' ' && r != '\n' || 0x7f <= r && r < 0xa0 {
			t.Fatalf("the report has the control character %U", r)
		}
	}
}

func TestOddRuns(t *testing.T) {
	partner := reporttest.Small()
	for name, run := range reporttest.Odd() {
		reports := []report.Report{single(run)}
		if !strings.Contains(name, "layers") { // a joint report has none
			run.ID = "odd"
			reports = append(reports, report.New([]result.Run{run, partner}, analysis.Options{AcrossMachines: true}))
		}
		for _, r := range reports {
			got := writtenReport(t, r, text.Options{})
			if !strings.Contains(got, "Findings") || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("%s: the report of it is\n%s", name, got)
			}
		}
	}
}

// The reports have what no golden has.
func TestSections(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		if run.Trials[i].Status == result.OK {
			run.Trials[i].Timelines = []result.Timeline{{
				Group: "Memory \x1b[1m", Name: "used", Unit: result.Bytes, At: []time.Duration{0, time.Second, 2 * time.Second}, Values: []float64{1 << 20, 5 << 20, 1 << 20},
			}}
		}
	}
	emulated := reporttest.Sample()
	emulated.Host.Arch, emulated.Host.CPU, emulated.Host.Virtual = "amd64", "QEMU TCG CPU version 2.5+", "qemu (QEMU Standard PC)"
	note := "! The CPU of this machine is emulated (bench1: emulated by qemu (QEMU Standard PC)). "
	for name, c := range map[string]struct {
		report    report.Report
		want, not []string
	}{
		"timelines": {single(run), []string{
			" over time: mean, smallest to largest value\n", "3.00 MiB", "1.00 to 5.00 MiB", "Timelines are of the trial of median length on each target",
		}, []string{"\x1b"}},
		"trend": {reportOf("load"), []string{
			"  Trend of StartLatency per running container\n", " µs; no knee shown\n", "; knee at 35 (", finding.TrendLegend,
		}, nil},
		"worst case": {reportOf("latencies"), []string{
			"  Worst case of Exec\n", " ms, the largest of 30000 samples; one in 10⁵ above ", "the largest of 1800 samples; no bound, by the test of exceedances: ",
			"no bound, by the test of drift: ", finding.WorstLegend,
		}, nil},
		"few samples": {reportOf("sample"), nil, []string{"Worst case"}},
		// Bounds stay if rarer values have none. The reason follows them.
		"rarer values": {reporttest.PartlyBounded(), []string{
			"; rarer values: no bound, by the test of tail weight: " + reporttest.RarerRefused + "; take more samples (at least 60000 samples)\n",
		}, nil},
		// The note is the second line, and no word of speed stands beside a ratio.
		"emulated": {single(emulated), []string{
			"\n" + note, `"emulated" stands in the place of a verdict`, "of speed: see the note on the emulated CPU at the top.", "×, more",
		}, []string{"× slower", "× faster", "×, slower", "×, faster", "missed\n", "costs least:", "too noisy", "No difference between targets is shown", "The run has no comparisons"}},
		"asked for": {report.New([]result.Run{emulated}, analysis.Options{EmulatedVerdicts: true}), []string{"×, slower", note}, nil},
	} {
		got := writtenReport(t, c.report, text.Options{Width: 1000})
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the report lacks %q:\n%s", name, want, got)
			}
		}
		for _, phrase := range c.not {
			if strings.Contains(got, phrase) {
				t.Errorf("%s: the report has %q", name, phrase)
			}
		}
		if second := strings.SplitN(got, "\n", 3)[1]; strings.HasPrefix(second, note) != (name == "emulated" || name == "asked for") {
			t.Errorf("%s: the second line is %q", name, second)
		}
	}
}

// TestIntervalOfAnotherPart: the cost in a part has no interval, so the typical cost stands before its own interval.
func TestIntervalOfAnotherPart(t *testing.T) {
	run := reporttest.Small()
	second := run
	second.ID = "second"
	r := report.New([]result.Run{run, second}, analysis.Options{})
	m := &r.Benchmarks()[0].Metrics[0]
	k := m.Rows[1].Cells[0].Comparison
	k.Verdict, k.By, k.Parts = stats.Slower, stats.LowestQuarter, []stats.PartDifference{{Part: stats.LowestQuarter, Ratio: 1.75}}
	k.CI = &stats.Interval{Lo: 78.8, Hi: 112}
	out := writtenReport(t, r, text.Options{Width: 200})
	_, cell, _ := strings.Cut(out, "1.75 ×, slower")
	for _, line := range []string{string(stats.LowestQuarter), "typical " + quantity.Cost(k.Ratio, m.Metric), "78.8 to 112"} {
		if _, cell, _ = strings.Cut(cell, "\n"); !strings.HasPrefix(strings.TrimSpace(cell), line) {
			t.Errorf("the cell has no line %q:\n%s", line, out)
		}
	}
}
