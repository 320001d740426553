package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// flakyRun has a target whose calls fail now and then.
func flakyRun() result.Run {
	run := result.Run{ID: "flaky", Targets: []result.Target{{Name: "native"}, {Name: "oci/crun", FailedTries: 1}}}
	for i := range 40 {
		trial := result.Trial{Seq: i + 1, Warmup: i < 4, Status: result.OK, Cell: result.Cell{Benchmark: "a.b.c", Target: "oci/crun"}}
		switch {
		case i%13 == 0 && i < 39:
			trial.Status, trial.FailedCalls = result.Failed, map[string]int{"create": 1, "host create": 1}
		case i == 30:
			trial.Status, trial.FailedCalls, trial.Phases = result.Timeout, map[string]int{"start": 1}, []result.Phase{{Name: "create"}}
		default:
			trial.Phases = []result.Phase{{Name: "create"}, {Name: "create/Sandbox"}, {Name: "start"}}
		}
		run.Trials = append(run.Trials, trial)
	}
	return run
}

func TestFailedCallsAreFindings(t *testing.T) {
	run := flakyRun()
	r := report.New([]result.Run{run}, analysis.Options{})
	want := []analysis.FailedCalls{
		{Target: "oci/crun", Call: analysis.FirstContainer, Failed: 1, Total: 2},
		{Target: "oci/crun", Call: "create", Failed: 3, Total: 40},
		{Target: "oci/crun", Call: "start", Failed: 1, Total: 37},
	}
	if diff := cmp.Diff(want, r.Runs[0].FailedCalls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"oci/crun: 1 of 2 first containers failed, 3 of 40 creates failed and 1 of 37 starts failed."}, r.Findings.Failures); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	second := flakyRun()
	second.ID, second.Host.Hostname = "other", "board"
	joint := report.New([]result.Run{run, second}, analysis.Options{})
	if n := len(joint.Findings.Failures); n != 2 || joint.Findings.Failures[1] != "oci/crun on board: 1 of 2 first containers failed, 3 of 40 creates failed and 1 of 37 starts failed." {
		t.Errorf("the failures of two runs are %q", joint.Findings.Failures)
	}
}
