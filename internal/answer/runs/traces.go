package runs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// traces are the tables of the traces of a run, a table a benchmark.
func traces(r *analysis.Run) []document.Block {
	cells := r.Traced()
	if len(cells) == 0 {
		return nil
	}
	s := document.Section{ID: "traces", Title: "Traces", Blocks: []document.Block{text(
		"Counts of trials under a tracer, by step and component: system calls, executed programs, calls that mount, write a file to its disk or open one, new processes and new threads. A count is one number if all traces have the same, else the smallest and the largest. A tracer makes each system call slower, so no other number has a time of a traced trial. The JSON report has each system call by name.",
	)}}
	timeHeads := document.Cells("Target", "Step", "Component", "Running", "Run queue", "Waits", "Longest wait")
	heads := document.Cells("Target", "Step", "Component", "Calls", "Execs", "Mounts", "Syncs", "Opens", "Forks", "Threads")
	for len(cells) > 0 {
		key := cells[0].Key
		t := document.Table{Listing: true, Rows: [][]document.Cell{heads}}
		times := document.Table{Listing: true, Rows: [][]document.Cell{timeHeads}}
		rest := cells[:0:0]
		count := 0
		for i := range cells {
			if cells[i].Key != key {
				rest = append(rest, cells[i])
				continue
			}
			count = max(count, cells[i].Count)
			t.Rows = append(t.Rows, tracedRows(&cells[i])...)
			times.Rows = append(times.Rows, timeRows(&cells[i])...)
		}
		blocks := []document.Block{t}
		if len(times.Rows) > 1 {
			blocks = append(blocks, text("The step's own time in these traces, by the state of the component's threads. No moment counts twice, and a tracer slows down, so this is for shares only. touchstone explain compares two targets."), times)
		}
		s.Blocks = append(s.Blocks, document.Section{Title: fmt.Sprintf("%s, %s", key.Title(), wording.Counted(count, "trace")), Folded: true, Blocks: blocks})
		cells = rest
	}
	return []document.Block{s}
}

// tracedRows are the rows of a cell, the target and the step in the first one of each.
func tracedRows(c *analysis.Traced) [][]document.Cell {
	var rows [][]document.Cell
	for i := range c.Steps {
		s := &c.Steps[i]
		target, step := "", s.Step
		switch {
		case i == 0:
			target = c.Target
		case s.Step == c.Steps[i-1].Step:
			step = ""
		}
		if s.Step == "" && (i == 0 || c.Steps[i-1].Step != "") {
			step = analysis.OutsideCalls
		}
		part := func(names []string) string {
			return s.Sum(func(call string) bool { return slices.Contains(names, call) }).String()
		}
		rows = append(rows, document.Cells(
			target, step, s.Component, s.Sum(func(string) bool { return true }).String(), s.Executed().String(),
			part(analysis.MountCalls), part(analysis.SyncCalls), part(analysis.OpenCalls), s.Processes.String(), s.Threads.String(),
		))
	}
	return rows
}

// timeRows are the rows of a cell whose steps have times.
func timeRows(c *analysis.Traced) [][]document.Cell {
	var rows [][]document.Cell
	for i := range c.Steps {
		s := &c.Steps[i]
		if len(s.Wall) == 0 {
			continue
		}
		isWait := func(name string) bool { return name != result.WallRunning && name != result.WallQueue }
		call := quantity.None
		for _, name := range slices.Sorted(maps.Keys(s.Wall)) {
			if isWait(name) && (call == quantity.None || s.Wall[name].Most > s.Wall[call].Most) {
				call = name
			}
		}
		part := func(isPart func(string) bool) string {
			minimum, maximum := s.Time(isPart)
			return quantity.Extent(minimum, maximum, result.Seconds)
		}
		rows = append(rows, document.Cells(
			c.Target, cmp.Or(s.Step, analysis.OutsideCalls), s.Component, part(func(name string) bool { return name == result.WallRunning }),
			part(func(name string) bool { return name == result.WallQueue }), part(isWait), call,
		))
	}
	return rows
}
