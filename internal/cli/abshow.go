package cli

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answerab "github.com/touchstone-bench/touchstone/internal/answer/ab"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The names of the comparison in an output folder.
const (
	abName     = "ab.json"
	abPageName = "ab.html"
)

// abPage is the name of the page of a run.
func abPage(id string) string { return "report-" + id + ".html" }

// concludeAB shows the comparison, writes it, and returns the exit code as an error. summary is the file of GitHub's summary; it may be
// empty. failure is the error that ended the runs.
func (a *App) concludeAB(c *experiment.AB, opts *abOptions, summary string, failure error) error {
	d := abDocument(c, failure)
	answer := answerab.Document(d)
	file, page := filepath.Join(opts.dir, abName), filepath.Join(opts.dir, abPageName)
	write := func(f format, file string) error {
		return a.writeTo(file, func(w io.Writer) error { return a.writeDocument(w, f, file, answer) })
	}
	if err := write(formatJSON, file); err != nil {
		return err
	}
	if err := write(formatHTML, page); err != nil {
		return err
	}
	answer = opts.inconclusive.settle(answer)
	if err := write(opts.format, opts.output); err != nil {
		return err
	}
	if err := a.appendSummary(summary, answer); err != nil {
		return err
	}
	fmt.Fprintf(a.env.Stderr, "\ncomparison %s and %s, results %s, a page for each run %s\n",
		page, file, filepath.Join(opts.dir, databaseName), filepath.Join(opts.dir, abPage("ID")))
	if d.Code != ExitOK {
		return &exitError{code: d.Code}
	}
	return nil
}

// abCode is the exit code.
func abCode(c *experiment.AB, answer stats.Answer, failure error) int {
	switch {
	case failure != nil:
		return codeOf(failure)
	case c.End == experiment.Interrupted:
		return ExitInterrupted
	case answer == stats.Worse:
		return ExitWorse
	case answer == stats.NotWorse && !c.NoRatio:
		return ExitOK
	default:
		return ExitInconclusive
	}
}

// abDocument is the comparison so far.
func abDocument(c *experiment.AB, failure error) *ab.Document {
	series := c.Comparison
	if series == nil {
		series = ab.New(c.Design)
	}
	d := series.Document(abPage)
	if d.Counts, d.Untimed = c.Counts, c.Untimed; d.Untimed {
		d.Values, d.Answer = []ab.Outcome{}, stats.NotWorse
	}
	if d.Counts != nil {
		d.Answer = stats.Overall([]stats.Answer{d.Answer, d.Counts.Outcome()})
	}
	d.Tool, d.Code = tool(), abCode(c, d.Answer, failure)
	d.Budget, d.Spent = c.Budget.Seconds(), c.Spent.Seconds()
	for _, b := range []*ab.Build{&d.A, &d.B} { // the calibration found the facts
		if i := slices.IndexFunc(c.Pilot.Targets, func(t result.Target) bool { return t.Name == b.Target }); i >= 0 {
			b.Binary, b.Version = c.Pilot.Targets[i].Binary, c.Pilot.Targets[i].Version
		}
	}
	d.Started = c.Pilot.Started.UTC()
	if h := c.Pilot.Host; h.Hostname != "" {
		d.Machine = &ab.Machine{Hostname: h.Hostname, OS: h.OS, Kernel: h.Kernel, CPU: h.CPU, CPUs: h.CPUs}
	}
	switch {
	case d.Code == ExitInterrupted:
		d.Unfinished = "interrupted"
	case failure != nil:
		d.Unfinished = "a run ended with an error: " + failure.Error()
	case c.NoRatio:
		d.Unfinished = "no comparison is possible"
		pilot := analysis.NewSource(&c.Pilot, analysis.Options{})
		for i, v := range c.Design.Values {
			d.Values[i].Reason = cmp.Or(ab.Find(pilot, v, c.Design.A, c.Design.B).Reason, "no run followed the calibration, because another value has no ratio")
		}
	case c.End == experiment.OutOfBudget:
		d.Unfinished = fmt.Sprintf("the budget ended after %d of %d runs", len(series.Done), series.Runs)
	}
	return d
}
