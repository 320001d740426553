package analysis_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The counts of a cell are ranges over its traces with counts. A step that a trace lacks counts as 0 there. A trace of functions has no system calls.
func TestTraced(t *testing.T) {
	run := reporttest.Traced()
	run.Traces = append(run.Traces, result.Trace{
		Seq: len(run.Traces) + 1, Cell: result.Cell{Benchmark: "surface.functions", Target: "native"}, Status: result.OK,
		Counts: []result.TraceCounts{{Step: "programs", Component: "container", Functions: map[string]int64{"fs/vfs_read": 1}}},
	})
	got := analysis.New([]result.Run{run}, analysis.Options{}).Runs[0].Traced()
	type row struct {
		Target, Step, Component    string
		Traces                     int
		Calls, Programs, Processes analysis.Range
	}
	var rows []row
	for _, c := range got {
		for _, s := range c.Steps {
			rows = append(rows, row{c.Target, s.Step, s.Component, c.Count, s.Sum(func(string) bool { return true }), s.Executed(), s.Processes})
		}
	}
	one := analysis.Range{Least: 1, Most: 1}
	expect.Equal(t, "the rows", []row{
		{"native", "create", "container", 3, analysis.Range{Least: 16, Most: 16}, one, analysis.Range{}},
		{"native", "start", "container", 3, analysis.Range{Most: 1}, analysis.Range{}, analysis.Range{}},
		{"oci/runc", "create", "runtime", 2, analysis.Range{Least: 352, Most: 406}, analysis.Range{Least: 3, Most: 3}, analysis.Range{Least: 3, Most: 3}},
		{"oci/runc", "start", "runtime", 2, analysis.Range{Least: 14, Most: 14}, one, analysis.Range{}},
		{"oci/runc", "", "container", 2, one, analysis.Range{}, analysis.Range{}},
	}, rows)
	expect.Equal(t, "futex", analysis.Range{Least: 259, Most: 313}, got[1].Steps[0].Calls["futex"])
}
