package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// bounded is the small run with a bound on the first metric.
func bounded(limit float64) result.Run {
	run := reporttest.Small()
	run.Bench[0].Metrics[0].Bound = result.Bound{Most: limit, Broken: "does not hold its limit"}
	return run
}

// A bound needs no baseline, and one trial can break it.
func TestBreaches(t *testing.T) {
	if found := model(reporttest.Sample()).Findings.Breaches; found != nil {
		t.Errorf("without bounds %v are broken", found)
	}
	m := model(bounded(0.01)) // native takes 0.2 ms, runc 17
	if len(m.Findings.Breaches) != 1 {
		t.Fatalf("broken are %v", m.Findings.Breaches)
	}
	b := m.Findings.Breaches[0]
	want := lifecycle + ": oci/runc does not hold its limit: Create is 17."
	if !strings.HasPrefix(b, want) || !strings.HasSuffix(b, " ms, above the bound of 10.0 ms (median of 10 trials).") {
		t.Errorf("the breach is %q, want %q …", b, want)
	}
	if list := benchmark(t, m, lifecycle).Breaches; len(list) != 1 || finding.Breach(&list[0]) != b {
		t.Errorf("the benchmark has the breaches %+v", list)
	}

	run := bounded(0.01)
	run.Trials = slices.DeleteFunc(run.Trials, func(tr result.Trial) bool { return tr.Target != "oci/runc" || tr.Warmup || tr.Block > 0 })
	m = model(run)
	if len(m.Findings.Breaches) != 1 || !strings.Contains(m.Findings.Breaches[0], "(one trial; too few trials for an interval: repeat it)") || m.Findings.Comparisons != "" {
		t.Errorf("of one trial without a baseline: %v", m.Findings)
	}
	create := cell(t, benchmark(t, model(reporttest.Small()), lifecycle), "Create", "oci/runc").Summary
	limit := (create.CI.Lo + create.Median) / 2
	if found := model(bounded(limit)).Findings.Breaches; len(found) != 1 || !strings.Contains(found[0], "its interval includes the bound") {
		t.Errorf("of a bound within the interval: %v", found)
	}
	for name, limit := range map[string]float64{"far": 1, "at the median": create.Median} {
		if m := model(bounded(limit)); len(m.Findings.Breaches) > 0 {
			t.Errorf("%s: %v is broken", name, m.Findings.Breaches)
		}
	}
}

func TestEqualConditionsAreListedOnce(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		tr := &run.Trials[i]
		tr.Conditions = map[string]string{"cpus": "2-3", "path": "bridge of " + tr.Target}
		if tr.Target == "native" {
			tr.Conditions["cache"] = "cold"
		}
		if tr.Warmup {
			tr.Conditions["path"] = "not yet"
		}
		if tr.Block == 4 {
			tr.Conditions["mtu"] = "9000"
		} else {
			tr.Conditions["mtu"] = "1500"
		}
		if tr.Block > 0 {
			tr.Conditions["late"] = "x"
		}
	}
	var got []string
	for _, c := range benchmark(t, model(run), lifecycle).Conditions {
		got = append(got, c.String())
	}
	want := []string{
		"cache cold (native)", "cpus 2-3", "late x (native, oci/runc)", "mtu 1500 (native, oci/runc), 9000 (native, oci/runc)",
		"path bridge of native (native), bridge of oci/runc (oci/runc)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// Reports of several runs have results in words among the conditions, which do not differ.
func TestStatements(t *testing.T) {
	run := reporttest.Stated()
	second := reporttest.Stated()
	second.ID, second.Bench[0].Statements = "another", nil
	joint := report.New([]result.Run{run, second}, analysis.Options{})
	for _, c := range joint.Benchmarks()[0].Conditions {
		if c.Differs {
			t.Errorf("the condition %s differs: %q", c.Name(), c.Values)
		}
	}
}

// A benchmark that every target skips has no section. A benchmark with one other trial has.
func TestUnmeasuredBenchmarksAreListed(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		tr := &run.Trials[i]
		tr.Status, tr.Reason, tr.Samples = result.Skipped, "no "+tr.Target, nil
	}
	m := model(run)
	if u := m.Runs[0].Unmeasured; len(m.Suites) > 0 || len(u) != 1 || len(u[0].Reasons) != 2 || !slices.Equal(u[0].Reasons[1].Targets, []string{"oci/runc"}) {
		t.Errorf("with a reason for each target unmeasured is %+v", u)
	}
	if diff := cmp.Diff([]string{lifecycle + " on native (no native)", lifecycle + " on oci/runc (no oci/runc)"}, m.Findings.NotMeasured); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	run.Trials[3].Status = result.Failed
	if m = model(run); len(m.Suites) != 1 || len(m.Runs[0].Unmeasured) > 0 {
		t.Errorf("a benchmark with a failed trial is unmeasured: %+v", m.Runs[0].Unmeasured)
	}
}
