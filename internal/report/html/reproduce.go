package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

//go:embed reproduce.css
var reproduceStyle string

// mostInline is the largest number of comparisons of a claim that are open at first.
const mostInline = 3

// WriteReproduction writes the comparison of a paper with its runs as one HTML file, the same bytes for the same comparison. links are the
// addresses of the reports of the runs, by run; an empty one is left out.
func WriteReproduction(w io.Writer, r *reproduce.Reproduction, links []string) error {
	return write(w, "reproduce.html", newReproduction(r, links))
}

// reproduction is the input of the template.
type reproduction struct {
	Policy, Title, Citation, Emulation string
	Where, Origin                      string
	Style                              template.CSS
	Facts                              []field
	Counts                             []verdictCount
	Omitted                            int
	Claims                             []claimRow
	Unmeasured                         []unmeasuredClaims
	Tables                             []printedTable
	Figures                            []redrawn
	Runs                               []reproductionRun
	Caveats, Method                    []string
}

type verdictCount struct {
	Class, Word string
	Count       int
}

type claimRow struct {
	ID, Class, Verdict                string
	Text, Place, Stated, Note, Reason string
	// Many is set if the comparisons are closed at first.
	Many        bool
	Comparisons []comparisonRow
}

// unmeasuredClaims are the claims that were not measured for one reason.
type unmeasuredClaims struct {
	Reason string
	Claims []claimRow
}

// comparisonRow is a comparison in words. Verdict is empty if it is the claim's own.
type comparisonRow struct{ Value, Verdict, What, Ratio, Reason string }

type printedTable struct {
	ID, Name, Caption, Place, Reference, Reason, Legend string
	Columns                                             []string
	Rows                                                []printedRow
	// Plots have the paper's ratios beside ours, a plot for each target.
	Plots   []sides
	Remarks []string
}

type printedRow struct {
	Label, Group string
	Cells        []printedCell
}

type printedCell struct {
	Printed, Flag, Title, Ours string
	// Ratios are the ratio in the study and ours, as far as they exist.
	Ratios []string
}

// redrawn is a figure from our values.
type redrawn struct {
	Name, Caption, Reason string
	Strips                []strip
	Curves                []curve
}

type reproductionRun struct {
	Name, Link, Facts string
	Targets           []analysis.Target
}

func newReproduction(r *reproduce.Reproduction, links []string) *reproduction {
	css := style + reproduceStyle
	host := r.Runs[0].Runs[0].Host
	p := &reproduction{
		Policy: web.Policy(css), Style: template.CSS(css), Title: r.Heading(), Citation: r.Paper.Citation(), Emulation: r.Emulation(),
		Omitted: r.Omitted, Method: r.Method(), Where: r.Where(), Origin: r.Origin(),
		Facts: []field{
			{Name: "Date", Text: started(&r.Runs[0].Runs[0])},
			{Name: "Host", Text: fmt.Sprintf("%s, %d CPUs, %s", host.CPU, host.CPUs, quantity.Text(float64(host.Memory), result.Bytes))},
			{Name: "System", Text: fmt.Sprintf("%s, kernel %s, %s", host.OS, host.Kernel, host.NatureText())},
		},
	}
	for _, v := range reproduce.Verdicts() {
		p.Counts = append(p.Counts, verdictCount{Class: verdictClass(v), Word: counted[v], Count: r.Counts()[v]})
	}
	for i := range r.Claims {
		if c := &r.Claims[i]; c.Verdict != reproduce.NotMeasured {
			p.Claims = append(p.Claims, newClaimRow(c))
		}
	}
	for _, reason := range r.Reasons() {
		u := unmeasuredClaims{Reason: reason}
		for i := range r.Claims {
			if c := &r.Claims[i]; c.Verdict == reproduce.NotMeasured && c.Reason == reason {
				u.Claims = append(u.Claims, newClaimRow(c))
			}
		}
		p.Unmeasured = append(p.Unmeasured, u)
	}
	for i := range r.Tables {
		p.Tables = append(p.Tables, newPrintedTable(&r.Tables[i]))
	}
	var metrics []analysis.Metric
	for i := range r.Figures {
		metrics = append(metrics, r.Figures[i].Metrics...)
	}
	room := newRoom(metrics)
	for i := range r.Figures {
		p.Figures = append(p.Figures, newRedrawn(&r.Figures[i], room))
	}
	for i := range r.Runs {
		run := &r.Runs[i].Runs[0]
		entry := reproductionRun{Name: run.Name, Targets: run.Targets, Facts: fmt.Sprintf("%s, %s, %s", run.ID, started(run), finding.State(run))}
		if i < len(links) {
			entry.Link = links[i]
		}
		p.Runs = append(p.Runs, entry)
		for _, caveat := range run.Caveats {
			if !slices.Contains(p.Caveats, caveat) {
				p.Caveats = append(p.Caveats, caveat)
			}
		}
	}
	return p
}

// counted are the verdicts of several claims.
var counted = map[reproduce.Verdict]string{
	reproduce.Agrees: "agree", reproduce.Disagrees: "disagree", reproduce.CannotTell: "cannot tell", reproduce.NotMeasured: "not measured",
}

func verdictClass(v reproduce.Verdict) string { return strings.ReplaceAll(string(v), " ", "-") }

func newClaimRow(c *reproduce.Claim) claimRow {
	row := claimRow{
		ID: "claim-" + c.Name, Class: verdictClass(c.Verdict), Verdict: string(c.Verdict), Text: c.Text, Place: c.Place, Stated: c.Stated(), Note: c.Note,
		Reason: c.Reason, Many: len(c.Comparisons) > mostInline,
	}
	for i := range c.Comparisons {
		k := &c.Comparisons[i]
		one := comparisonRow{Value: reproduce.Title(k.Of), What: fmt.Sprintf("%s, %s against %s", reproduce.Short(k.Of), k.Target, k.Other)}
		if k.Verdict != c.Verdict {
			one.Verdict = string(k.Verdict)
		}
		if k.Compared != nil {
			one.Ratio = k.Ratio()
		}
		if k.Reason != c.Reason {
			one.Reason = k.Reason
		}
		row.Comparisons = append(row.Comparisons, one)
	}
	return row
}

func newPrintedTable(t *reproduce.Table) printedTable {
	out := printedTable{
		ID: strings.NewReplacer(" ", "-", ".", "-").Replace(t.Name), Name: t.Name, Caption: t.Title, Place: t.Place, Reference: t.Reference, Reason: t.Reason,
		Plots: ratioPlots(t), Remarks: append(t.Lacks(), t.Flags()...), Legend: "Bold: the printed value. Below: the median " + t.Where,
	}
	if t.Reference != "" {
		out.Legend += ", then the ratio to the reference: in the study, and " + t.Where + " with its 95 % interval"
	}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, c.Heading)
	}
	for i, row := range t.Rows {
		line := printedRow{Label: row.Label, Group: row.Group}
		for n := range t.Cells[i] {
			line.Cells = append(line.Cells, newPrintedCell(&t.Cells[i][n], t.Where))
		}
		out.Rows = append(out.Rows, line)
	}
	if t.Reason != "" {
		out.Remarks = t.Flags()
	}
	return out
}

func newPrintedCell(c *reproduce.Cell, place string) printedCell {
	out := printedCell{Printed: c.Printed, Flag: c.Flag, Title: c.Reason}
	if out.Printed == "" {
		out.Printed = quantity.None
	}
	if c.Ours != nil {
		out.Ours, out.Title = c.Value(), c.Of.Target+", "+reproduce.Title(c.Of)
	}
	if c.Reference && c.Ours != nil {
		out.Ratios = []string{"reference"}
		return out
	}
	if ratio := c.PublishedRatio(); ratio != "" {
		out.Ratios = append(out.Ratios, "study × "+ratio)
	}
	if ratio := c.OurRatio(); ratio != "" {
		out.Ratios = append(out.Ratios, place+" × "+ratio)
	}
	return out
}

// ratioPlots draws the ratios of each target, with a lane for each of its values. It leaves out values that were not measured.
func ratioPlots(t *reproduce.Table) []sides {
	var targets []string
	for _, row := range t.Cells {
		for i := range row {
			if c := &row[i]; drawnRatio(c) && !slices.Contains(targets, c.Of.Target) {
				targets = append(targets, c.Of.Target)
			}
		}
	}
	var list []sides
	for _, target := range targets {
		if s, ok := ratioPlot(t, target); ok {
			list = append(list, s)
		}
	}
	return list
}

// drawnRatio reports whether a cell has a ratio of ours that an axis can show.
func drawnRatio(c *reproduce.Cell) bool {
	return c.Ratio != nil && c.Ratio.Ratio > 0 && !math.IsInf(c.Ratio.Ratio, 0)
}

func ratioPlot(t *reproduce.Table, target string) (sides, bool) {
	values := []float64{1}
	type lane struct {
		name string
		cell *reproduce.Cell
	}
	var lanes []lane
	for i, row := range t.Cells {
		for n := range row {
			c := &row[n]
			if c.Of.Target != target || !drawnRatio(c) {
				continue
			}
			name := t.Rows[i].Label
			if t.Columns[n].Of.Target == "" { // the rows are targets
				name = t.Columns[n].Heading
				if t.Rows[i].Of.Item != "" {
					name = t.Rows[i].Of.Item + " " + name
				}
			}
			lanes = append(lanes, lane{name, c})
			values = append(values, c.Ratio.Ratio)
			if !math.IsNaN(c.Published) && c.Published > 0 {
				values = append(values, c.Published)
			}
			if ci := c.Ratio.CI; ci != nil {
				values = append(values, ci.Lo, ci.Hi)
			}
		}
	}
	const caption = "ratio to the reference"
	s := sides{Metric: target, Caption: caption, Width: web.Num(figureWidth), Legend: []runHead{{Key: keyOf(0), Label: "the study"}, {Key: keyOf(1), Label: t.Where}}}
	var ok bool
	if s.Axis, ok = web.NewAxis(values, result.Score, margin, figureWidth-margin); !ok {
		return sides{}, false
	}
	height := sideTop + sideStep*2 + 4
	bottom := height * float64(len(lanes))
	s.Height, s.AxisY, s.LabelY, s.One = web.Num(bottom+axisHeight), web.Num(bottom), web.Num(bottom+15), web.Num(s.Axis.At(1))
	alt := []string{target + ", " + caption}
	for i, l := range lanes {
		y := height * float64(i)
		lane := sideLane{Name: web.Shorten(l.name, longestName), Full: l.name, LabelY: web.Num(y + 13)}
		draw := func(n int, ratio float64, ci *stats.Interval, text string) {
			middle := y + sideTop + sideStep*float64(n) + 2
			m := mark{Class: "side full " + web.Colour(n), Colour: web.Colour(n), Path: web.Shape(n, s.Axis.At(ratio), middle, sideRadius), Title: text}
			if ci != nil {
				m.Whisker = fmt.Sprintf("M%s %sH%s", web.Num(s.Axis.At(ci.Lo)), web.Num(middle), web.Num(s.Axis.At(ci.Hi)))
			}
			lane.Marks = append(lane.Marks, m)
			alt = append(alt, l.name+" "+text)
		}
		if !math.IsNaN(l.cell.Published) && l.cell.Published > 0 {
			draw(0, l.cell.Published, nil, "in the study: "+l.cell.PublishedRatio())
		}
		draw(1, l.cell.Ratio.Ratio, l.cell.Ratio.CI, t.Where+": "+l.cell.OurRatio())
		s.Lanes = append(s.Lanes, lane)
	}
	s.Alt = strings.Join(alt, "; ")
	return s, true
}

func newRedrawn(f *reproduce.Figure, r room) redrawn {
	out := redrawn{Name: f.Name, Caption: f.Title, Reason: f.Reason}
	for i := range f.Metrics {
		m := &f.Metrics[i]
		out.Strips = append(out.Strips, newStrip(m, r.dots))
		if c := newCurve(m, "place", r); c != nil {
			out.Curves = append(out.Curves, *c)
		}
	}
	return out
}
