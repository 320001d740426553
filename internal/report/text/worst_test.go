package text_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/text"
)

// Each target has its largest sample, and bounds or the failed test.
func TestWorstCase(t *testing.T) {
	page := written(t, reporttest.Latencies(), text.Options{Width: 1000})
	for _, want := range []string{
		"  Worst case of Exec\n", " ms, the largest of 30000 samples; one in 10⁵ above ", "the largest of 1800 samples; no bound, by the test of exceedances: ",
		"no bound, by the test of drift: ", report.WorstLegend,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the report lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(written(t, reporttest.Sample(), text.Options{}), "Worst case") {
		t.Error("a run with few samples has a worst case")
	}
}

// Bounds stay if rarer values have none. The reason follows them.
func TestWorstCaseWithoutRarerBounds(t *testing.T) {
	var b bytes.Buffer
	if err := text.Write(&b, reporttest.PartlyBounded(), text.Options{Width: 1000}); err != nil {
		t.Fatal(err)
	}
	_, bounds, _ := strings.Cut(b.String(), "; one in 10⁵ above ")
	line, _, _ := strings.Cut(bounds, "\n")
	if want := "; rarer values: no bound, by the test of tail weight: " + reporttest.RarerRefused + "; take more samples (at least 60000 samples)"; !strings.HasSuffix(line, want) {
		t.Errorf("the line is %q, want %q at its end", line, want)
	}
}
