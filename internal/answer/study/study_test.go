package study_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"

	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/render/text"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	for name, opts := range map[string]text.Options{"study": {Width: 100}, "study-color": {Width: 80, Color: true}} {
		var b bytes.Buffer
		must.Do(t, text.Write(&b, study.Document(reporttest.Study(), []string{"report-study.html"}), opts))
		file := filepath.Join("testdata", name+".golden")
		if *update {
			must.Do(t, os.WriteFile(file, b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(file)
		must.Do(t, err)
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("the text differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
		}
		if !opts.Color && strings.Contains(b.String(), "\x1b") {
			t.Error("text of the study reaches the terminal")
		}
	}
}

// page is the page of a study.
func page(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, html.Write(&b, study.Document(reporttest.Study(), []string{"report-study.html"})))
	return b.String()
}

// TestPage holds that a page has what the text leaves out: how each claim was read, all comparisons, the printed values of a table that was not measured, the drawings and the runs.
func TestPage(t *testing.T) {
	got := page(t)
	for _, want := range []string{
		`<dt class="good">agrees</dt><dd>runc starts slower than native. \(section 1\)<small class="faint">read as: worse by at least 2.00\x{a0}×\x{a0}\(the printed factor\); 1 comparison</small><small>operations.container.lifecycle CreateAndRun: oci/runc is 26.5`,
		`<dt class="bad">disagrees</dt>`,
		`read as: similar, within 1.05\x{a0}×\x{a0}\(the printed factor\); 2 other comparisons</small><small>operations.container.lifecycle Run: oci/runc is `,
		`<small>agrees: operations.container.lifecycle CreateAndRun: oci/runc is 26.5`,
		`<small>not measured: operations.container.lifecycle Absent: oci/runc against native; not recorded: Absent of operations.container.lifecycle</small>`,
		`aria-label="oci/runc; ratio to the reference; Create and run: in the study 20.0; Create and run: here 26.5 \([^"]*; Destroy: here 38.1`,
		`<li>Create and run: operations.container.lifecycle CreateAndRun</li>`,
		`<li>runc: oci/runc</li>`,
		`(?s)<summary><h3>The printed values</h3></summary>.*<th scope="row">Create</th><td>1`,
		`(?s)<section id="figures">.*<h3>figure 1</h3>.*aria-label="CreateAndRun; lower is better; native \(baseline\): 968`,
		`Not measured: it is a matter of taste</p>`,
		`<tr class="group"><th scope="rowgroup" colspan="3"><a href="report-study.html">small</a><small class="faint">01K9Z0TOUCHSTONE0SMALL0000, `,
		`<th scope="row">oci/runc</th><td>runc version 1.5.2</td><td>10 of 10</td>`,
		`<li>the CPU frequency was not held constant</li>`,
		`runc is &lt;b&gt;nicer&lt;/b&gt;.\x{fffd}\[31m`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("nothing in the page matches %s", want)
		}
	}
	for _, hostile := range []string{"<b>nicer", "\x1b"} {
		if strings.Contains(got, hostile) {
			t.Errorf("the page has %q", hostile)
		}
	}
}

// TestRecords holds that each claim has a row with a verdict, and each printed value one with its text.
func TestRecords(t *testing.T) {
	r := reporttest.Study()
	records := study.Document(r, []string{"report-study.html"}).Records()
	value := func(row []any, column string) any { return row[slices.Index(records.Columns, column)] }
	claims, measurements := map[any]bool{}, 0
	for _, row := range records.Rows {
		switch value(row, "part") {
		case "claim":
			claims[value(row, "name")] = true
			if value(row, "verdict") == "" {
				t.Errorf("the verdict is missing: %v", row)
			}
		case "cell":
			if value(row, "printed") == "" && value(row, "median") == nil {
				t.Errorf("the cell is empty: %v", row)
			}
			if value(row, "median") != nil {
				measurements++
			}
		}
	}
	if len(claims) != len(r.Claims) || measurements == 0 {
		t.Errorf("%d of %d claims have rows, and %d cells have our value", len(claims), len(r.Claims), measurements)
	}
}

// TestJSON holds that the JSON has the verdicts, and no ratio of a claim that was not measured.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	formats := render.Formats()
	f := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == "json" })
	must.Do(t, formats[f].Write(&b, study.Document(reporttest.Study(), nil), render.Options{}))
	tree, err := oj.Parse(b.Bytes())
	must.Do(t, err)
	for path, want := range map[string]string{
		"['kind']": "touchstone-reproduction",
		"verdicts['agrees','disagrees','cannot tell','not measured']": "1, 1, 1, 1",
		"claims[0].comparisons[0].verdict":                            "agrees",
		"claims[2].verdict":                                           "not measured",
		"claims[2].comparisons[0].ratio":                              "",
		"tables[0].rows[0].cells[*].published_ratio":                  "20",
	} {
		var got []string
		for _, v := range jp.MustParseString(path).Get(tree) {
			got = append(got, fmt.Sprint(v))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s is %q, want %q", path, text, want)
		}
	}
}
