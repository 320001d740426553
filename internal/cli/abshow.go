package cli

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	answerab "github.com/touchstone-bench/touchstone/internal/answer/ab"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The names of the comparison in an output folder.
const (
	abName     = "ab.json"
	abPageName = "ab.html"
)

// conclude shows the comparison, writes it, and returns the exit code as an error.
func (c *abComparison) conclude() error {
	if c.series == nil {
		c.series = ab.New(c.design)
	}
	d := c.document()
	answer := answerab.Document(d)
	file, page := filepath.Join(c.opts.dir, abName), filepath.Join(c.opts.dir, abPageName)
	write := func(f format, file string) error {
		return c.app.writeTo(file, func(w io.Writer) error { return c.app.writeDocument(w, f, file, answer) })
	}
	if err := write(formatJSON, file); err != nil {
		return err
	}
	if err := c.app.writeTo(page, func(w io.Writer) error { return html.WriteBuilds(w, d) }); err != nil {
		return err
	}
	if err := write(c.opts.format, c.opts.output); err != nil {
		return err
	}
	if err := c.app.appendSummary(c.summary, answer); err != nil {
		return err
	}
	fmt.Fprintf(c.app.env.Stderr, "\ncomparison %s and %s, results %s, a page for each run %s\n",
		page, file, filepath.Join(c.opts.dir, databaseName), filepath.Join(c.opts.dir, abPage("ID")))
	if d.Code != ExitOK {
		return &exitError{code: d.Code}
	}
	return nil
}

// code is the exit code.
func (c *abComparison) code() int {
	switch answer := c.series.Answer(); {
	case c.broken != nil:
		return codeOf(c.broken)
	case c.interrupted:
		return ExitInterrupted
	case answer == ab.Worse:
		return ExitWorse
	case answer == ab.NotWorse && c.failed == nil:
		return ExitOK
	default:
		return ExitInconclusive
	}
}

// document is the comparison so far.
func (c *abComparison) document() *ab.Document {
	d := c.series.Document(abPage)
	d.Tool, d.Code = tool(), c.code()
	d.Budget, d.Spent = c.opts.budget.Seconds(), c.spent.Seconds()
	d.A, d.B = c.build(d.A), c.build(d.B)
	d.Started = c.pilot.Started.UTC()
	if h := c.pilot.Host; h.Hostname != "" {
		d.Machine = &ab.Machine{Hostname: h.Hostname, OS: h.OS, Kernel: h.Kernel, CPU: h.CPU, CPUs: h.CPUs}
	}
	switch {
	case d.Code == ExitInterrupted:
		d.Unfinished = "interrupted"
	case c.broken != nil:
		d.Unfinished = "a run ended with an error: " + c.broken.Error()
	case c.failed != nil:
		d.Unfinished = "no comparison is possible"
		m := report.New([]result.Run{c.pilot}, report.Options{})
		for i, v := range c.design.Values {
			d.Values[i].Reason = cmp.Or(ab.Find(&m, v, c.design.A, c.design.B).Reason, "no run followed the calibration, because another value has no ratio")
		}
	case c.ended:
		d.Unfinished = fmt.Sprintf("the budget ended after %d of %d runs", len(c.series.Done), c.series.Runs)
	}
	return d
}

// build adds the facts about a side that the calibration found.
func (c *abComparison) build(b ab.Build) ab.Build {
	if i := slices.IndexFunc(c.pilot.Targets, func(t result.Target) bool { return t.Name == b.Target }); i >= 0 {
		b.Binary, b.Version = c.pilot.Targets[i].Binary, c.pilot.Targets[i].Version
	}
	return b
}
