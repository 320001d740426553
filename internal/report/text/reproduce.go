package text

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
)

// mostComparisons is the largest number of comparisons of a claim in the text.
const mostComparisons = 2

// WriteReproduction writes the comparison of a paper with its runs: the claims first, then the tables.
func WriteReproduction(w io.Writer, r *reproduce.Reproduction, opts Options) error {
	if opts.Width == 0 {
		opts.Width = defaultWidth
	}
	p := &printer{width: max(opts.Width, leastWidth), color: opts.Color}
	p.line(p.styled("Touchstone  "+r.Heading(), bold))
	if note := r.Emulation(); note != "" {
		p.wrappedIn(red, alarmMark, note)
	}
	if note := r.Origin(); note != "" {
		p.wrappedIn(red, alarmMark, note)
	}
	p.wrapped("Paper    ", r.Paper.Citation())
	for i := range r.Runs {
		run := &r.Runs[i].Runs[0]
		p.wrapped("Run      ", fmt.Sprintf("%s, %s, %s, %s", run.Name, run.ID, started(run), finding.State(run)))
		if i == 0 {
			p.wrapped("Host     ", host(run))
		}
		p.wrapped("Targets  ", targets(run))
	}
	p.claims(r)
	for i := range r.Tables {
		p.reproduced(&r.Tables[i])
	}
	p.title("Method")
	for _, note := range r.Method() {
		p.wrapped("  ", note)
	}
	if _, err := io.WriteString(w, p.out.String()); err != nil {
		return fmt.Errorf("write reproduction: %w", err)
	}
	return nil
}

// claims writes the claims with their verdicts, and the comparisons of those that do not agree. Claims that were not measured follow, by
// their reasons.
func (p *printer) claims(r *reproduce.Reproduction) {
	p.title("Claims: " + r.Summary())
	width := 0
	for _, v := range []reproduce.Verdict{reproduce.Agrees, reproduce.Disagrees, reproduce.CannotTell} {
		width = max(width, utf8.RuneCountInString(string(v)))
	}
	styles := map[reproduce.Verdict]style{reproduce.Agrees: green, reproduce.Disagrees: red, reproduce.CannotTell: bold}
	indent := strings.Repeat(" ", width+4)
	for i := range r.Claims {
		c := &r.Claims[i]
		if c.Verdict == reproduce.NotMeasured {
			continue
		}
		p.marked("  "+fmt.Sprintf("%-*s  ", width, c.Verdict), styles[c.Verdict], c.Text+" ("+c.Place+")")
		if c.Reason != "" {
			p.wrappedIn(dim, indent, c.Reason)
		}
		if c.Verdict != reproduce.Agrees {
			p.contrary(c, indent)
		}
	}
	for _, reason := range r.Reasons() {
		p.line("")
		p.wrapped("  ", "Not measured: "+reason)
		for i := range r.Claims {
			if c := &r.Claims[i]; c.Verdict == reproduce.NotMeasured && c.Reason == reason {
				p.wrapped("  – ", c.Text+" ("+c.Place+")")
			}
		}
	}
}

// contrary writes the first comparisons with the verdict of their claim.
func (p *printer) contrary(c *reproduce.Claim, indent string) {
	var all []*reproduce.Comparison
	for i := range c.Comparisons {
		if k := &c.Comparisons[i]; k.Compared != nil && k.Verdict == c.Verdict {
			all = append(all, k)
		}
	}
	for _, k := range all[:min(len(all), mostComparisons)] {
		p.wrapped(indent, fmt.Sprintf("%s: %s is %s against %s; claimed: %s", reproduce.Title(k.Of), k.Target, k.Ratio(), k.Other, c.Stated()))
	}
	if more := len(all) - mostComparisons; more > 0 {
		p.wrapped(indent, fmt.Sprintf("and %d more", more))
	}
}

// marked is wrapped with a style for the lead alone.
func (p *printer) marked(lead string, st style, text string) {
	before := p.out.Len()
	p.wrapped(lead, text)
	if p.color {
		written := p.out.String()
		p.out.Reset()
		p.out.WriteString(written[:before] + p.styled(lead, st) + strings.TrimPrefix(written[before:], lead))
	}
}

// reproduced writes a table of the paper: the printed value, our value, and the two ratios to the reference.
func (p *printer) reproduced(t *reproduce.Table) {
	p.title(clean(t.Name + "  " + t.Title))
	about := t.Place
	if t.Reason == "" {
		about += "; each cell: the printed value, the median " + t.Where
		if t.Reference != "" {
			about += ", the ratios to " + t.Reference + ": in the study, " + t.Where
		}
	}
	p.wrapped("  ", about)
	if t.Reason != "" {
		p.wrapped("  ", "Not measured: "+t.Reason)
		return
	}
	out := table{{{}}}
	for _, c := range t.Columns {
		out[0] = append(out[0], entry{top: clean(c.Heading)})
	}
	for i, row := range t.Rows {
		line := []entry{{top: clean(row.Label), below: clean(row.Group)}}
		for n := range t.Columns {
			if n >= len(t.Cells[i]) {
				line = append(line, entry{})
				continue
			}
			line = append(line, reproducedCell(&t.Cells[i][n]))
		}
		out = append(out, line)
	}
	p.table(out)
	for _, reason := range t.Lacks() {
		p.wrapped("  ", "– "+reason)
	}
	for _, flag := range t.Flags() {
		p.wrapped("  ", "! "+flag)
	}
}

func reproducedCell(c *reproduce.Cell) entry {
	printed := clean(c.Printed)
	if printed == "" {
		printed = quantity.None
	}
	if c.Flag != "" {
		printed += " !"
	}
	e := entry{top: printed, below: c.Value(), style: bold}
	if c.Ours == nil {
		e.style = dim
	}
	ours, published := c.OurRatio(), c.PublishedRatio()
	switch {
	case c.Reference && c.Ours != nil:
		e.third = "reference"
	case ours != "" && published != "":
		e.third = published + ", " + ours
	case ours != "":
		e.third = quantity.None + ", " + ours
	case published != "":
		e.third = published + ", " + quantity.None
	}
	return e
}
