package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

// A report concludes nothing from names: with other names of benchmarks, metrics and targets it has the same content.
func TestReportKnowsNoNames(t *testing.T) {
	run := reporttest.Engines()
	metrics := map[string]string{}
	for i := range run.Bench {
		b := &run.Bench[i]
		for n := range b.Metrics {
			name := fmt.Sprintf("metric%d-%d", i, n)
			metrics[b.Name+" "+b.Metrics[n].Name] = name
			b.Metrics[n].Name = name
		}
	}
	target := func(name string) string { return "target " + strings.ReplaceAll(name, "/", "|") }
	for i := range run.Trials {
		tr := &run.Trials[i]
		for n := range tr.Samples {
			tr.Samples[n].Metric = metrics[tr.Benchmark+" "+tr.Samples[n].Metric]
		}
		tr.Benchmark, tr.Target = "suite."+tr.Benchmark, target(tr.Target)
	}
	for i := range run.Bench {
		run.Bench[i].Name = "suite." + run.Bench[i].Name
	}
	for i := range run.Targets {
		run.Targets[i].Name = target(run.Targets[i].Name)
	}
	run.Baseline = target(run.Baseline)
	want := benchmark(t, engines(), lifecycle)
	r := model(run)
	got := benchmark(t, r, "suite."+lifecycle)
	if len(got.Metrics) != len(want.Metrics) || len(got.Layers) != len(want.Layers) || len(got.Components) != len(want.Components) {
		t.Fatalf("there are %d metrics, %d layers and %d groups of components, want %d, %d and %d",
			len(got.Metrics), len(got.Layers), len(got.Components), len(want.Metrics), len(want.Layers), len(want.Components))
	}
	for i, l := range want.Layers {
		for n, s := range l.Stacks {
			if stack := got.Layers[i].Stacks[n]; stack.Target != target(s.Target) || len(stack.Parts) != len(s.Parts) || stack.Remainder != s.Remainder {
				t.Errorf("stack %d is %+v, want that of %s with %d parts", n, stack, s.Target, len(s.Parts))
			}
		}
	}
	for i, o := range want.Targets {
		if len(got.Targets[i].Phases) != len(o.Phases) {
			t.Errorf("%s has %d phases, want %d", got.Targets[i].Target, len(got.Targets[i].Phases), len(o.Phases))
		}
	}
	if s := r.Findings.Statements[0]; !strings.Contains(s, " creates and starts a container in ") {
		t.Errorf("the first statement is %q", s)
	}
	if got.Metrics[2].Rows[1].Cells[0].Overhead == nil {
		t.Error("the overhead against a native baseline is missing")
	}
}

// A shown difference can round to a factor of 1.00, which has no direction.
func TestStatementOfAFactorThatRoundsToOne(t *testing.T) {
	run := reporttest.Sample()
	for i := range run.Trials {
		for n := range run.Trials[i].Samples {
			run.Trials[i].Samples[n].Value = 1
			if run.Trials[i].Target != "native" {
				run.Trials[i].Samples[n].Value = 1.0003
			}
		}
	}
	statements := model(run).Findings.Statements
	if len(statements) == 0 || !strings.Contains(statements[0], "1.00 × that of native (") {
		t.Errorf("the statements are %q", statements)
	}
}
