package sides_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func TestChange(t *testing.T) {
	for ratio, want := range map[float64]string{
		1: "0.0 %", 1.048: "+4.8 %", 0.952: "−4.8 %", 0.99999: "0.0 %", 2.31: "2.31 ×", 0.4: "0.400 ×", math.NaN(): "–",
	} {
		if got := quantity.Change(ratio); got != want {
			t.Errorf("the change of %v is %q, want %q", ratio, got, want)
		}
	}
	for want, ci := range map[string]*stats.Interval{
		"–": nil, "+1.2 to +8.6 %": {Lo: 1.012, Hi: 1.086}, "−1.2 to 0.0 %": {Lo: 0.988, Hi: 1}, "0.900 to 2.20 ×": {Lo: 0.9, Hi: 2.2},
	} {
		if got := quantity.ChangeInterval(ci); got != want {
			t.Errorf("the interval is %q, want %q", got, want)
		}
	}
}

// hostile is a side whose runs have a name and a reason that no format must interpret.
func hostile() sides.Side {
	const text = "<script>|*_`@team https://example.org\x1b[2J]]>"
	return change(same(), func(r *result.Run) {
		r.Name = text
		last := &r.Trials[len(r.Trials)-1]
		r.Bench = append(r.Bench, result.Benchmark{Name: "a.b.c", Metrics: []result.Metric{{Name: "M", Unit: result.Seconds, Better: result.Lower}}})
		failed := *last
		failed.Seq, failed.Benchmark, failed.Status, failed.Samples, failed.Reason = last.Seq+1, "a.b.c", result.Failed, nil, text
		r.Trials = append(r.Trials, failed)
	})
}

// withCell adds a cell a.b.c that has values.
func withCell(s sides.Side) sides.Side {
	return change(s, func(r *result.Run) {
		last := r.Trials[len(r.Trials)-1]
		r.Bench = append(r.Bench, result.Benchmark{Name: "a.b.c", Metrics: []result.Metric{{Name: "M", Unit: result.Seconds, Better: result.Lower}}})
		last.Seq, last.Benchmark, last.Samples = last.Seq+1, "a.b.c", []result.Sample{{Metric: "M", Value: 1}}
		r.Trials = append(r.Trials, last)
	})
}

func TestMarkdownIsPlain(t *testing.T) {
	c := compared(t, withCell(before()), hostile(), sides.Options{Gates: gates(t, "slower:3%")})
	var b bytes.Buffer
	if err := c.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, bad := range []string{"<script", "@team", "https://"} {
		if strings.Contains(text, bad) {
			t.Errorf("the text has %q:\n%s", bad, text)
		}
	}
	for _, want := range []string{
		"### Touchstone: before against after\n\nInconclusive, which is no pass: of 5 gated metrics 1 undecided, 4 not worse by the margin.\n",
		"| inconclusive | a.b.c M on oci/runc | slower:3% |", "side B has no value: failed 1 of 1: &lt;script&gt;\\|\\*",
		"<details><summary>8 metrics without a shown difference</summary>", "<summary>1 benchmark only on one side</summary>", "<summary>10 runs</summary>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

func TestJUnit(t *testing.T) {
	c := compared(t, withCell(before()), change(slow(), func(r *result.Run) { r.Bench[0].Metrics[0].Name = "CreateAndRun" }), sides.Options{Gates: gates(t, "slower:3%", "more:3%", "scalability=slower:3%")})
	var b bytes.Buffer
	if err := c.JUnit(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	// CreateAndRun and Rate of two targets are worse, HostMemory and Leaked are not; M of side A and the gate of nothing are undecided.
	if got.Tests != 10 || got.Failures != 4 || got.Errors != 2 || len(got.Suites) != 3 || got.Suites[0].Name != lifecycle || got.Suites[2].Name != "gates" ||
		got.Suites[2].Cases[0].Error == nil || !strings.Contains(got.Suites[2].Cases[0].Error.Message, "selects no metric") {
		t.Errorf("the suites are %+v", got)
	}
	b.Reset()
	if err := compared(t, withCell(before()), hostile(), sides.Options{Gates: gates(t, "slower:3%")}).JUnit(&b); err != nil || xml.Unmarshal(b.Bytes(), &got) != nil {
		t.Errorf("hostile text breaks the XML: %v\n%s", err, b.String())
	}
}

// TestJSONOfMissingNumbers: no number that does not exist breaks the document.
func TestJSONOfMissingNumbers(t *testing.T) {
	for _, v := range []float64{-1, math.NaN(), math.Inf(1)} {
		c := compared(t, before(), change(same(), func(r *result.Run) { r.Trials[3].Samples[0].Value = v }), sides.Options{})
		var b bytes.Buffer
		if err := c.JSON(&b); err != nil || !json.Valid(b.Bytes()) {
			t.Errorf("%v: %v", v, err)
		}
	}
}

func TestText(t *testing.T) {
	c := compared(t, withCell(before()), hostile(), sides.Options{Gates: gates(t, "slower:3%")})
	var b bytes.Buffer
	if err := c.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"A  before     5 runs", "\n" + lifecycle + "\n  TARGET", "oci/runc  CreateAndRun  20.1 ms   20.1 ms",
		"Only on one side\n  A  a.b.c  oci/runc  failed 1 of 1: ", "\nGates\n  inconclusive", "8 metrics compared; no difference is shown, which does not prove equality.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, b.String())
		}
	}
}
