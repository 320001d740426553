package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// A derived metric adds no evidence: it has values, and neither a ratio nor a part in families, verdicts and findings.
func TestDerivedMetricsAreNoEvidence(t *testing.T) {
	run := reporttest.Sample()
	r := model(run)
	b := benchmark(t, r, "performance.syscall.unixbench")
	index, loops := cell(t, b, "Index", runsc), cell(t, b, "LoopsPerSecond", runsc)
	if index.Summary == nil || index.Comparison != nil || index.Overhead != nil || loops.Comparison == nil {
		t.Errorf("Index is %+v beside %+v", index, loops)
	}
	for _, s := range r.Findings.Statements {
		if strings.Contains(s, "unixbench") && strings.Contains(s, "metrics") {
			t.Errorf("a finding counts the derived metric: %s", s)
		}
	}
	families, comparisons := r.Families()
	spot := slices.IndexFunc(run.Bench, func(b result.Benchmark) bool { return b.Name == "performance.syscall.unixbench" })
	run.Bench[spot].Metrics = run.Bench[spot].Metrics[:1]
	rest := model(run)
	if f, c := rest.Families(); f != families || c != comparisons {
		t.Errorf("there are %d families with %d comparisons, and %d with %d without the derived metric", families, comparisons, f, c)
	}
	if r.Findings.Comparisons != rest.Findings.Comparisons {
		t.Errorf("the derived metric changes %q to %q", rest.Findings.Comparisons, r.Findings.Comparisons)
	}
}
