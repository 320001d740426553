package report_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// machines is the report of four runs, which tests read and do not change.
var machines = sync.OnceValue(func() report.Report {
	return report.New(reporttest.Machines(), report.Options{EmulatedVerdicts: true})
})

// cellsByRun gives the cells of a metric on a target, by run.
func cellsByRun(t *testing.T, j report.Report, benchmark, metric, target string) []report.Cell {
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

func titled(t *testing.T, j report.Report, title string) report.Benchmark {
	t.Helper()
	for _, s := range j.Suites {
		for _, b := range s.Benchmarks {
			if b.Title() == title {
				return b
			}
		}
	}
	t.Fatalf("there is no %s", title)
	return report.Benchmark{}
}

const (
	unixbench = "performance.syscall.unixbench copies=1"
	stream    = "performance.memory.stream size=64MiB"
)

func TestMachinesAreValidRuns(t *testing.T) {
	for _, run := range reporttest.Machines() {
		if err := run.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// A run in a joint report has the ratios of its own report.
func TestJointRatiosEqualThoseOfEachRun(t *testing.T) {
	runs := reporttest.Machines()
	j := machines()
	compared := 0
	for i := range j.Runs {
		at := slices.IndexFunc(runs, func(r result.Run) bool { return r.ID == j.Runs[i].ID })
		own := report.New(runs[at:at+1], report.Options{EmulatedVerdicts: true})
		b := benchmark(t, own, lifecycle)
		for _, target := range []string{"native", "oci/runc", "oci/crun"} {
			want := cell(t, b, "CreateAndRun", target)
			got := cellsByRun(t, j, lifecycle, "CreateAndRun", target)[i]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s on %s differs from the report of the run (-own +joint):\n%s", target, j.Runs[i].Label, diff)
			}
			if got.Comparison != nil {
				compared++
			}
		}
	}
	if compared != 8 {
		t.Errorf("%d cells are compared, want two in each of four runs", compared)
	}
}

func TestRunsAreSortedByMachine(t *testing.T) {
	j := machines()
	var labels, machines []string
	for _, r := range j.Runs {
		labels = append(labels, fmt.Sprint(r.Label, " ", r.Machine))
	}
	for _, m := range j.Machines {
		machines = append(machines, fmt.Sprint(m.Name, " ", m.Nature, " ", m.Runs))
	}
	if want := []string{"server #1 0", "server #2 0", "lab-v2 1", "raspberrypi 2"}; !slices.Equal(labels, want) {
		t.Errorf("the runs are %q, want %q", labels, want)
	}
	if want := []string{"server no hypervisor found [0 1]", "lab-v2 emulated by qemu (QEMU Standard PC) [2]", "raspberrypi no hypervisor found [3]"}; !slices.Equal(machines, want) {
		t.Errorf("the machines are %q, want %q", machines, want)
	}
}

func TestRunsOfEqualHostNamesAreNumbered(t *testing.T) {
	one, other, unnamed, long := reporttest.Small(), reporttest.Small(), reporttest.Small(), reporttest.Small()
	one.ID, other.ID, unnamed.ID, long.ID = "1", "2", "3", "4"
	other.Host.CPU = "Other CPU"
	unnamed.Host.Hostname = ""
	long.Host.Hostname = "a-very-long-name.of.a.machine.example.org"
	j := report.New([]result.Run{one, other, unnamed, long}, report.Options{})
	var labels []string
	for _, r := range j.Runs {
		labels = append(labels, r.Label)
	}
	if want := []string{"bench1 #1", "bench1 #2", "unnamed", "a-very-long-name.…"}; !slices.Equal(labels, want) || len(j.Machines) != 4 {
		t.Errorf("the labels are %q of %d machines, want %q of 4", labels, len(j.Machines), want)
	}
}

// Absolute values are compared only with AcrossMachines, and then without a verdict.
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
	j := report.New(runs, report.Options{AcrossMachines: true, EmulatedVerdicts: true})
	if n := count(j); n < 50 {
		t.Errorf("%d absolute values are compared", n)
	}
	cells := cellsByRun(t, j, lifecycle, "CreateAndRun", "oci/runc")
	want := stats.CompareUnpaired(valuesOf(cells[0].Points), valuesOf(cells[2].Points), stats.Lower)
	if diff := cmp.Diff(want, *cells[2].Across); diff != "" || want.Ratio < 5 || want.Ratio > 8 {
		t.Errorf("the emulated machine takes %+v of the server's time (-want +got):\n%s", cells[2].Across, diff)
	}
}

func valuesOf(points []report.Point) []float64 {
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
	one, other := reporttest.Small(), reporttest.Small()
	other.ID, other.Baseline = "other", "oci/crun"
	other.Host.Hostname = "other"
	other.Targets = slices.Clone(other.Targets)
	other.Targets[0].Name, other.Targets[1].Name = "oci/crun", "oci/youki"
	other.Trials = slices.Clone(other.Trials)
	for i := range other.Trials {
		other.Trials[i].Target = map[string]string{"native": "oci/crun", "oci/runc": "oci/youki"}[other.Trials[i].Target]
	}
	j := report.New([]result.Run{one, other}, report.Options{})
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

func TestJointFindings(t *testing.T) {
	f := report.New(reporttest.Machines()[:3], report.Options{EmulatedVerdicts: true}).Findings
	if len(f.Breaches) != 3 || !strings.HasPrefix(f.Breaches[1], "operations.container.lifecycle: oci/runc does not hold its time limit on lab-v2 (") {
		t.Errorf("broken are %q", f.Breaches)
	}
	if len(f.Opposite) != 1 || !strings.HasPrefix(f.Opposite[0], "oci/crun: Triad is 1.") || !strings.Contains(f.Opposite[0], " × faster than native on server (") ||
		!strings.Contains(f.Opposite[0], ", but 1.") || !strings.Contains(f.Opposite[0], " × slower on lab-v2 (") || !strings.HasSuffix(f.Opposite[0], "and 3 more metrics of "+stream+").") {
		t.Errorf("opposite are %q", f.Opposite)
	}
	// The differences of runc and crun hold over all comparisons of a run. So they come before the larger ones of gVisor, which hold in their
	// metric alone.
	at := slices.IndexFunc(f.Statements, func(s string) bool { return strings.HasPrefix(s, "oci/runsc@platform=systrap: CreateAndRun is 11") })
	if at < 1 || !strings.HasPrefix(f.Statements[0], "oci/runc: CreateAndRun is 2") ||
		!strings.Contains(f.Statements[at], " × slower than native on server (") || !strings.Contains(f.Statements[at], " × slower on lab-v2 (") || strings.Contains(f.Statements[at], "raspberrypi") {
		t.Errorf("the statements are %q", f.Statements)
	}
	if slices.ContainsFunc(f.Statements, func(s string) bool { return strings.Contains(s, stream) && strings.HasPrefix(s, "oci/crun") }) {
		t.Errorf("an opposite difference is a statement too: %q", f.Statements)
	}
	if !strings.Contains(f.Comparisons, " 4 opposite ones") {
		t.Errorf("the comparisons are %q", f.Comparisons)
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
	j := report.New(runs, report.Options{})
	if len(j.Findings.Statements) != 1 || !strings.Contains(j.Findings.Statements[0], "in 12 runs (") || len(j.Machines) != 1 {
		t.Errorf("the statements are %q of %d machines", j.Findings.Statements, len(j.Machines))
	}
}

func TestDifferencesBetweenRuns(t *testing.T) {
	j := machines()
	differs := map[string]bool{}
	values := map[string][]string{}
	for _, f := range slices.Concat(j.Facts, j.Versions) {
		differs[f.Name], values[f.Name] = f.Differs, f.Values
	}
	for name, want := range map[string]bool{
		"Name": false, "Machine": true, "Architecture": true, "CPU": true, "Kernel": true, "Cgroup": true, "Memory": true, "Plan": false, "System": false,
		"oci/runc": true, "oci/crun": false, "oci/runsc@platform=systrap": true,
	} {
		if got, has := differs[name]; got != want || !has {
			t.Errorf("%s differs: %v, want %v; it is %q", name, got, want, values[name])
		}
	}
	if want := []string{"hybrid", "v2", "v2", "v2"}; !slices.Equal(values["Cgroup"], want) {
		t.Errorf("the cgroup modes are %q, want %q", values["Cgroup"], want)
	}
}

func TestCoverage(t *testing.T) {
	j := machines()
	got := map[string][]string{}
	for _, c := range j.Coverage {
		var cells []string
		for i := range c.Cells {
			cells = append(cells, c.Cells[i].String())
		}
		got[c.Title()] = cells
		if !c.Differs {
			t.Errorf("%s is the same in all runs: %q", c.Title(), cells)
		}
	}
	want := map[string][]string{
		lifecycle:                                {"4 targets, 10 blocks", "4 targets, 10 blocks", "4 targets, 10 blocks", "3 targets, 10 blocks"},
		"operations.container.pause repeats=5":   {"3 targets, 10 blocks; not native", "3 targets, 10 blocks; not native", "skipped: pause: this kernel has no freezer", "not in this run"},
		unixbench:                                {"3 targets, 10 blocks; not native", "4 targets, 10 blocks", "4 targets, 10 blocks", "not in this run"},
		"performance.syscall.unixbench copies=4": {"not in this run", "not in this run", "not in this run", "3 targets, 10 blocks"},
		stream:                                   {"4 targets, 10 blocks", "4 targets, 10 blocks", "4 targets, 10 blocks", "3 targets, 10 blocks"},
		"performance.disk.blog time=5s":          {"not in this run", "not in this run", "not in this run", "3 targets, 5 blocks"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the coverage differs (-want +got):\n%s", diff)
	}
}

// Different conditions make ratios less comparable.
func TestJointConditions(t *testing.T) {
	b := titled(t, machines(), stream)
	want := []report.Fact{{Name: "cpus", Values: []string{"0-1 (oci/crun)", "not recorded", "0-1 (oci/crun)", "not recorded"}, Differs: true}}
	if diff := cmp.Diff(want, b.Conditions); diff != "" {
		t.Errorf("the conditions differ (-want +got):\n%s", diff)
	}
}

// Metrics of different units are different metrics, even with the same name.
func TestMetricsOfDifferentUnitsAreSeparate(t *testing.T) {
	one, other := reporttest.Small(), reporttest.Small()
	other.ID = "other"
	other.Bench = slices.Clone(other.Bench)
	other.Bench[0].Metrics = slices.Clone(other.Bench[0].Metrics)
	other.Bench[0].Metrics[0].Unit = result.Score
	b := titled(t, report.New([]result.Run{one, other}, report.Options{}), lifecycle)
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

func TestEmulatedMachinesHaveAWarning(t *testing.T) {
	runs := reporttest.Machines()
	for i, want := range []bool{false, true, false} {
		runs[i].Trials = nil
		r := report.New(runs[i:i+1], report.Options{}).Runs[0]
		if got := slices.ContainsFunc(r.Warnings, func(g report.WarningGroup) bool { return g.Title == "The CPU is emulated" }); got != want {
			t.Errorf("%s: warned of emulation: %v, want %v", r.Host.Hostname, got, want)
		}
	}
}
