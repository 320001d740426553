package paper_test

import (
	"strings"
	"testing"

	answer "github.com/touchstone-bench/touchstone/internal/answer/paper"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/render/text"
)

// written is the text of a paper with a table, on a narrow terminal.
func written(t *testing.T, table paper.Table) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, text.Write(&b, answer.Document(paper.Paper{Name: "x", Title: "y", Tables: []paper.Table{table}}), text.Options{Width: 60}))
	_, body, _ := strings.Cut(b.String(), "\n\n")
	return "\n" + body
}

// A wide table continues below with its labels, numbers align at the decimal point, and equal notes have one number.
func TestPaperTable(t *testing.T) {
	in := func(unit string) paper.Of { return paper.Of{Unit: unit} }
	table := paper.Table{
		Name: "table 1", Title: "Times", Place: "section 1", Reference: "native", Notes: []string{"A note."},
		Columns: []paper.Column{{Heading: "bare metal"}, {Heading: "a"}, {Heading: "a rather long heading"}, {Heading: "incomprehensibilities"}},
		Rows: []paper.Row{
			{Group: "CPU", Label: "time (s)", Of: in("s"), Cells: []paper.Cell{{Printed: "1.5"}, {Printed: "10.25", Flag: "wrong"}, {Printed: "-"}, {Printed: "7"}}},
			{Group: "CPU", Label: "time of a long name that needs two lines", Of: in("ms"), Cells: []paper.Cell{{Printed: "1000"}, {Printed: "< 1"}, {Printed: "0.75", Flag: "wrong"}, {}}},
			{Label: "rest", Of: paper.Of{Unit: "%", Unmeasured: "no benchmark"}, Cells: []paper.Cell{{}, {Printed: "84 - 104", Flag: "doubtful"}, {}, {}}},
		},
	}
	const want = `
table 1: Times
  section 1; compared with native

                                      bare
                                     metal         a
  CPU
    time (s)                           1.5     10.25[1]
    time of a long name that needs  1000      < 1
      two lines (ms)

  rest (%)                                  84 - 104[2]

                                          a
                                     rather
                                       long
                                    heading
  CPU
    time (s)                              -
    time of a long name that needs     0.75[1]
      two lines (ms)

  rest (%)

                                    incomprehensibilities
  CPU
    time (s)                                            7
    time of a long name that needs
      two lines (ms)

  rest (%)

  [1]  wrong
  [2]  doubtful

  - A note.
  - not measured by Touchstone: rest: no benchmark
`
	if got := written(t, table); got != want {
		t.Errorf("the table is%s", got)
	}
}

// A table of texts has its units beside the numbers, and its texts begin at the left.
func TestPaperTableOfTexts(t *testing.T) {
	table := paper.Table{
		Name: "table 2", Title: "Layers", Place: "section 2",
		Columns: []paper.Column{{Heading: "content"}, {Heading: "size"}},
		Rows: []paper.Row{
			{Label: "1", Of: paper.Of{Unit: "MB", Unmeasured: "of others"}, Cells: []paper.Cell{{Printed: "s6 overlay"}, {Printed: "63"}}},
			{Label: "2", Of: paper.Of{Unit: "kB", Unmeasured: "of others"}, Cells: []paper.Cell{{Printed: "a text that is longer than the widest column of texts"}, {Printed: "≈ 3.6"}}},
		},
	}
	const want = `
table 2: Layers
  section 2

     content                                           size
  1  s6 overlay                                     63 MB
  2  a text that is longer than the widest column  ≈ 3.6 kB
     of texts

  - not measured by Touchstone: of others
`
	if got := written(t, table); got != want {
		t.Errorf("the table is%s", got)
	}
}

// TestRecords: each row has all columns, and each number of the listing has a row.
func TestRecords(t *testing.T) {
	papers, err := paper.All()
	must.Do(t, err)
	for i, entry := range answer.Rows(papers) {
		r := answer.Document(papers[i]).Records()
		for _, row := range r.Rows {
			if len(row) != len(r.Columns) {
				t.Fatalf("%s: a row has %d of %d values: %v", entry.Name, len(row), len(r.Columns), row)
			}
		}
		if len(r.Rows) < entry.Numbers {
			t.Errorf("%s has %d rows and %d numbers", entry.Name, len(r.Rows), entry.Numbers)
		}
	}
}
