package explain

import (
	"math"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

// The rows beyond the limit of a page are one row with their sum, and a line with the command that has all counts.
func TestRows(t *testing.T) {
	run := reporttest.Explained()
	e, err := explain.New(&run, "native", "oci/runc", explain.Options{Matches: func(string) bool { return true }})
	must.Do(t, err)
	b := &e.Benchmarks[0]
	p := &b.Phases[0]
	causes := p.Causes()
	table := times(e, p, 1).(document.Table).Rows
	expect.Equal(t, "the rows", 4, len(table)) // heading, cause, rest, unexplained
	expect.Equal(t, "the row of the rest", document.Cells("", "", "3 smaller parts", "", "", signed(causes[1].Difference+causes[2].Difference+causes[3].Difference)), table[2])
	expect.Equal(t, "the rows without a limit", len(causes)+2, len(times(e, p, math.MaxInt).(document.Table).Rows))
	blocks := counts(e, b, p, rows{counts: 2})
	expect.Equal(t, "the rows of counts", 3, len(blocks[0].(document.Table).Rows))
	expect.Equal(t, "the line below", "7 counts more: touchstone explain native oci/runc --run "+run.ID+" --benchmark operations.container.lifecycle -o json", blocks[1].(document.Text).Text)
	blocks = counts(e, b, p, rows{counts: 2, words: 3})
	expect.Equal(t, "the counts in words", "Also different, from native to oci/runc: create runtime: mount 0 → 33, fsync 0 → 2; create container: mount 8 → 0.", blocks[1].(document.Text).Text)
	expect.Equal(t, "the line below the words", "4 counts more: touchstone explain native oci/runc --run "+run.ID+" --benchmark operations.container.lifecycle -o json", blocks[2].(document.Text).Text)
}
