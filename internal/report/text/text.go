// Package text writes a report for a terminal: first what was measured where and what it
// shows, then a table for each benchmark, then what makes the numbers less trustworthy.
//
// It is the first screen that a user sees, so it keeps to what a screen carries: the
// median with the larger half of its interval, the ratio to the baseline, the verdict. All
// else is in the HTML and JSON reports. Colour repeats what words say and is off by default.
//
// Text that comes from programs loses its control characters, so that no runtime can write
// to the terminal through a report.
package text

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Options say what the terminal can show.
type Options struct {
	// Width is the number of columns; 0 stands for 100, less than 60 for 60.
	Width int
	// Color allows ANSI escapes for bold, dim, green and red.
	Color bool
}

const (
	defaultWidth = 100
	leastWidth   = 60
	// mostItems is the number of warnings of one kind that are shown.
	mostItems = 4
	// mostBreaches is the number of limits that do not hold that are shown at the top.
	mostBreaches = 8
)

// Write writes m to w.
func Write(w io.Writer, m report.Model, opts Options) error {
	if opts.Width == 0 {
		opts.Width = defaultWidth
	}
	p := &printer{width: max(opts.Width, leastWidth), color: opts.Color}
	p.headline(&m)
	p.findings(&m)
	for _, s := range m.Suites {
		for i := range s.Benchmarks {
			p.benchmark(&s.Benchmarks[i])
		}
	}
	p.unmeasured(&m)
	p.legend(&m)
	p.warnings(&m)
	p.missing(&m)
	if _, err := io.WriteString(w, p.out.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// style is how a piece of text is set off. Each is an ANSI code.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	red   style = "31"
	green style = "32"
)

type printer struct {
	out   strings.Builder
	width int
	color bool
}

func (p *printer) styled(s string, st style) string {
	if !p.color || st == plain || s == "" {
		return s
	}
	return "\x1b[" + string(st) + "m" + s + "\x1b[0m"
}

func (p *printer) line(s string) {
	p.out.WriteString(strings.TrimRight(s, " "))
	p.out.WriteByte('\n')
}

// title begins a section.
func (p *printer) title(s string) {
	p.line("")
	p.line(p.styled(s, bold))
}

// wrapped writes text that may be long: the first line after lead, the others indented as far.
func (p *printer) wrapped(lead, text string) { p.wrappedIn(plain, lead, text) }

// wrappedIn is wrapped in a style.
func (p *printer) wrappedIn(st style, lead, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	current := lead
	empty := true
	for _, word := range strings.Fields(clean(text)) {
		if !empty && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > p.width {
			p.line(p.styled(current, st))
			current, empty = indent, true
		}
		if !empty {
			current += " "
		}
		current += word
		empty = false
	}
	p.line(p.styled(current, st))
}

// clean takes control characters out of text.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		default:
			return r
		}
	}, s)
}

func (p *printer) headline(m *report.Model) {
	r := &m.Run
	state := string(r.State)
	if !r.Ended.IsZero() {
		state += " after " + r.Ended.Sub(r.Started).Round(time.Second).String()
	}
	name := r.Name
	if name == "" {
		name = "without a name"
	}
	p.line(p.styled("Touchstone "+clean(r.Tool.Version)+"  "+clean(name), bold))
	p.wrapped("Run      ", fmt.Sprintf("%s, %s, %s", r.ID, r.Started.UTC().Format("2006-01-02 15:04 UTC"), state))
	p.wrapped("Host     ", host(&r.Host))
	p.wrapped("Targets  ", targets(m))
	for _, i := range r.Images {
		p.wrapped("Image    ", report.ImageText(i))
	}
	p.wrapped("Trials   ", trials(m))
}

func host(h *result.Host) string {
	parts := []string{fmt.Sprintf("%s: %s, %d CPUs", h.Hostname, h.CPU, h.CPUs), report.Quantity(float64(h.Memory), result.Bytes), h.OS, "kernel " + h.Kernel, "cgroup " + h.Cgroup}
	if h.Nature() != result.Physical {
		parts = append(parts, h.NatureText())
	}
	if !h.Root {
		parts = append(parts, "not root")
	}
	return strings.Join(parts, ", ")
}

func targets(m *report.Model) string {
	var parts []string
	for _, t := range m.Targets {
		s := t.Name
		switch {
		case t.Unavailable != "" && t.OK == 0:
			s += " (not available)"
		case t.Name == m.Run.Baseline:
			s += " (baseline)"
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func trials(m *report.Model) string {
	r := &m.Run
	lo, hi := blocks(m)
	out := fmt.Sprintf("%d blocks", hi)
	if lo != hi {
		out = fmt.Sprintf("%d to %d blocks", lo, hi)
	}
	for _, s := range []result.Status{result.OK, result.Failed, result.Timeout, result.Skipped} {
		if n := r.Counts[s]; n > 0 || s == result.OK {
			out += fmt.Sprintf(", %d %s", n, report.StatusWord(s))
		}
	}
	if r.Warmup > 0 {
		out += fmt.Sprintf(", %d warm-up", r.Warmup)
	}
	return out
}

// blocks is the least and the greatest number of blocks of a benchmark.
func blocks(m *report.Model) (lo, hi int) {
	lo = -1
	for _, s := range m.Suites {
		for _, b := range s.Benchmarks {
			hi = max(hi, b.Blocks)
			if lo < 0 || b.Blocks < lo {
				lo = b.Blocks
			}
		}
	}
	return max(lo, 0), hi
}

func (p *printer) findings(m *report.Model) {
	f := &m.Findings
	p.title("Findings")
	for i, b := range f.Breaches {
		if i == mostBreaches && len(f.Breaches) > mostBreaches+1 {
			p.line(fmt.Sprintf("  ! and %d more, at their benchmarks", len(f.Breaches)-i))
			break
		}
		p.alarm(b.String())
	}
	switch {
	case f.Comparisons == "":
		p.line("  There is nothing to compare.")
	case len(f.Statements) == 0:
		p.line("  No difference between targets is shown.")
	}
	for i, s := range f.Statements {
		p.wrapped(fmt.Sprintf("%3d. ", i+1), s)
	}
	if f.Comparisons != "" {
		p.wrapped("  ", f.Comparisons)
	}
	if len(f.NotMeasured) > 0 {
		p.line("  Not measured:")
		for _, s := range f.NotMeasured {
			p.wrapped("  - ", s)
		}
	}
}

// alarm writes what does not hold.
func (p *printer) alarm(text string) {
	p.wrappedIn(red, "  "+alarmMark, text)
}

// alarmMark stands before what does not hold, also before the number.
const alarmMark = "! "

func (p *printer) unmeasured(m *report.Model) {
	if len(m.Unmeasured) == 0 {
		return
	}
	p.title("Not measured")
	for _, u := range m.Unmeasured {
		for i, r := range u.Reasons {
			text := r.Text
			if r.Targets != nil {
				text = strings.Join(r.Targets, ", ") + ": " + text
			}
			if i == 0 {
				text = strings.Join(u.Benchmarks, ", ") + " – " + text
			}
			p.wrapped([]string{"  - ", "    "}[min(i, 1)], text)
		}
	}
}

func (p *printer) legend(m *report.Model) {
	if len(m.Suites) == 0 {
		return
	}
	p.title("How to read the tables")
	p.wrapped("  ", "Each number is the median over blocks ± the larger half of its 95 % bootstrap interval; × is the ratio to the baseline (*), "+
		"paired by block. A verdict stands where Holm's correction over the targets of a metric leaves less than 5 % for a false one; "+
		`"no diff." is: no difference shown, which is no proof of equality. A metric of which a trial takes many values counts with its median in each trial.`)
}

func (p *printer) warnings(m *report.Model) {
	for _, g := range m.Warnings {
		p.title("Warning: " + g.Title)
		for i, item := range g.Items {
			if i == mostItems && len(g.Items) > mostItems+1 {
				p.line(fmt.Sprintf("  - and %d more, in the HTML and JSON reports", len(g.Items)-i))
				break
			}
			p.wrapped("  - ", item)
		}
		if g.Advice != "" {
			p.wrapped("  → ", g.Advice)
		}
	}
}

func (p *printer) missing(m *report.Model) {
	groups := m.MissingGroups()
	if len(groups) == 0 {
		return
	}
	p.title("Trials without a number")
	for _, miss := range groups {
		p.wrapped("  - ", fmt.Sprintf("%s on %s: %d of %d %s: %s",
			miss.Title(), strings.Join(miss.Targets, ", "), miss.Count, miss.Total, report.StatusWord(miss.Status), miss.Reason))
	}
}
