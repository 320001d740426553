package compare_test

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/answer/compare"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// written is a comparison in a format.
func written(t *testing.T, format string, c *sides.Comparison) string {
	t.Helper()
	formats := render.Formats()
	place := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == format })
	var b strings.Builder
	must.Do(t, formats[place].Write(&b, compare.Document(c), render.Options{Width: 140}))
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, c := range map[string]*sides.Comparison{"sides": reporttest.Sides(), "single": reporttest.SingleSides()} {
		for _, format := range []string{"table", "markdown", "junit"} {
			if format == "junit" && len(c.Gates) == 0 {
				continue
			}
			got, file := written(t, format, c), filepath.Join("testdata", name+"."+format+".golden")
			if *update {
				must.Do(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			must.Do(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the answer differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
			}
		}
	}
}

// The answer comes first on a page, and no character of a text has a meaning.
func TestMarkdown(t *testing.T) {
	got := written(t, "markdown", reporttest.Sides())
	for _, bad := range []string{"<script", "@team", "https://"} {
		if strings.Contains(got, bad) {
			t.Errorf("the text has %q:\n%s", bad, got)
		}
	}
	for _, want := range []string{
		"### Touchstone: before against after\n\nRegression: of ",
		"| inconclusive | a.b.c M on native | slower:3% | – | ", "side B has no value: failed 1 of 1: &lt;script&gt;\\|\\*",
		"<details><summary>6 runs</summary>", " without a shown difference</summary>", "<summary>1 benchmark only on one side</summary>",
		"- Kernel: 6.1.0 in A, 6.1.9 in B\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks %q:\n%s", want, got)
		}
	}
}

// Only "not worse" passes, and a gate that selects nothing is no pass.
func TestJUnit(t *testing.T) {
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Error *struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	c := reporttest.Sides()
	must.Do(t, xml.Unmarshal([]byte(written(t, "junit", c)), &got))
	answers := map[stats.Answer]int{}
	for _, k := range c.Gates {
		answers[k.Answer]++
	}
	for answer, n := range map[stats.Answer]int{stats.Worse: got.Failures, stats.Inconclusive: got.Errors, stats.NotWorse: got.Tests - got.Failures - got.Errors} {
		if n == 0 || n != answers[answer] {
			t.Errorf("%d cases are %q, want %d, and at least one", n, answer, answers[answer])
		}
	}
	last := got.Suites[len(got.Suites)-1]
	if last.Name != "gates" || last.Cases[0].Error == nil || !strings.Contains(last.Cases[0].Error.Message, "selects no metric") {
		t.Errorf("the last suite is %+v", last)
	}
}

func TestSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../../docs/schema/comparison.schema.json")
	must.Do(t, err)
	for _, c := range []*sides.Comparison{reporttest.Sides(), reporttest.SingleSides()} {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(written(t, "json", c)))
		must.Do(t, err)
		must.Do(t, schema.Validate(instance))
	}
}

// TestJSONOfMissingNumbers holds that no number that does not exist breaks the JSON.
func TestJSONOfMissingNumbers(t *testing.T) {
	for _, v := range []float64{-1, math.NaN(), math.Inf(1)} {
		a, b := reporttest.Small(), reporttest.Small()
		b.ID = "b"
		i := slices.IndexFunc(b.Trials, func(t result.Trial) bool { return t.Status == result.OK && !t.Warmup })
		b.Trials[i].Samples[0].Value = v
		c, err := sides.New(sides.Side{Name: "a", Runs: []result.Run{a}}, sides.Side{Name: "b", Runs: []result.Run{b}}, sides.Options{})
		must.Do(t, err)
		if got := written(t, "json", c); !json.Valid([]byte(got)) || !strings.Contains(got, "null") {
			t.Errorf("%v: the JSON is\n%s", v, got)
		}
	}
}

// TestRecords holds that a row has the numbers of its metric, the answer of its gate, and no number that does not exist.
func TestRecords(t *testing.T) {
	c := reporttest.Sides()
	records := compare.Document(c).Records()
	if want := len(c.Cells) + len(c.OneSided) + 1; len(records.Rows) != want { // and a gate without a metric
		t.Errorf("%d rows, want %d", len(records.Rows), want)
	}
	value := func(row []any, column string) any { return row[slices.Index(records.Columns, column)] }
	slowdown, oneSided := false, false
	for _, row := range records.Rows {
		switch {
		case value(row, "metric") == "CreateAndRun" && value(row, "target") == "oci/runc":
			ratio, low, high := value(row, "ratio").(float64), value(row, "ratio_low").(float64), value(row, "ratio_high").(float64)
			slowdown = low < ratio && ratio < high && value(row, "runs_a") == 3 && value(row, "verdict") == "slower" && value(row, "gate") == "slower:3%" &&
				value(row, "gate_answer") == string(stats.Worse)
		case value(row, "benchmark") == "a.b.c":
			oneSided = value(row, "ratio") == nil && value(row, "verdict") == nil && value(row, "gate_answer") == string(stats.Inconclusive) &&
				strings.HasPrefix(value(row, "reason").(string), "only side A has values: failed 1 of 1: ")
		}
	}
	if !slowdown || !oneSided {
		t.Errorf("slower %v, one-sided %v: %v", slowdown, oneSided, records.Rows)
	}
}

// TestOneUnit: the ratio, its interval and the ratio of the means have one unit in a row, and a ratio without a shown change is dim.
func TestOneUnit(t *testing.T) {
	rows := 0
	for name, c := range map[string]*sides.Comparison{"sides": reporttest.Sides(), "single": reporttest.SingleSides()} {
		for _, b := range compare.Document(c).Blocks {
			s, is := b.(document.Section)
			if !is || s.ID != "shown" && s.ID != "others" {
				continue
			}
			for _, bench := range s.Blocks {
				for _, row := range bench.(document.Section).Blocks[0].(document.Table).Rows[1:] {
					rows++
					ratio, verdict := row[4][0], row[len(row)-1][0]
					hasColour := ratio.Tone == document.Good || ratio.Tone == document.Bad
					if isShown := verdict.Text == "slower" || verdict.Text == "more"; hasColour != isShown || !isShown && ratio.Tone != document.Faint {
						t.Errorf("%s: the ratio %q with the verdict %q has the tone %d", name, ratio.Text, verdict.Text, ratio.Tone)
					}
					for _, cell := range row[5:7] {
						if cell[0].Text != quantity.None && cell[0].Text[len(cell[0].Text)-1] != ratio.Text[len(ratio.Text)-1] {
							t.Errorf("%s: %q and %q are in one row", name, ratio.Text, cell[0].Text)
						}
					}
				}
			}
		}
	}
	if rows < 20 {
		t.Errorf("the test has seen %d rows", rows)
	}
}
