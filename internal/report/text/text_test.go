package text_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/text"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// single is the report of one run, with the same bootstraps whatever the seed of the run.
func single(run result.Run) report.Report {
	run.Seed = 1
	return report.New([]result.Run{run}, report.Options{})
}

func written(t *testing.T, run result.Run, opts text.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.Write(&b, single(run), opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, c := range map[string]struct {
		run  result.Run
		opts text.Options
	}{
		"sample-100": {reporttest.Sample(), text.Options{Width: 100}},
		"sample-80":  {reporttest.Sample(), text.Options{Width: 80}},
		"engines":    {reporttest.Engines(), text.Options{Width: 100}},
		"suite":      {reporttest.Suite(), text.Options{Width: 80}},
		"stated":     {reporttest.Stated(), text.Options{Width: 60}},
		"worded":     {reporttest.Worded(), text.Options{Width: 60}},
		"small":      {reporttest.Small(), text.Options{}},
		"color":      {reporttest.Small(), text.Options{Color: true}},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, written(t, c.run, c.opts))
		})
	}
}

func writtenJoint(t *testing.T, j report.Report, opts text.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.Write(&b, j, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJointGolden(t *testing.T) {
	runs := reporttest.Machines()
	for name, c := range map[string]struct {
		joint report.Report
		width int
	}{
		"machines-80":  {report.New(runs[:3], report.Options{}), 80},
		"machines-100": {report.New(runs, report.Options{AcrossMachines: true, EmulatedVerdicts: true}), 100},
		"one-machine":  {report.New([]result.Run{runs[0], runs[3]}, report.Options{}), 80},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, writtenJoint(t, c.joint, text.Options{Width: c.width})) })
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
	models := map[string]report.Report{}
	for name, run := range map[string]result.Run{"sample": reporttest.Sample(), "engines": reporttest.Engines(), "suite": reporttest.Suite()} {
		models[name] = single(run)
	}
	joint := report.New(reporttest.Machines(), report.Options{AcrossMachines: true})
	for _, width := range []int{60, 80, 100, 120, 160} {
		for name, m := range models {
			var b bytes.Buffer
			if err := text.Write(&b, m, text.Options{Width: width}); err != nil {
				t.Fatal(err)
			}
			fits(t, name, b.String(), width)
		}
		fits(t, "machines", writtenJoint(t, joint, text.Options{Width: width}), width)
	}
}

func fits(t *testing.T, name, report string, width int) {
	t.Helper()
	for _, line := range strings.Split(report, "\n") {
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%s: at a width of %d a line has %d columns: %s", name, width, n, line)
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
	t.Errorf("there is no table of phases:\n%s", got)
}

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
	for _, r := range written(t, run, text.Options{}) + writtenJoint(t, report.New([]result.Run{one, run}, report.Options{AcrossMachines: true}), text.Options{}) {
		if r < ' ' && r != '\n' || 0x7f <= r && r < 0xa0 {
			t.Fatalf("the report has the control character %U", r)
		}
	}
}

func TestOddRuns(t *testing.T) {
	for name, run := range reporttest.Odd() {
		t.Run(name, func(t *testing.T) {
			got := written(t, run, text.Options{})
			if !strings.Contains(got, "Findings") || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("the report of it is\n%s", got)
			}
		})
	}
}

func TestOddRunsBesideAnother(t *testing.T) {
	small := reporttest.Small()
	for name, run := range reporttest.Odd() {
		if strings.Contains(name, "layers") {
			continue // a joint report has no layers
		}
		run.ID = "odd"
		got := writtenJoint(t, report.New([]result.Run{run, small}, report.Options{AcrossMachines: true}), text.Options{})
		if !strings.Contains(got, "Findings") || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
			t.Errorf("%s: the report is\n%s", name, got)
		}
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteReturnsTheErrorOfTheWriter(t *testing.T) {
	if err := text.Write(broken{}, report.Report{}, text.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
	if err := text.Write(broken{}, report.New([]result.Run{{ID: "a"}, {ID: "b"}}, report.Options{}), text.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("WriteJoint = %v, want %v", err, errBroken)
	}
}

func TestTimelines(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		if run.Trials[i].Status == result.OK {
			run.Trials[i].Timelines = []result.Timeline{{
				Group: "Memory \x1b[1m", Name: "used", Unit: result.Bytes, At: []time.Duration{0, time.Second, 2 * time.Second}, Values: []float64{1 << 20, 5 << 20, 1 << 20},
			}}
		}
	}
	got := written(t, run, text.Options{})
	for _, want := range []string{" over time: mean, smallest to largest value\n", "3.00 MiB", "1.00 to 5.00 MiB", "Timelines are of the trial of median length on each target"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report does not contain %q", want)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Error("a control character of a name reaches the terminal")
	}
}

// A series with a trend has its slope for each target, and a knee on one of them.
func TestTrend(t *testing.T) {
	page := written(t, reporttest.UnderLoad(), text.Options{})
	for _, want := range []string{"  Trend of StartLatency per running container\n", " µs; no knee shown\n", "; knee at 35 (", report.TrendLegend[:40]} {
		if !strings.Contains(page, want) {
			t.Errorf("the report lacks %q:\n%s", want, page)
		}
	}
}

// The note on an emulated CPU is the second line of the report, and no word of speed stands beside a ratio.
func TestEmulated(t *testing.T) {
	run := reporttest.Sample()
	run.Host.Arch, run.Host.CPU, run.Host.Virtual = "amd64", "QEMU TCG CPU version 2.5+", "qemu (QEMU Standard PC)"
	got := written(t, run, text.Options{Width: 160})
	lines := strings.Split(got, "\n")
	if !strings.HasPrefix(lines[1], "! The CPU of this machine is emulated (bench1: emulated by qemu (QEMU Standard PC)). ") {
		t.Errorf("the second line is %q", lines[1])
	}
	for _, not := range []string{"× slower", "× faster", "missed\n", "costs least:", "too noisy", "No difference between targets is shown", "The run has no comparisons"} {
		if strings.Contains(got, not) {
			t.Errorf("the report has %q", not)
		}
	}
	for _, want := range []string{
		"ratio 2", `"emulated" stands in the place of a verdict`, "of speed: see the note on the emulated CPU at the top.", "× more",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report has no %q:\n%s", want, got)
		}
	}
	var b bytes.Buffer
	if err := text.Write(&b, report.New([]result.Run{run}, report.Options{EmulatedVerdicts: true}), text.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "× slower") || !strings.Contains(got, "! The CPU of this machine is emulated") {
		t.Errorf("with EmulatedVerdicts the report is\n%s", got)
	}
}
