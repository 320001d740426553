package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// gap is the number of blanks between columns.
const gap = 3

// entry is a field of a table with up to three lines. The second and the third may be empty.
type entry struct {
	top, below string
	// lead and style are the styles of the first two lines, unless the field is a heading.
	lead, style style
	// third is the third line. It is dim.
	third string
}

func (e entry) width() int {
	return max(utf8.RuneCountInString(e.top), utf8.RuneCountInString(e.below), utf8.RuneCountInString(e.third))
}

// table is rows of entries. The first row and the first column are headings.
type table [][]entry

// turned exchanges rows and columns.
func (t table) turned() table {
	out := make(table, len(t[0]))
	for _, row := range t {
		for c, e := range row {
			out[c] = append(out[c], e)
		}
	}
	return out
}

func (t table) columnWidth(c int) int {
	var w int
	for _, row := range t {
		w = max(w, row[c].width())
	}
	return w
}

// parts splits the columns behind the first into parts that fit into width, with at least one column each.
func (t table) parts(width int) [][]int {
	var all [][]int
	var part []int
	used := t.columnWidth(0)
	for c := 1; c < len(t[0]); c++ {
		need := gap + t.columnWidth(c)
		if len(part) > 0 && used+need > width {
			all = append(all, part)
			part, used = nil, t.columnWidth(0)
		}
		part = append(part, c)
		used += need
	}
	return append(all, part)
}

func (p *printer) benchmark(b *analysis.Benchmark) {
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
		p.alarm(finding.BreachClause(&s.Breaches[i]) + ".")
	}
	p.stated(s)
	common, partial := byPresence(b)
	for _, some := range [][]*analysis.Metric{common, partial} {
		t := metrics(b, some)
		if len(t) == 1 {
			continue
		}
		if turned := t.turned(); len(t.parts(p.width-2)) > 1 && len(turned.parts(p.width-2)) <= len(t.parts(p.width-2)) {
			t = turned
		}
		p.table(t)
	}
	p.beside(b)
	p.trends(b)
	p.worsts(b)
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
		p.line("  " + clean(s.Components[i].Title) + ", median")
		p.table(components(&s.Components[i]))
	}
	for i := range s.Timelines {
		t := &s.Timelines[i]
		p.line("")
		p.line("  " + clean(t.Title) + " over time: mean, smallest to largest value")
		p.table(timelines(t))
	}
	if shown := finding.ShownTrials(s); shown != "" {
		p.wrapped("  ", "Timelines are of "+shown)
	}
}

// beside writes the means and deciles that differ in another way than the typical value.
func (p *printer) beside(b *analysis.Benchmark) {
	for i := range b.Metrics {
		m := &b.Metrics[i]
		for _, r := range m.Rows {
			c := &r.Cells[0]
			if text := quantity.Details(c.Comparison, m.Metric, c.Summary, m.BaselineSummary(0)); text != "" {
				p.wrapped("  "+clean(r.Target)+" "+clean(m.Name)+": ", text)
			}
		}
	}
}

// trends writes the slope of each series with a trend, and its knee.
func (p *printer) trends(b *analysis.Benchmark) {
	for _, m := range b.Trends() {
		p.line("")
		p.line("  Trend of " + clean(m.Name) + " per " + clean(m.Trend))
		width := 0
		for _, r := range m.Rows {
			width = max(width, utf8.RuneCountInString(clean(r.Target)))
		}
		for _, r := range m.Rows {
			if t := r.Cells[0].Trend; t != nil {
				p.wrapped("  "+lead(r.Target, width), quantity.Slope(t, m.Unit)+"; "+finding.TrendNote(t, m.Unit))
			}
		}
	}
	if len(b.Trends()) > 0 {
		p.line("")
		p.wrapped("  ", finding.TrendLegend)
	}
}

// worsts writes the worst case of each time that has one.
func (p *printer) worsts(b *analysis.Benchmark) {
	for _, m := range b.Worsts() {
		p.line("")
		p.line("  Worst case of " + clean(m.Name))
		width := 0
		for _, r := range m.Rows {
			width = max(width, utf8.RuneCountInString(clean(r.Target)))
		}
		for _, r := range m.Rows {
			if w := r.Cells[0].Worst; w != nil {
				text := finding.Largest(w, m.Unit) + "; " + finding.Bounds(w, m.Unit)
				if rarer := finding.Rarer(w); rarer != "" {
					text += "; " + rarer
				}
				p.wrapped("  "+lead(r.Target, width), text)
			}
		}
	}
	if len(b.Worsts()) > 0 {
		p.line("")
		p.wrapped("  ", finding.WorstLegend)
	}
}

// stated writes the results in words, a paragraph for each target. They can be long messages, so columns would not fit.
func (p *printer) stated(s *analysis.Section) {
	rows := s.StatedRows()
	var column int
	for _, r := range rows {
		column = max(column, utf8.RuneCountInString(clean(r.Target)))
	}
	if len(rows) > 0 {
		p.line("")
	}
	for _, r := range rows {
		lead := "  " + p.padded(clean(r.Target), column+gap, plain, false)
		for i, text := range r.Texts {
			if text == "" {
				continue
			}
			if i > 0 {
				text = s.Stated[i].Name + ": " + text
			}
			p.wrapped(lead, text)
			lead = strings.Repeat(" ", utf8.RuneCountInString(lead))
		}
	}
}

// about describes the section of the only run.
func (p *printer) about(s *analysis.Section) string {
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
	if len(s.Zero) > 0 {
		about += "; no ratio to the 0 of " + s.Baseline + ": " + strings.Join(s.Zero, ", ")
	}
	return about
}

// sideBySide writes a table for each metric, with a column for each run.
func (p *printer) sideBySide(b *analysis.Benchmark) {
	if b.Note != "" && b.Baseline == "" {
		p.alarm(b.Note + ".")
	}
	for _, c := range b.Conditions {
		if c.Differs {
			p.wrapped("  ", "The conditions differ: "+c.Name()+" "+p.byRun(c, ""))
		}
	}
	var runs []int
	heads := []entry{{}}
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
			about += "; no ratio, because " + m.WhyUnbased(clean(b.Baseline))
		}
		p.line("")
		p.wrappedIn(bold, "  ", clean(m.Name)+": "+about)
		t := table{heads}
		for n := range m.Rows {
			row := &m.Rows[n]
			if !row.Has() {
				continue
			}
			cells := []entry{heading(row.Target, row.Baseline)}
			for _, run := range runs {
				cells = append(cells, sideField(m, &row.Cells[run]))
			}
			t = append(t, cells)
		}
		p.table(t)
		if p.report.AcrossMachines {
			p.across(m)
		}
	}
}

// sideField is the factor with the verdict, its interval, and the absolute value.
func sideField(m *analysis.Metric, c *analysis.Cell) entry {
	if c.Summary == nil {
		return entry{top: quantity.None, below: c.Lack, style: dim}
	}
	e := verdict(c.Comparison, m.Metric)
	switch median := value(m, c); {
	case c.Baseline:
		return entry{top: median, below: "baseline", style: dim}
	case c.Comparison == nil:
		return entry{top: median}
	default:
		interval := quantity.FactorInterval(c.Comparison)
		if e.third != "" {
			interval += ", " + e.third
		}
		return entry{top: e.below, lead: e.style, below: interval, third: median}
	}
}

// across writes the typical ratios to the first run.
func (p *printer) across(m *analysis.Metric) {
	t := table{{{}}}
	for _, r := range p.report.Runs[1:] {
		t[0] = append(t[0], entry{top: clean(r.Label)})
	}
	for _, r := range m.Rows {
		row := []entry{heading(r.Target, false)}
		has := false
		for _, c := range r.Cells[1:] {
			e := entry{top: quantity.None}
			if c.Across != nil {
				has = true
				e = entry{top: quantity.Ratio(c.Across, m.Metric), below: quantity.FactorInterval(c.Across)}
			}
			row = append(row, e)
		}
		if has {
			t = append(t, row)
		}
	}
	if len(t) > 1 {
		p.line("")
		p.wrapped("  ", "Across runs: the typical ratio of "+m.Name+" to that on "+p.report.Runs[0].Label)
		p.table(t)
	}
}

// layers writes the addition of each layer. The process is native's row.
func (p *printer) layers(l *analysis.Layers) {
	p.line("")
	p.line("  Layers of " + clean(l.Metric.Name))
	t := table{{{}, {top: "whole"}}}
	unclear := false
	for _, name := range analysis.LayerNames()[analysis.RuntimeLayer:] {
		first, rest, _ := strings.Cut(name, " ")
		t[0] = append(t[0], entry{top: first, below: rest})
	}
	t[0] = append(t[0], entry{top: "remainder"})
	for _, s := range l.Stacks {
		row := slices.Repeat([]entry{{top: quantity.None}}, len(t[0]))
		row[0] = heading(s.Target, false)
		row[1] = entry{top: quantity.Difference(s.Total, l.Metric.Unit)}
		for _, part := range s.Parts {
			if part.Last == analysis.ProcessLayer {
				continue
			}
			for layer := max(part.First, analysis.RuntimeLayer); layer < part.Last; layer++ {
				row[1+layer] = entry{top: "→"}
			}
			last := &row[1+part.Last]
			*last = entry{top: quantity.Difference(part.Difference, l.Metric.Unit)}
			if part.Unclear() {
				unclear = true
				last.below, last.style = "not shown", dim
			}
		}
		if len(s.Parts) > 1 {
			row[len(row)-1].top = quantity.Signed(s.Remainder, l.Metric.Unit)
		}
		t = append(t, row)
	}
	p.table(t)
	p.line("")
	for _, n := range finding.LayerNotes(l) {
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
func components(c *analysis.Components) table {
	t := table{{{}, {top: "together"}}}
	for _, name := range c.Names {
		t[0] = append(t[0], entry{top: clean(name)})
	}
	for _, r := range c.Rows {
		row := []entry{heading(r.Target, false), {top: quantity.Text(r.Total.Median, c.Unit)}}
		for _, cell := range r.Cells {
			e := entry{top: quantity.None}
			if cell != nil {
				e.top = quantity.Text(cell.Median, c.Unit)
			}
			row = append(row, e)
		}
		t = append(t, row)
	}
	return t
}

// timelines is the table of a group of timelines.
func timelines(t *analysis.Timelines) table {
	out := table{{{}}}
	for _, name := range t.Names {
		out[0] = append(out[0], entry{top: clean(name)})
	}
	for _, p := range t.Panels {
		row := []entry{heading(p.Target, false)}
		for _, l := range p.Lines {
			e := entry{top: quantity.None}
			if l != nil {
				e.below = quantity.Range(l.Min, l.Max, t.Unit)
				if l.Mean != nil {
					e.top = quantity.Signed(*l.Mean, t.Unit)
				}
			}
			row = append(row, e)
		}
		out = append(out, row)
	}
	return out
}

// byPresence separates metrics that the baseline and other targets lack by their nature, if there are several.
func byPresence(b *analysis.Benchmark) (common, partial []*analysis.Metric) {
	var all []*analysis.Metric
	for i := range b.Metrics {
		m := &b.Metrics[i]
		all = append(all, m)
		if m.Unbased() && slices.ContainsFunc(m.Rows, func(r analysis.Row) bool { return r.Cells[0].Absent }) {
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
func metrics(b *analysis.Benchmark, some []*analysis.Metric) table {
	t := table{{{}}}
	for _, m := range some {
		t[0] = append(t[0], entry{top: clean(m.Name)})
	}
	for i, o := range b.Sections[0].Targets {
		if !slices.ContainsFunc(some, func(m *analysis.Metric) bool { return !m.Rows[i].Cells[0].Absent }) {
			continue
		}
		row := []entry{heading(o.Target, o.Target == b.Baseline)}
		for _, m := range some {
			row = append(row, field(m, &m.Rows[i].Cells[0]))
		}
		t = append(t, row)
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
func field(m *analysis.Metric, c *analysis.Cell) entry {
	if c.Summary == nil {
		return entry{top: quantity.None, below: c.Lack, style: dim}
	}
	e := verdict(c.Comparison, m.Metric)
	e.top = value(m, c)
	return e
}

// value is the median, marked if it exceeds the bound of the metric.
func value(m *analysis.Metric, c *analysis.Cell) string {
	median := quantity.Median(c.Summary, m.Unit)
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
	e := entry{below: quantity.DecidingFactor(c, m), style: dim}
	word := quantity.VerdictWord(c.Verdict, m)
	if quantity.Tier(c) != "" {
		e.below += " " + quantity.AloneMark
	}
	switch c.Verdict {
	case stats.Faster:
		e.style, e.third = green, quantity.DecidingPart(c, m)
		return e
	case stats.Slower:
		e.style, e.third = red, quantity.DecidingPart(c, m)
		return e
	case stats.Mixed:
		word = quantity.Parts(c, m)
	case stats.NoDifference:
		word = "no diff."
	case stats.TooNoisy, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Negligible, stats.Withheld:
	}
	if e.below == quantity.None {
		return entry{below: word, style: dim}
	}
	e.third = word
	return e
}

// phases is the table of median durations of the phases, if any target has several. Steps are columns behind their phase,
// except steps that are metrics.
func phases(b *analysis.Benchmark) (table, bool) {
	type column struct{ phase, step string }
	var columns []column
	t := table{{{}}}
	add := func(of column, title string, times int) {
		if slices.Contains(columns, of) {
			return
		}
		at := len(columns)
		for i, c := range columns {
			if c.phase == of.phase {
				at = i + 1
			}
		}
		if times > 1 {
			title += fmt.Sprintf(" (each of %d)", times)
		}
		columns = slices.Insert(columns, at, of)
		t[0] = slices.Insert(t[0], 1+at, entry{top: clean(title)})
	}
	several := false
	var rows []map[column]string
	for _, o := range b.Sections[0].Targets {
		several = several || len(o.Phases) > 2
		row := map[column]string{}
		for _, ph := range o.Phases {
			add(column{ph.Name, ""}, ph.Name, ph.Times)
			row[column{ph.Name, ""}] = quantity.Text(ph.Seconds, result.Seconds)
			for _, step := range ph.Steps {
				if !slices.ContainsFunc(b.Metrics, func(m analysis.Metric) bool { return m.Name == step.Name }) {
					add(column{ph.Name, step.Name}, "/"+step.Name, step.Times)
					row[column{ph.Name, step.Name}] = quantity.Text(step.Seconds, result.Seconds)
				}
			}
		}
		rows = append(rows, row)
	}
	for i, o := range b.Sections[0].Targets {
		if len(o.Phases) == 0 {
			continue
		}
		row := []entry{{top: clean(o.Target)}}
		for _, c := range columns {
			row = append(row, entry{top: cmp.Or(rows[i][c], quantity.None)})
		}
		t = append(t, row)
	}
	return t, several
}

func (p *printer) table(t table) {
	for _, part := range t.parts(p.width - 2) {
		p.line("")
		for r := range t {
			p.row(t, r, part)
		}
	}
}

// row writes the lines of a row, with some of its columns.
func (p *printer) row(t table, r int, part []int) {
	head := t[r][0]
	var lines [3]string
	last := min(1, len(head.below)) // the last line with text
	for i, s := range []string{head.top, head.below, ""} {
		lines[i] = "  " + p.padded(s, t.columnWidth(0), plain, false)
	}
	for _, c := range part {
		e := t[r][c]
		styles := []style{e.lead, e.style, dim}
		if r == 0 {
			styles = []style{bold, bold, dim}
		}
		for i, s := range []string{e.top, e.below, e.third} {
			lines[i] += p.padded(s, gap+t.columnWidth(c), styles[i], true)
			if s != "" {
				last = max(last, i)
			}
		}
	}
	for _, l := range lines[:last+1] {
		p.line(l)
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
