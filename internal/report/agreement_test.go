package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// doubled is the small run with a metric that measures its first metric again, on oci/runc by some factor, and with the parts of the
// difference.
func doubled(factor float64) result.Run {
	run := reporttest.Small()
	first := run.Bench[0].Metrics[0]
	duplicate := result.Metric{Name: "Again", Unit: first.Unit, Better: first.Better, Help: "again", Agreement: result.Agreement{With: first.Name, Tolerance: 0.15, Rest: "Rest"}}
	run.Bench[0].Metrics = append(run.Bench[0].Metrics, duplicate)
	for _, part := range []string{"small", "lost", "found"} {
		run.Bench[0].Metrics = append(run.Bench[0].Metrics, result.Metric{
			Name: "Rest" + part, Unit: first.Unit, Better: first.Better, Help: part, Optional: true, Group: "Rest", Component: part,
		})
	}
	for i := range run.Trials {
		t := &run.Trials[i]
		for _, v := range t.Values(first.Name) {
			scale := 1.1
			if t.Target == "oci/runc" {
				scale = factor
			}
			rest := v * (scale - 1)
			t.Samples = append(t.Samples, result.Sample{Metric: "Again", Value: v * scale}, result.Sample{Metric: "Restsmall", Value: rest * 0.01},
				result.Sample{Metric: "Restlost", Value: rest * -0.21}, result.Sample{Metric: "Restfound", Value: rest * 1.2})
		}
	}
	return run
}

// Two measurements of a quantity that differ by more than the tolerance are a warning with the parts, from the largest. A difference
// within the tolerance, as on native, is none.
func TestDisagreements(t *testing.T) {
	items := func(run result.Run) []string {
		var list []string
		for _, g := range model(run).Warnings[0] {
			if strings.HasPrefix(g.Title, "Two measurements") {
				list = append(list, g.Items...)
			}
		}
		return list
	}
	got := items(doubled(2))
	if len(got) != 1 {
		t.Fatalf("warnings are %q, want one", got)
	}
	for _, want := range []string{lifecycle + " on oci/runc: Again is 3", ", and Create is 17.", "; the difference of 17.", " is mostly found 2", ", lost −3"} {
		if !strings.Contains(got[0], want) {
			t.Errorf("the warning %q lacks %q", got[0], want)
		}
	}
	if strings.Contains(got[0], "small") {
		t.Errorf("the warning has a part of 1 %%: %q", got[0])
	}
	if list := items(doubled(0.5)); len(list) != 1 || !strings.Contains(list[0], "the difference of −8") {
		t.Errorf("with half the value warnings are %q", list)
	}
	const noise = "noise of the host: compare Create instead"
	if list := items(doubled(-0.1)); len(list) != 1 || !strings.Contains(list[0], noise) || strings.Contains(got[0], noise) {
		t.Errorf("with a value below zero warnings are %q", list)
	}
	run := doubled(2)
	run.Bench[0].Metrics = slices.DeleteFunc(run.Bench[0].Metrics, func(m result.Metric) bool { return m.Group == "Rest" })
	if bare := items(run); len(bare) != 1 || strings.Contains(bare[0], "mostly") {
		t.Errorf("without parts warnings are %q", bare)
	}
	if list := items(doubled(1.15)); len(list) > 0 {
		t.Errorf("within the tolerance warnings are %q", list)
	}
}
