package ci_test

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/report/ci"
)

// hostile is text that no format must interpret.
const hostile = "<script>|*_`@team https://example.org\x1b[2J]]>\nnext"

// An undecided case is an error, and so is a case whose status was forgotten. Neither is skipped or passed.
func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := ci.WriteJUnit(&b, "comparison", []ci.Case{
		{Suite: "one", Name: "worse", Status: ci.Failed, Answer: "worse than the margin", Message: "10 %"},
		{Suite: "two", Name: "undecided", Answer: "inconclusive", Message: hostile},
		{Suite: "one", Name: "fine", Status: ci.Passed, Answer: "not worse", Message: "0 %"},
	}); err != nil {
		t.Fatal(err)
	}
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="comparison" tests="3" failures="1" errors="1">
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
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("the document (-want +got):\n%s", diff)
	}
	var parsed struct{}
	if err := xml.Unmarshal([]byte(b.String()), &parsed); err != nil {
		t.Errorf("the document is no XML: %v", err)
	}
}

func TestMarkdownIsPlain(t *testing.T) {
	m := ci.Markdown{Whole: "touchstone"}
	m.Heading(hostile)
	m.Paragraph(hostile)
	m.Note(hostile)
	m.Table([]string{"a"}, [][]string{{hostile}})
	m.Fold(hostile, []string{"b"}, [][]string{{hostile}})
	m.Fold("without rows", []string{"c"}, nil)
	var b strings.Builder
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "@team", "https://", "without rows", "]\nnext"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the text has %q:\n%s", bad, b.String())
		}
	}
	if n := strings.Count(b.String(), `&lt;script&gt;\|\*\_`); n != 6 {
		t.Errorf("the text is there %d times, want 6:\n%s", n, b.String())
	}
}

// TestMarkdownHasNoLinksAndCommands: nothing in a name becomes a link, or a command of a CI log that shows the text.
//
// Invariant foreign-text: Text from elsewhere is no link in Markdown and no command in the log of a job.
func TestMarkdownHasNoLinksAndCommands(t *testing.T) {
	for _, text := range []string{
		"www.example.com", "see WWW.example.com", "(wWw.example.com)", "::error::x", "::set-output name=a::b", "##[error]x", "##vso[task.complete]x", "##teamcity[x]", "http://a", "ftp://a",
		"mailto:a@b.c",
	} {
		m := ci.Markdown{}
		m.Paragraph(text)
		m.Table([]string{text}, nil)
		var b strings.Builder
		if err := m.Write(&b); err != nil {
			t.Fatal(err)
		}
		got := strings.ToLower(b.String())
		for _, bad := range []string{"www.", "::", "##", "://", "@b"} {
			if strings.Contains(got, bad) {
				t.Errorf("%q has %q: %q", text, bad, got)
			}
		}
	}
}

// GitHub refuses a long comment.
func TestMarkdownIsShort(t *testing.T) {
	m := ci.Markdown{Whole: "touchstone compare -o table"}
	var rows [][]string
	for i := range 5000 {
		rows = append(rows, []string{fmt.Sprint("row ", i), "0123456789"})
	}
	m.Table([]string{"a", "b"}, rows)
	var b strings.Builder
	if err := m.Write(&b); err != nil || b.Len() > 65536 || !strings.Contains(b.String(), " of 5000 rows are left out; touchstone compare -o table has all of them.\n") {
		t.Errorf("the text has %d bytes: %v", b.Len(), err)
	}
}
