package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// gap is the number of blanks between columns.
const gap = 3

// entry is a field of a table with up to three lines. The second and the third may be empty.
type entry struct {
	top, below string
	style      style // of the second line, or of the first without a second
	// lead is the style of the first line, unless the field is a heading.
	lead style
	// third is the third line. It is dim.
	third string
}

func (e entry) width() int {
	return max(utf8.RuneCountInString(e.top), utf8.RuneCountInString(e.below), utf8.RuneCountInString(e.third))
}

// table has headings for rows and columns, and an entry in each cell.
type table struct {
	rows, columns []entry
	cells         [][]entry // by row
}

// turned exchanges rows and columns.
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

// parts splits the columns into parts that fit into width, with at least one column each.
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

func (p *printer) benchmark(b *report.Benchmark) {
	p.title(clean(b.Title()))
	about := clean(b.Summary)
	if p.single {
		about += p.about(b.Sections[0])
	} else {
		if b.Baseline != "" {
			about += "; compared with " + b.Baseline
			if b.Note != "" {
				about += ", because " + b.Note
			}
		}
	}
	if derived := b.Derived(); len(derived) > 0 {
		about += "; derived, so without a verdict: " + strings.Join(derived, ", ")
	}
	p.wrapped("  ", about)
	if !p.single {
		p.sideBySide(b)
		return
	}
	s := b.Sections[0]
	if len(s.Conditions) > 0 {
		var parts []string
		for _, c := range s.Conditions {
			parts = append(parts, c.String())
		}
		p.wrapped("  ", "Conditions: "+strings.Join(parts, "; "))
	}
	for i := range s.Breaches {
		p.alarm(s.Breaches[i].Short() + ".")
	}
	common, partial := byPresence(b)
	for _, some := range [][]*report.Metric{common, partial} {
		t := metrics(b, some)
		if len(t.rows) == 0 {
			continue
		}
		if turned := t.turned(); len(t.parts(p.width-2)) > 1 && len(turned.parts(p.width-2)) <= len(t.parts(p.width-2)) {
			t = turned
		}
		p.table(t)
	}
	if len(s.Layers) > 0 {
		p.layers(&s.Layers[0])
	}
	if t, ok := phases(b); ok {
		p.line("")
		p.line("  Phases, median")
		p.table(t)
	}
	for i := range s.Components {
		p.line("")
		p.line("  " + s.Components[i].Title + ", median")
		p.table(components(&s.Components[i]))
	}
}

// about describes the section of the only run.
func (p *printer) about(s *report.Section) string {
	if s.Baseline == "" {
		return "; no trial is ok"
	}
	about := fmt.Sprintf("; %d blocks", s.Blocks)
	if s.BaselineNote != "" {
		about += "; compared with " + s.Baseline + ", because " + s.BaselineNote
	}
	if len(s.Unbased) > 0 {
		about += "; no ratio where " + s.Baseline + " has no value: " + strings.Join(s.Unbased, ", ")
	}
	return about
}

// sideBySide writes a table for each metric, with a column for each run.
func (p *printer) sideBySide(b *report.Benchmark) {
	if b.Note != "" && b.Baseline == "" {
		p.alarm(b.Note + ".")
	}
	for _, c := range b.Conditions {
		if c.Differs {
			p.wrapped("  ", "The conditions differ: "+c.Name+" "+p.byRun(c, ""))
		}
	}
	var runs []int
	var heads []entry
	for i, s := range b.Sections {
		if s == nil {
			continue
		}
		head := entry{top: clean(p.report.Runs[i].Label)}
		if b.Baseline == "" && s.Baseline != "" {
			head.below = "to " + clean(s.Baseline)
		}
		runs, heads = append(runs, i), append(heads, head)
	}
	for i := range b.Metrics {
		m := &b.Metrics[i]
		about := string(m.Better) + " is better"
		if m.Unbased() {
			about += "; no ratio, because " + clean(b.Baseline) + " has no value"
		}
		p.line("")
		p.wrappedIn(bold, "  ", clean(m.Name)+": "+about)
		t := table{columns: heads}
		for n := range m.Rows {
			row := &m.Rows[n]
			if !row.Has() {
				continue
			}
			t.rows = append(t.rows, heading(row.Target, row.Baseline))
			var cells []entry
			for _, run := range runs {
				cells = append(cells, sideField(m, &row.Cells[run]))
			}
			t.cells = append(t.cells, cells)
		}
		p.table(t)
		if p.report.AcrossMachines {
			p.across(m)
		}
	}
}

// sideField is the factor with the verdict, its interval, and the absolute value.
func sideField(m *report.Metric, c *report.Cell) entry {
	if c.Summary == nil {
		return entry{top: report.None, below: c.Lack, style: dim}
	}
	e := verdict(c.Comparison, m.Metric)
	switch median := value(m, c); {
	case c.Baseline:
		return entry{top: median, below: "baseline", style: dim}
	case c.Comparison == nil:
		return entry{top: median}
	default:
		interval := report.FactorInterval(c.Comparison)
		if e.third != "" {
			interval += ", " + e.third
		}
		return entry{top: e.below, lead: e.style, below: interval, third: median}
	}
}

// across writes the ratios of absolute medians to the first run's.
func (p *printer) across(m *report.Metric) {
	var t table
	for _, r := range p.report.Runs[1:] {
		t.columns = append(t.columns, entry{top: clean(r.Label)})
	}
	for _, r := range m.Rows {
		var row []entry
		has := false
		for _, c := range r.Cells[1:] {
			e := entry{top: report.None}
			if c.Across != nil {
				has = true
				e = entry{top: report.Factor(c.Across.Ratio, m.Metric), below: report.FactorInterval(c.Across)}
			}
			row = append(row, e)
		}
		if has {
			t.rows = append(t.rows, heading(r.Target, false))
			t.cells = append(t.cells, row)
		}
	}
	if len(t.rows) > 0 {
		p.line("")
		p.wrapped("  ", "Across runs: the ratio of the absolute median of "+m.Name+" to that on "+p.report.Runs[0].Label)
		p.table(t)
	}
}

// layers writes the addition of each layer. The process is native's row.
func (p *printer) layers(l *report.Layers) {
	p.line("")
	p.line("  Layers of " + clean(l.Metric.Name))
	t := table{columns: []entry{{top: "whole"}}}
	unclear := false
	for _, name := range report.LayerNames()[report.RuntimeLayer:] {
		first, rest, _ := strings.Cut(name, " ")
		t.columns = append(t.columns, entry{top: first, below: rest})
	}
	t.columns = append(t.columns, entry{top: "remainder"})
	for _, s := range l.Stacks {
		row := make([]entry, len(t.columns))
		for i := range row {
			row[i] = entry{top: report.None, style: dim}
		}
		row[0] = entry{top: report.Difference(s.Total, l.Metric.Unit)}
		for _, part := range s.Parts {
			if part.Last == report.ProcessLayer {
				continue
			}
			for layer := max(part.First, report.RuntimeLayer); layer < part.Last; layer++ {
				row[layer] = entry{top: "→"}
			}
			row[part.Last] = entry{top: report.Difference(part.Difference, l.Metric.Unit)}
			if part.Unclear() {
				unclear = true
				row[part.Last].below, row[part.Last].style = "not shown", dim
			}
		}
		if len(s.Parts) > 1 {
			row[len(row)-1].top = report.Signed(s.Remainder, l.Metric.Unit)
		}
		t.rows = append(t.rows, heading(s.Target, false))
		t.cells = append(t.cells, row)
	}
	p.table(t)
	p.line("")
	for _, n := range l.Notes() {
		p.wrapped("  ", n)
	}
	if unclear {
		p.wrapped("  ", "not shown: the interval includes 0, so no addition or saving by this layer is shown.")
	}
	if l.Merged() {
		p.wrapped("  ", "→: this layer is included in the layer to its right.")
	}
}

// components is the table of a cost by component. It has only medians, so that it fits.
func components(c *report.Components) table {
	t := table{columns: []entry{{top: "together"}}}
	for _, name := range c.Names {
		t.columns = append(t.columns, entry{top: clean(name)})
	}
	for _, r := range c.Rows {
		row := []entry{{top: report.Quantity(r.Total.Median, c.Unit)}}
		for _, cell := range r.Cells {
			e := entry{top: report.None}
			if cell != nil {
				e.top = report.Quantity(cell.Median, c.Unit)
			}
			row = append(row, e)
		}
		t.rows = append(t.rows, heading(r.Target, false))
		t.cells = append(t.cells, row)
	}
	return t
}

// byPresence separates metrics that the baseline and other targets lack by their nature, if there are several.
func byPresence(b *report.Benchmark) (common, partial []*report.Metric) {
	var all []*report.Metric
	for i := range b.Metrics {
		m := &b.Metrics[i]
		all = append(all, m)
		if m.Unbased() && slices.ContainsFunc(m.Rows, func(r report.Row) bool { return r.Cells[0].Absent }) {
			partial = append(partial, m)
		} else {
			common = append(common, m)
		}
	}
	if len(partial) < fewestPartial {
		return all, nil
	}
	return common, partial
}

// fewestPartial is the smallest number of metrics in a table of their own.
const fewestPartial = 3

// metrics is the table of some metrics, with a row for each target that has or lacks one of them.
func metrics(b *report.Benchmark, some []*report.Metric) table {
	var t table
	for _, m := range some {
		t.columns = append(t.columns, entry{top: clean(m.Name)})
	}
	for i, o := range b.Sections[0].Targets {
		if !slices.ContainsFunc(some, func(m *report.Metric) bool { return !m.Rows[i].Cells[0].Absent }) {
			continue
		}
		t.rows = append(t.rows, heading(o.Target, o.Target == b.Baseline))
		var row []entry
		for _, m := range some {
			row = append(row, field(m, &m.Rows[i].Cells[0]))
		}
		t.cells = append(t.cells, row)
	}
	return t
}

// heading breaks the name of a target before its options.
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

// field is the absolute value, the factor, and the verdict if it is no difference.
func field(m *report.Metric, c *report.Cell) entry {
	if c.Summary == nil {
		return entry{top: report.None, below: c.Lack, style: dim}
	}
	e := verdict(c.Comparison, m.Metric)
	e.top = value(m, c)
	return e
}

// value is the median, marked if it exceeds the bound of the metric.
func value(m *report.Metric, c *report.Cell) string {
	median := report.Median(c.Summary, m.Unit)
	if m.Breached(c) {
		return alarmMark + median
	}
	return median
}

// verdict has the factor in the second line, and in the third the verdict if it is no difference.
func verdict(c *stats.Comparison, m result.Metric) entry {
	if c == nil {
		return entry{}
	}
	e := entry{below: report.Factor(c.Ratio, m), style: dim}
	word := report.VerdictWord(c.Verdict, m)
	switch c.Verdict {
	case stats.Faster:
		e.style = green
		return e
	case stats.Slower:
		e.style = red
		return e
	case stats.NoDifference:
		word = "no diff."
	case stats.TooNoisy, stats.TooFew, stats.NotComparable:
	}
	if e.below == report.None {
		return entry{below: word, style: dim}
	}
	e.third = word
	return e
}

// phases is the table of median durations of the phases, if any target has several. Steps are columns behind their phase,
// except steps that are metrics.
func phases(b *report.Benchmark) (table, bool) {
	var t table
	at := map[string]int{}
	several := false
	targets := b.Sections[0].Targets
	column := func(key string, ph report.Phase, lead string) {
		if _, known := at[key]; known {
			return
		}
		at[key] = len(t.columns)
		name := lead + clean(ph.Name)
		if ph.Times > 1 {
			name += fmt.Sprintf(" (each of %d)", ph.Times)
		}
		t.columns = append(t.columns, entry{top: name})
	}
	isMetric := func(name string) bool {
		return slices.ContainsFunc(b.Metrics, func(m report.Metric) bool { return m.Name == name })
	}
	for _, o := range targets {
		several = several || len(o.Phases) > 2
	}
	for _, ph := range phasesOf(targets) {
		column(ph.Name, ph, "")
		for _, step := range ph.Steps {
			if !isMetric(step.Name) {
				column(ph.Name+"/"+step.Name, step, "/")
			}
		}
	}
	for _, o := range targets {
		if len(o.Phases) == 0 {
			continue
		}
		row := make([]entry, len(t.columns))
		for i := range row {
			row[i].top = report.None
		}
		for _, ph := range o.Phases {
			row[at[ph.Name]].top = report.Quantity(ph.Seconds, result.Seconds)
			for _, step := range ph.Steps {
				if i, shown := at[ph.Name+"/"+step.Name]; shown {
					row[i].top = report.Quantity(step.Seconds, result.Seconds)
				}
			}
		}
		t.rows = append(t.rows, entry{top: clean(o.Target)})
		t.cells = append(t.cells, row)
	}
	return t, several
}

// phasesOf gives the phases of all targets in the order of their first occurrence, each with the steps of any target.
func phasesOf(targets []report.Outcome) []report.Phase {
	var all []report.Phase
	merge := func(phases []report.Phase, ph report.Phase) ([]report.Phase, int) {
		at := slices.IndexFunc(phases, func(known report.Phase) bool { return known.Name == ph.Name })
		if at < 0 {
			phases, at = append(phases, report.Phase{Name: ph.Name, Times: ph.Times}), len(phases)
		}
		return phases, at
	}
	for _, o := range targets {
		for _, ph := range o.Phases {
			var at int
			all, at = merge(all, ph)
			for _, step := range ph.Steps {
				all[at].Steps, _ = merge(all[at].Steps, step)
			}
		}
	}
	return all
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

// row writes the lines of a row.
func (p *printer) row(t table, heading entry, cells []entry, part []int, label int) {
	isHead := heading == entry{}
	top := "  " + p.padded(heading.top, label, plain, false)
	below := "  " + p.padded(heading.below, label, plain, false)
	last := "  " + p.padded("", label, plain, false)
	second, third := heading.below != "", false
	for i, e := range cells {
		width := gap + t.columnWidth(part[i])
		topStyle := e.lead
		if isHead {
			topStyle = bold
		}
		top += p.padded(e.top, width, topStyle, true)
		below += p.padded(e.below, width, e.style, true)
		last += p.padded(e.third, width, dim, true)
		second, third = second || e.below != "", third || e.third != ""
	}
	p.line(top)
	if second || third {
		p.line(below)
	}
	if third {
		p.line(last)
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
