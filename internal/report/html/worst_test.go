package html_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/html"
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

// Bounds stay if rarer values have none. The reason follows them, in a style of its own.
func TestWorstCaseWithoutRarerBounds(t *testing.T) {
	var b bytes.Buffer
	if err := html.Write(&b, reporttest.PartlyBounded()); err != nil {
		t.Fatal(err)
	}
	_, bounds, _ := strings.Cut(b.String(), "<td>one in 10⁵ above ")
	bounds, _, _ = strings.Cut(bounds, "</td>")
	if want := `<div class="reason">rarer values: no bound, by the test of tail weight: ` + reporttest.RarerRefused; !strings.Contains(bounds, want) {
		t.Errorf("the bounds are %q, want %q behind them", bounds, want)
	}
}
