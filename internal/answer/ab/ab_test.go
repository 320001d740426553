package ab_test

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	answer "github.com/touchstone-bench/touchstone/internal/answer/ab"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	for _, f := range []string{"table", "markdown", "junit"} {
		got, file := written(t, f, reporttest.Builds()), filepath.Join("testdata", "builds."+f+".golden")
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

// documents are comparisons with all oddities.
var documents = sync.OnceValue(func() map[string]*ab.Document {
	cases := reporttest.OddBuilds()
	cases["the usual"] = reporttest.Builds()
	return cases
})

// written is a comparison in a format.
func written(t *testing.T, format string, c *ab.Document) string {
	t.Helper()
	formats := render.Formats()
	place := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == format })
	var b strings.Builder
	must.Do(t, formats[place].Write(&b, answer.Document(c), render.Options{}))
	return b.String()
}

func TestDocumentsFollowTheSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../../docs/schema/ab.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(document string) error {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(instance)
	}
	for name, d := range documents() {
		if err := check(written(t, "json", d)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	sample := written(t, "json", reporttest.Builds())
	for old, replacement := range map[string]string{
		`"kind": "touchstone-ab"`:                      `"kind": "touchstone-comparison"`,
		`"schema_version": 1,`:                         ``,
		`"answer": "inconclusive"`:                     `"answer": "passed"`,
		`"started": "2026-11-20T10:00:00Z"`:            `"started": "yesterday"`,
		`"ratio_low": `:                                `"low": `,
		`"decided_after_runs": 4,`:                     ``,
		`"better": "lower"`:                            `"better": "less"`,
		`"reason": "the interval includes the margin"`: `"remark": ""`,
		`"lost_a": 0`:                                  `"lost_a": 2`,
		`"page": "report-20261120-100000-aaaa.html"`:   `"pages": 1`,
	} {
		if n := strings.Count(sample, old); n == 0 {
			t.Errorf("the document lacks %s:\n%s", old, sample)
		} else if check(strings.Replace(sample, old, replacement, 1)) == nil {
			t.Errorf("the schema accepts %s in place of %s", replacement, old)
		}
	}
}

// A reader of the document finds the same comparison in it.
func TestDocumentComesBack(t *testing.T) {
	for name, d := range documents() {
		var duplicate ab.Document
		first := written(t, "json", d)
		if err := json.Unmarshal([]byte(first), &duplicate); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if second := written(t, "json", &duplicate); first != second {
			t.Errorf("%s: the document\n%s\nbecomes\n%s", name, first, second)
		}
	}
}

// No format shows a number that does not exist, and each names the reason.
func TestOddDocuments(t *testing.T) {
	for name, want := range map[string]string{
		"no run":             "no run after the calibration",
		"one run":            "1 runs are too few: at least 4 are necessary",
		"equal ratios":       "B is not worse by the margin",
		"equal worse ratios": "B is worse than the margin",
		"a rate of half":     "B is worse than the margin",
		"B always fails":     "oci/runc-b has no trial that is ok",
		"B loses trials":     "oci/runc-b has lost 33 % of its blocks",
		"B is not available": "oci/runc-b is not available: no such file",
		"values of zero":     "not comparable: a value of CreateAndRun is zero or negative",
		"negative values":    "not comparable: a value of CreateAndRun is zero or negative",
		"a ratio too large":  "not comparable: the values of CreateAndRun differ by a factor that no number can hold",
		"many runs":          "200 of 200 runs of 1 block,",
		"interrupted":        "interrupted",
	} {
		if documents()[name] == nil {
			t.Errorf("no document is called %q", name)
			continue
		}
		if got := written(t, "table", documents()[name]); !strings.Contains(got, want) {
			t.Errorf("%s: the text lacks %q:\n%s", name, want, got)
		}
	}
	for name, d := range documents() {
		for _, format := range []string{"table", "markdown", "junit"} {
			got := written(t, format, d)
			if found := regexp.MustCompile(`NaN|Inf|%!|\bnil\b`).FindString(got); found != "" {
				t.Errorf("%s: the format %s has %q:\n%s", name, format, found, got)
			}
		}
	}
}

// suites is a document of JUnit.
type suites struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Suites   []struct {
		Name  string `xml:"name,attr"`
		Cases []struct {
			Name    string   `xml:"name,attr"`
			Failure *problem `xml:"failure"`
			Error   *problem `xml:"error"`
			Output  string   `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type problem struct {
	Message string `xml:"message,attr"`
}

func junit(t *testing.T, d *ab.Document) (s suites) {
	t.Helper()
	text := written(t, "junit", d)
	if err := xml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return s
}

// Invariant ab-silence.
func TestJUnit(t *testing.T) {
	got := junit(t, reporttest.Builds())
	if got.Name != "touchstone ab oci/runc-a oci/runc-b" || got.Tests != 3 || got.Failures != 0 || got.Errors != 2 || len(got.Suites) != 2 {
		t.Fatalf("the suites are %+v", got)
	}
	lifecycle, cpu := got.Suites[0], got.Suites[1]
	if c := lifecycle.Cases[0]; c.Name != "CreateAndRun on oci/runc-b against oci/runc-a" || c.Failure != nil || c.Error != nil ||
		!strings.HasPrefix(c.Output, "margin 3.0 %: B / A is 0.99") {
		t.Errorf("the value that is not worse is %+v", c)
	}
	if c := lifecycle.Cases[1]; c.Error == nil || c.Error.Message != "margin 3.0 %: 0 of 8 runs have a ratio, and at least 4 are necessary: not comparable: HostMemory is 0 in all trials of oci/runc-a" {
		t.Errorf("the value without a ratio is %+v", c.Error)
	}
	if c := cpu.Cases[0]; cpu.Name != "performance.cpu.time copies=2" || c.Error == nil ||
		!strings.HasPrefix(c.Error.Message, "margin 3.0 %: the interval includes the margin; B / A is ") {
		t.Errorf("the undecided value of %s is %+v", cpu.Name, c.Error)
	}
	// The test case has the answer of the value, in every comparison: only "not worse" passes.
	for name, d := range documents() {
		got := junit(t, d)
		n := 0
		for _, s := range got.Suites {
			n += len(s.Cases)
		}
		failures, open := 0, 0
		for _, v := range d.Values {
			switch v.Answer {
			case stats.Worse:
				failures++
			case stats.Inconclusive:
				open++
			case stats.NotWorse:
			}
		}
		if n != len(d.Values) || got.Tests != n || got.Failures != failures || got.Errors != open {
			t.Errorf("%s: %d cases, %d tests, %d failures and %d errors; want %d values, %d worse, %d undecided", name, n, got.Tests, got.Failures, got.Errors, len(d.Values), failures, open)
		}
	}
	if c := junit(t, documents()["interrupted"]).Suites[0].Cases[0]; c.Error == nil || !strings.HasSuffix(c.Error.Message, "; interrupted") {
		t.Errorf("the interrupted comparison has the case %+v", c)
	}
}

// TestRecords holds that a row has the numbers of its value, and no number that does not exist.
func TestRecords(t *testing.T) {
	records := answer.Document(reporttest.Builds()).Records()
	value := func(row int, column string) any { return records.Rows[row][slices.Index(records.Columns, column)] }
	if n := len(records.Rows); n != 3 {
		t.Fatalf("%d rows, want 3", n)
	}
	if ratio, is := value(0, "ratio").(float64); !is || ratio < 0.99 || ratio > 1 || value(0, "decided_after_runs") != 4 || value(0, "answer") != string(stats.NotWorse) || value(0, "runs") != 8 {
		t.Errorf("the decided value is %v", records.Rows[0])
	}
	if value(2, "ratio") != nil || value(2, "ratio_low") != nil || value(2, "decided_after_runs") != nil || value(2, "reason") == "" {
		t.Errorf("the value without a ratio is %v", records.Rows[2])
	}
}
