package render_test

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
)

// hostile is text that no format must interpret.
const hostile = "<script>|*_`@team https://example.org\x1b[2J]]>\nnext"

// written is a document in a format.
func written(t *testing.T, format string, d *document.Document) string {
	t.Helper()
	formats := render.Formats()
	place := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == format })
	if place < 0 {
		t.Fatalf("there is no format %q", format)
	}
	var b strings.Builder
	must.Do(t, formats[place].Write(&b, d, render.Options{}))
	return b.String()
}

// everything is a document with each kind of block, and with the same text in each place.
func everything(text string) *document.Document {
	span := document.Span{Text: text}
	row := []document.Cell{{span, span}, {span}}
	return &document.Document{
		Kind: "answer", Title: text, Notes: []document.Text{{Text: text, Tone: document.Alarm}}, Answer: []document.Text{{Text: text}}, Whole: "touchstone",
		Blocks: []document.Block{
			document.Section{ID: "all", Title: text, Folded: true, Blocks: []document.Block{
				document.Facts{Items: []document.Fact{{Name: text, Text: text, Notes: []document.Span{span}}}},
				document.List{Title: text, Ordered: true, Items: []document.Item{{Span: span, Lines: []string{text}}}},
			}},
			document.Section{ID: "method", Title: text, Detail: true, Blocks: []document.Block{document.Text{Text: text}}},
			document.Section{Title: text, Blocks: []document.Block{
				document.Text{Text: text, Tone: document.Advice},
				document.Table{Rows: [][]document.Cell{row, row}},
				document.Table{Rows: [][]document.Cell{row, row}, Listing: true},
				document.Course{
					Columns: []string{text, text, text},
					Points:  []document.Point{{Labels: []string{text}, Text: text, Value: 1}, {Labels: []string{text}, Text: text, Value: 2, Remark: text}},
					Breaks:  []document.Break{{Index: 1, Before: 1, After: 2, Text: text, Lines: []string{text}}},
				},
				document.Lanes{Name: text, Caption: text, Groups: []string{text}, Lanes: []document.Lane{{Name: text, Marks: []document.Mark{{Value: 1, Text: text}}}}},
			}},
		},
		Checks: []document.Check{{Suite: text, Name: text, Answer: text, Message: text}},
		Data:   func() any { return map[string]string{"text": text} },
	}
}

// TestEveryFormatHasEveryBlock looks for a word of each block, so that a format that forgets one fails.
//
// Invariant answer-formats.
func TestEveryFormatHasEveryBlock(t *testing.T) {
	// The places in everything, without the drawing, the details, the checks and the data. Text has headings in capitals. Markdown has the headings of a course and
	// names the place of a break. A page also has the title of the window, the drawings with their data and the details.
	for format, want := range map[string]int{"table": 31, "markdown": 35, "html": 60} {
		if got := strings.Count(strings.ToLower(written(t, format, everything("needle"))), "needle"); got != want {
			t.Errorf("%s has %d of %d texts:\n%s", format, got, want, written(t, format, everything("needle")))
		}
	}
}

// TestTextTable: numbers align at the decimal point, and a row with one cell is the heading of the rows below it.
func TestTextTable(t *testing.T) {
	table := document.Table{}
	for _, row := range [][]string{{"", "ratio"}, {"a", "1.5"}, {"a group"}, {"b", "10.25"}, {"c", "–"}} {
		var cells []document.Cell
		for _, text := range row {
			cells = append(cells, document.Cell{{Text: text}})
		}
		table.Rows = append(table.Rows, cells)
	}
	const want = `
      ratio
a      1.5
a group
  b   10.25
  c       –
`
	if diff := cmp.Diff(want, written(t, "table", &document.Document{Blocks: []document.Block{table}})); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}

// An undecided case is an error, and so is a case whose status was forgotten. Neither is skipped or passed.
func TestJUnit(t *testing.T) {
	got := written(t, "junit", &document.Document{Kind: "comparison", Suite: "compare a b", Title: "a against b", Checks: []document.Check{
		{Suite: "one", Name: "worse", Status: document.Failed, Answer: "worse than the margin", Message: "10 %"},
		{Suite: "two", Name: "undecided", Answer: "inconclusive", Message: hostile},
		{Suite: "one", Name: "fine", Status: document.Passed, Answer: "not worse", Message: "0 %"},
	}})
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="touchstone compare a b" tests="3" failures="1" errors="1">
  <testsuite name="one" tests="2" failures="1" errors="0">
    <testcase classname="one" name="worse">
      <failure type="worse than the margin" message="10 %"></failure>
    </testcase>
    <testcase classname="one" name="fine">
      <system-out>0 %</system-out>
    </testcase>
  </testsuite>
  <testsuite name="two" tests="1" failures="0" errors="1">
    <testcase classname="two" name="undecided">
      <error type="inconclusive" message="&lt;script&gt;|*_` + "`" + `@team https://example.org` + "\uFFFD" + `[2J]]&gt;&#xA;next"></error>
    </testcase>
  </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the document (-want +got):\n%s", diff)
	}
	must.Do(t, xml.Unmarshal([]byte(got), &struct{}{}))
}

// TestMarkdownIsPlain holds that nothing in a text becomes a tag, a link, a mention, or a command of a CI log that shows the text.
//
// Invariant foreign-text: Text from elsewhere is no link in Markdown and no command in the log of a job.
func TestMarkdownIsPlain(t *testing.T) {
	for _, text := range []string{
		hostile, "www.example.com", "see WWW.example.com", "(wWw.example.com)", "::error::x", "::set-output name=a::b", "[x]##[error]x", "x##vso[task.complete]x", "x##teamcity[x]", "http://a", "ftp://a",
		"mailto:a@b.c",
	} {
		got := strings.ToLower(written(t, "markdown", everything(text)))
		for _, bad := range []string{"<script", "www.", "::", "##[", "##v", "##t", "://", "@b", "@team", "]\nnext", "\x1b]"} {
			if strings.Contains(got, bad) {
				t.Errorf("%q has %q: %q", text, bad, got)
			}
		}
	}
}

// TestMarkdownBeginsNoList holds that a text is no item of a list and no formula.
func TestMarkdownBeginsNoList(t *testing.T) {
	for text, want := range map[string]string{"- a": `\n\- a\n`, "+ a": `\n\+ a\n`, "12. a": `\n12\. a\n`, "$a$": `\n&#36;a&#36;\n`, "-1 a": `\n-1 a\n`} {
		d := &document.Document{Blocks: []document.Block{document.Text{Text: text}}}
		if got := written(t, "markdown", d); !strings.HasSuffix(got, strings.ReplaceAll(want, `\n`, "\n")) {
			t.Errorf("%q is %q, want %q at the end", text, got, want)
		}
	}
}

// GitHub refuses a long comment.
func TestMarkdownIsShort(t *testing.T) {
	table := document.Table{}
	for i := range 5000 {
		table.Rows = append(table.Rows, []document.Cell{{{Text: fmt.Sprint("row ", i)}}, {{Text: "0123456789"}}})
	}
	d := &document.Document{Title: "long", Whole: "touchstone compare -o table", Blocks: []document.Block{table, document.Text{Text: "unseen"}}}
	got := written(t, "markdown", d)
	for _, want := range []string{" of 4999 rows are left out; touchstone compare -o table has all of them.\n"} {
		if !strings.Contains(got, want) || len(got) > 65536 {
			t.Errorf("the text has %d bytes, and not %q", len(got), want)
		}
	}
	var sections []document.Block
	for range 5000 {
		sections = append(sections, document.Section{Title: "part", Blocks: []document.Block{document.Text{Text: "0123456789"}}})
	}
	got = written(t, "markdown", &document.Document{Title: "long", Whole: "touchstone report", Blocks: sections})
	if !strings.HasSuffix(got, "\nThe rest is left out; touchstone report has it.\n") || len(got) > 65536 {
		t.Errorf("the text has %d bytes, and ends with %q", len(got), got[max(0, len(got)-100):])
	}
}
