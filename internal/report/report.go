// Package report is an analysis with its findings and warnings, ready for layout. Package html below it, and package
// answer/runs, lay it out and decide nothing.
package report

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// MostRuns is the largest number of runs in a report. Tables and plots of more would be unreadable.
const MostRuns = 12

// Report is the content of a report of one run or several.
type Report struct {
	*analysis.Analysis
	Findings finding.Findings
	// Warnings are reasons to trust the numbers less, by run and by kind.
	Warnings [][]finding.WarningGroup

	trials []result.Trial // of the only run
}

// New makes the report of at least one run, see [analysis.New].
func New(runs []result.Run, o analysis.Options) Report {
	r := Report{Analysis: analysis.New(runs, o)}
	for run := range r.Runs {
		r.Warnings = append(r.Warnings, finding.Warnings(r.Analysis, run))
	}
	r.Findings = finding.New(r.Analysis)
	if len(runs) == 1 {
		r.trials = runs[0].Trials
	}
	return r
}

// Explain names the causes of the differences of target b against target a in the only run, for one benchmark. They take time, so only a page has them. The
// result has no benchmark if the targets have no timed call in common.
func (r *Report) Explain(benchmark analysis.Key, a, b string) *explain.Explanation {
	run := r.Runs[0].Run
	run.Trials = r.trials
	return explain.Of(r.Analysis, &run, a, b, func(key analysis.Key) bool { return key == benchmark })
}
