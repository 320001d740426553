package html_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

// The curve has a fitted line for each target, a mark at the only knee, and both in words.
func TestCurveHasItsTrend(t *testing.T) {
	page := written(t, reporttest.UnderLoad())
	targets := len(reporttest.UnderLoad().Targets)
	if n := strings.Count(page, `class="fit"`); n != targets {
		t.Errorf("%d fitted lines, want one for each of %d targets", n, targets)
	}
	if n := strings.Count(page, `class="knee"`); n != 1 {
		t.Errorf("%d marks of knees, want 1", n)
	}
	for _, want := range []string{"per running container; no knee shown", "per running container; knee at 35 (", "A drift of the host"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
