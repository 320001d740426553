package html_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

// The page has a row for each target, with its largest sample and the bounds or the failed test.
func TestWorstCaseOnThePage(t *testing.T) {
	page := written(t, reporttest.Latencies())
	for _, want := range []string{
		"<caption>Worst case of Exec</caption>", "the largest of 30000 samples</td><td>one in 10⁵ above ",
		`<td class="reason">no bound, by the test of drift: `, "peaks over threshold",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(written(t, reporttest.Sample()), "Worst case") {
		t.Error("a run with few samples has a worst case")
	}
}
