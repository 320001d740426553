package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// gap is the number of blanks between columns.
const gap = 3

// entry is a field of a table: two lines, of which the second may be empty.
type entry struct {
	top, below string
	style      style // of the second line, or of the first if there is none
}

func (e entry) width() int {
	return max(utf8.RuneCountInString(e.top), utf8.RuneCountInString(e.below))
}

// table has an entry in each cell; rows and columns have headings.
type table struct {
	rows, columns []entry
	cells         [][]entry // by row
}

// turned is the table with rows and columns exchanged.
func (t table) turned() table {
	out := table{rows: t.columns, columns: t.rows}
	for c := range t.columns {
		var row []entry
		for r := range t.rows {
			row = append(row, t.cells[r][c])
		}
		out.cells = append(out.cells, row)
	}
	return out
}

func (t table) labelWidth() int {
	var w int
	for _, r := range t.rows {
		w = max(w, r.width())
	}
	return w
}

func (t table) columnWidth(c int) int {
	w := t.columns[c].width()
	for _, row := range t.cells {
		w = max(w, row[c].width())
	}
	return w
}

// parts splits the columns into stretches that fit into width, each of one column at least.
func (t table) parts(width int) [][]int {
	var all [][]int
	var part []int
	used := t.labelWidth()
	for c := range t.columns {
		need := gap + t.columnWidth(c)
		if len(part) > 0 && used+need > width {
			all = append(all, part)
			part, used = nil, t.labelWidth()
		}
		part = append(part, c)
		used += need
	}
	return append(all, part)
}

// benchmark writes a benchmark: a row a target if that fits, else a row a metric.
func (p *printer) benchmark(b *report.Benchmark) {
	p.title(clean(b.Title()))
	about := fmt.Sprintf("%s; %d blocks", clean(b.Summary), b.Blocks)
	if b.Baseline == "" {
		about = clean(b.Summary) + "; no trial is ok"
	} else if b.BaselineNote != "" {
		about += "; compared with " + b.Baseline + ", as " + b.BaselineNote
	}
	p.wrapped("  ", about)
	if len(b.Metrics) > 0 {
		t := metrics(b)
		if turned := t.turned(); len(t.parts(p.width-2)) > 1 && len(turned.parts(p.width-2)) <= len(t.parts(p.width-2)) {
			t = turned
		}
		p.table(t)
	}
	if t, ok := phases(b); ok {
		p.line("")
		p.line("  Phases, median")
		p.table(t)
	}
}

// metrics is the table of a benchmark with a row for each target.
func metrics(b *report.Benchmark) table {
	var t table
	for _, m := range b.Metrics {
		t.columns = append(t.columns, entry{top: clean(m.Name)})
	}
	for i, o := range b.Targets {
		t.rows = append(t.rows, heading(o.Target, o.Target == b.Baseline))
		var row []entry
		for j := range b.Metrics {
			row = append(row, field(&b.Metrics[j], &b.Metrics[j].Cells[i], &b.Targets[i]))
		}
		t.cells = append(t.cells, row)
	}
	return t
}

// heading breaks a target's name before its options.
func heading(target string, baseline bool) entry {
	name, options, has := strings.Cut(clean(target), "@")
	e := entry{top: name}
	if has {
		e.below = "@" + options
	}
	if baseline {
		e.top += " *"
	}
	return e
}

func field(m *report.Metric, c *report.Cell, o *report.Outcome) entry {
	if c.Summary == nil {
		e := entry{top: report.None, style: dim}
		switch {
		case o.OK > 0:
			e.below = "not recorded"
		case o.Failed > 0:
			e.below = "failed"
		case o.Timeout > 0:
			e.below = "timed out"
		case o.Skipped > 0:
			e.below = "skipped"
		}
		return e
	}
	e := entry{top: report.Median(c.Summary, m.Unit)}
	if c.Comparison == nil {
		return e
	}
	word := report.VerdictWord(c.Comparison.Verdict, m.Unit)
	switch c.Comparison.Verdict {
	case stats.Faster:
		e.style = green
	case stats.Slower:
		e.style = red
	case stats.NoDifference:
		word, e.style = "no diff.", dim
	case stats.TooNoisy, stats.TooFew, stats.NotComparable:
		e.style = dim
	}
	e.below = word
	if ratio := report.Ratio(c.Comparison.Ratio); ratio != report.None {
		e.below = ratio + " " + word
	}
	return e
}

// phases is the table of median durations of the phases, if any target has several.
func phases(b *report.Benchmark) (table, bool) {
	var t table
	at := map[string]int{}
	several := false
	for _, o := range b.Targets {
		several = several || len(o.Phases) > 2
		for _, ph := range o.Phases {
			if _, known := at[ph.Name]; !known {
				at[ph.Name] = len(t.columns)
				name := clean(ph.Name)
				if ph.Times > 1 {
					name += fmt.Sprintf(" (each of %d)", ph.Times)
				}
				t.columns = append(t.columns, entry{top: name})
			}
		}
	}
	for _, o := range b.Targets {
		if len(o.Phases) == 0 {
			continue
		}
		row := make([]entry, len(t.columns))
		for i := range row {
			row[i].top = report.None
		}
		for _, ph := range o.Phases {
			row[at[ph.Name]].top = report.Quantity(ph.Seconds, "s")
		}
		t.rows = append(t.rows, entry{top: clean(o.Target)})
		t.cells = append(t.cells, row)
	}
	return t, several
}

func (p *printer) table(t table) {
	label := t.labelWidth()
	for _, part := range t.parts(p.width - 2) {
		p.line("")
		head := make([]entry, len(part))
		for i, c := range part {
			head[i] = t.columns[c]
			head[i].style = bold
		}
		p.row(t, entry{}, head, part, label)
		for r := range t.rows {
			cells := make([]entry, len(part))
			for i, c := range part {
				cells[i] = t.cells[r][c]
			}
			p.row(t, t.rows[r], cells, part, label)
		}
	}
}

// row writes the one or two lines of a row.
func (p *printer) row(t table, heading entry, cells []entry, part []int, label int) {
	isHead := heading == entry{}
	top := "  " + p.padded(heading.top, label, plain, false)
	below := "  " + p.padded(heading.below, label, plain, false)
	second := heading.below != ""
	for i, e := range cells {
		width := gap + t.columnWidth(part[i])
		topStyle := plain
		if isHead {
			topStyle = bold
		}
		top += p.padded(e.top, width, topStyle, true)
		below += p.padded(e.below, width, e.style, true)
		second = second || e.below != ""
	}
	p.line(top)
	if second {
		p.line(below)
	}
}

// padded fills s up with blanks, which are not styled.
func (p *printer) padded(s string, width int, st style, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if right {
		return blanks + p.styled(s, st)
	}
	return p.styled(s, st) + blanks
}
