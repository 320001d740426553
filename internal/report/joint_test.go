package report_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// machines is the report of four runs, which tests read and do not change.
var machines = sync.OnceValue(func() report.Report {
	return report.New(reporttest.Machines(), analysis.Options{EmulatedVerdicts: true})
})

// cellsByRun gives the cells of a metric on a target, by run.
func cellsByRun(t *testing.T, j report.Report, benchmark, metric, target string) []analysis.Cell {
	t.Helper()
	for _, s := range j.Suites {
		for _, b := range s.Benchmarks {
			for _, m := range b.Metrics {
				for _, r := range m.Rows {
					if b.Title() == benchmark && m.Name == metric && r.Target == target {
						return r.Cells
					}
				}
			}
		}
	}
	t.Fatalf("there is no %s of %s on %s", metric, benchmark, target)
	return nil
}

func titled(t *testing.T, j report.Report, title string) analysis.Benchmark {
	t.Helper()
	for _, s := range j.Suites {
		for _, b := range s.Benchmarks {
			if b.Title() == title {
				return b
			}
		}
	}
	t.Fatalf("there is no %s", title)
	return analysis.Benchmark{}
}

const (
	unixbench = "performance.syscall.unixbench copies=1"
	stream    = "performance.memory.stream size=64MiB"
)

// A run in a joint report has the ratios of its own report.
func TestJointRatiosEqualThoseOfEachRun(t *testing.T) {
	runs := reporttest.Machines()
	j := machines()
	count := 0
	for i := range j.Runs {
		index := slices.IndexFunc(runs, func(r result.Run) bool { return r.ID == j.Runs[i].ID })
		single := report.New(runs[index:index+1], analysis.Options{EmulatedVerdicts: true})
		b := benchmark(t, single, lifecycle)
		for _, target := range []string{"native", "oci/runc", "oci/crun"} {
			want := cell(t, b, "CreateAndRun", target)
			got := cellsByRun(t, j, lifecycle, "CreateAndRun", target)[i]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s on %s differs from the report of the run (-own +joint):\n%s", target, j.Runs[i].Label, diff)
			}
			if got.Comparison != nil {
				count++
			}
		}
	}
	if count != 8 {
		t.Errorf("%d cells are compared, want two in each of four runs", count)
	}
}

func TestRunsOfEqualHostNamesAreNumbered(t *testing.T) {
	one, second, unnamed, fourth := reporttest.Small(), reporttest.Small(), reporttest.Small(), reporttest.Small()
	one.ID, second.ID, unnamed.ID, fourth.ID = "1", "2", "3", "4"
	second.Host.CPU = "Other CPU"
	unnamed.Host.Hostname = ""
	fourth.Host.Hostname = "a-very-long-name.of.a.machine.example.org"
	j := report.New([]result.Run{one, second, unnamed, fourth}, analysis.Options{})
	var labels []string
	for _, r := range j.Runs {
		labels = append(labels, r.Label)
	}
	if want := []string{"bench1 #1", "bench1 #2", "unnamed", "a-very-long-name.…"}; !slices.Equal(labels, want) || len(j.Machines) != 4 {
		t.Errorf("the labels are %q of %d machines, want %q of 4", labels, len(j.Machines), want)
	}
}

// Absolute values are compared only with AcrossMachines, and then without a verdict.
//
// Invariant absolute-values: Absolute values of different machines are compared only on request.
func TestAbsoluteValuesNeedAcrossMachines(t *testing.T) {
	runs := reporttest.Machines()
	count := func(j report.Report) (n int) {
		for _, s := range j.Suites {
			for _, b := range s.Benchmarks {
				for _, m := range b.Metrics {
					for _, r := range m.Rows {
						for i, c := range r.Cells {
							if c.Across == nil {
								continue
							}
							n++
							if i == 0 || r.Cells[0].Summary == nil {
								t.Errorf("%s %s of run %d is compared", b.Title(), m.Name, i)
							}
						}
					}
				}
			}
		}
		return n
	}
	if n := count(machines()); n != 0 {
		t.Errorf("%d absolute values are compared without AcrossMachines", n)
	}
	j := report.New(runs, analysis.Options{AcrossMachines: true, EmulatedVerdicts: true})
	if n := count(j); n < 50 {
		t.Errorf("%d absolute values are compared", n)
	}
	cells := cellsByRun(t, j, lifecycle, "CreateAndRun", "oci/runc")
	want := stats.CompareUnpaired(valuesOf(cells[0].Points), valuesOf(cells[2].Points), stats.Lower)
	if diff := cmp.Diff(want, *cells[2].Across); diff != "" || want.Ratio < 5 || want.Ratio > 8 {
		t.Errorf("the emulated machine takes %+v of the server's time (-want +got):\n%s", cells[2].Across, diff)
	}
}

func valuesOf(points []analysis.Point) []float64 {
	var values []float64
	for _, p := range points {
		values = append(values, p.Value)
	}
	return values
}

// Runs with different baselines share a baseline that all of them have.
func TestCommonBaseline(t *testing.T) {
	j := machines()
	b := titled(t, j, unixbench)
	if b.Baseline != "oci/runc" || !strings.Contains(b.Note, "no other baseline in common") {
		t.Errorf("the baseline is %q, noted %q", b.Baseline, b.Note)
	}
	for _, run := range b.Sections {
		if run != nil && run.Baseline != "oci/runc" {
			t.Errorf("a run has the baseline %s", run.Baseline)
		}
	}
	if c := cellsByRun(t, j, unixbench, "LoopsPerSecond", "native"); c[0].Summary != nil || c[0].Lack != "failed" || c[2].Summary == nil || c[2].Comparison == nil {
		t.Errorf("native is %+v and %+v", c[0], c[2])
	}
	if b := titled(t, j, lifecycle); b.Baseline != "native" || b.Note != "" {
		t.Errorf("the baseline of the lifecycle is %q, noted %q", b.Baseline, b.Note)
	}
}

// Runs without a common target are shown with a note.
func TestNoCommonBaseline(t *testing.T) {
	one, second := reporttest.Small(), reporttest.Small()
	second.ID, second.Baseline = "other", "oci/crun"
	second.Host.Hostname = "other"
	second.Targets = slices.Clone(second.Targets)
	second.Targets[0].Name, second.Targets[1].Name = "oci/crun", "oci/youki"
	second.Trials = slices.Clone(second.Trials)
	for i := range second.Trials {
		second.Trials[i].Target = map[string]string{"native": "oci/crun", "oci/runc": "oci/youki"}[second.Trials[i].Target]
	}
	j := report.New([]result.Run{one, second}, analysis.Options{})
	b := titled(t, j, lifecycle)
	if b.Baseline != "" || !strings.Contains(b.Note, "must not be compared: native on bench1; oci/crun on other") {
		t.Errorf("the baseline is %q, noted %q", b.Baseline, b.Note)
	}
	if f := j.Findings; f.Comparisons != "" || f.Statements != nil {
		t.Errorf("the findings are %+v", f)
	}
	if c := cellsByRun(t, j, lifecycle, "Create", "oci/youki"); c[0].Lack != "not run" || c[0].Reason != "the run has no such target" || c[1].Comparison == nil {
		t.Errorf("youki is %+v and %+v", c[0], c[1])
	}
}

// A statement about many runs has the smallest and the largest ratio.
func TestStatementOfManyRuns(t *testing.T) {
	var runs []result.Run
	for i := range report.MostRuns {
		run := reporttest.Small()
		run.ID = fmt.Sprint(i)
		runs = append(runs, run)
	}
	j := report.New(runs, analysis.Options{})
	if len(j.Findings.Statements) != 1 || !strings.Contains(j.Findings.Statements[0], "in 12 runs (") || len(j.Machines) != 1 {
		t.Errorf("the statements are %q of %d machines", j.Findings.Statements, len(j.Machines))
	}
}

// Metrics of different units are different metrics, even with the same name.
func TestMetricsOfDifferentUnitsAreSeparate(t *testing.T) {
	one, second := reporttest.Small(), reporttest.Small()
	second.ID = "other"
	second.Bench = slices.Clone(second.Bench)
	second.Bench[0].Metrics = slices.Clone(second.Bench[0].Metrics)
	second.Bench[0].Metrics[0].Unit = result.Score
	b := titled(t, report.New([]result.Run{one, second}, analysis.Options{}), lifecycle)
	creates := 0
	for _, m := range b.Metrics {
		if m.Name != "Create" {
			continue
		}
		creates++
		for _, r := range m.Rows {
			if (r.Cells[0].Summary == nil) == (r.Cells[1].Summary == nil) {
				t.Errorf("Create in %s is in both runs", m.Unit)
			}
		}
	}
	if creates != 2 {
		t.Errorf("there are %d metrics called Create, want 2", creates)
	}
}
