package runs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// openPanels is the number of the timelines of a benchmark that a page shows at first: the baseline and another target.
const openPanels = 2

// scaleStep is the quotient of neighbouring scales. Targets of one scale have the same axis of time.
const scaleStep = 4

// leastParts is the number of parts of a timeline whose loss no drawing shows.
const leastParts = 1000

// causeLook is the look of a state.
type causeLook struct {
	cause  result.TimeCause
	name   string
	height document.Height
}

// causesInOrder are the states of processes, and the heights that show them without colour: work is high, and a wait for others is low.
var causesInOrder = []causeLook{
	{result.CauseRunning, "running", document.Full},
	{result.CauseQueue, "run queue", document.Full},
	{result.CauseDisk, "waits for the disk", document.Half},
	{result.CauseCall, "waits in the kernel", document.Half},
	{result.CauseSleep, "sleeps", document.Half},
	{result.CauseFault, "page fault", document.Half},
	{result.CauseChild, "waits for a child", document.Low},
	{result.CauseFutex, "waits for a futex", document.Low},
	{result.CauseRead, "waits in read or write", document.Low},
	{result.CausePeer, "waits for a message", document.Low},
	{result.CauseSignal, "waits for a signal", document.Low},
}

// timelineOf draws a trace of each target, and has its sums as a table. Targets of about the same length share an axis of time.
func timelineOf(lines []analysis.TraceTimeline) []document.Block {
	if lines == nil {
		return nil
	}
	figure := document.Timeline{
		Name: "Processes over time", Mark: "a program begins (execve)",
		Caption: "one lane for each process, from the begin of the first call of the engine to the end of the last one, on each target in the traced trial of median length. A high bar is work, a low one a wait for others, and no bar a wait for new work. Targets of about the same length share an axis of time, and lengths under a tracer are no results",
	}
	for _, c := range causesInOrder {
		figure.States = append(figure.States, document.State{Name: c.name, Height: c.height})
	}
	table := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Process", "Component", "Begin", "End", "Running", "Run queue", "Waits", "Longest wait")}}
	maximum := slices.MaxFunc(lines, func(a, b analysis.TraceTimeline) int { return cmp.Compare(a.Length, b.Length) }).Length.Seconds()
	for i := range lines {
		l := &lines[i]
		panel := panelOf(l)
		panel.Folded = i >= openPanels
		for panel.End = maximum; panel.End >= scaleStep*l.Length.Seconds(); {
			panel.End /= scaleStep
		}
		figure.Panels = append(figure.Panels, panel)
		table.Rows = append(table.Rows, document.Cells(panel.Name))
		for n := range l.Lanes {
			table.Rows = append(table.Rows, laneRow(&l.Lanes[n]))
		}
	}
	return []document.Block{figure, document.Section{Title: "The processes of these traces as a table", Folded: true, Blocks: []document.Block{
		text("The times are the process's part of the time when it holds the target up. No moment counts twice, so the parts of all processes are at most the length."), table,
	}}}
}

// panelOf draws the trace of a target.
func panelOf(l *analysis.TraceTimeline) document.TimelinePanel {
	p := document.TimelinePanel{Name: fmt.Sprintf("%s, trace %d, the median of %d: %s; processes: %d", l.Target, l.Seq, l.Traces, quantity.Text(l.Length.Seconds(), result.Seconds), l.Processes)}
	if len(l.Lanes) < l.Processes {
		p.Name += fmt.Sprintf(", here the %d that hold the target up longest", len(l.Lanes))
	}
	if l.Resolution > l.Length/leastParts {
		p.Name += fmt.Sprintf("; states below %s are merged", quantity.Text(l.Resolution.Seconds(), result.Seconds))
	}
	p.Text = p.Name + "; the table below has the times"
	for i, step := range l.Steps {
		end := l.Length
		if i+1 < len(l.Steps) {
			end = l.Steps[i+1].At
		}
		if step.Name != "" {
			p.Bands = append(p.Bands, document.Band{Name: step.Name, Start: step.At.Seconds(), End: end.Seconds()})
		}
	}
	for i := range l.Lanes {
		p.Rows = append(p.Rows, rowOf(&l.Lanes[i]))
	}
	return p
}

// rowOf draws a process.
func rowOf(l *result.TraceLane) document.TimelineRow {
	r := document.TimelineRow{Name: laneName(l), Text: fmt.Sprintf("%s (%s)", laneName(l), componentsOfLane(l)), Start: l.At.Seconds(), End: l.End.Seconds()}
	for _, p := range l.Execs {
		r.Marks = append(r.Marks, document.TimelineMark{At: p.At.Seconds(), Text: fmt.Sprintf("%s (%s) at %s", p.Name, p.Component, quantity.Text(p.At.Seconds(), result.Seconds))})
	}
	for _, s := range l.States {
		state := stateOf(s.Cause)
		for i, begin := range s.At {
			r.Pieces = append(r.Pieces, document.TimelinePiece{State: state, Start: begin.Seconds(), End: (begin + s.Lengths[i]).Seconds()})
		}
	}
	return r
}

// stateOf is the state of a cause. An unknown one of another version is a wait in the kernel.
func stateOf(cause result.TimeCause) int {
	place := func(cause result.TimeCause) int {
		return slices.IndexFunc(causesInOrder, func(c causeLook) bool { return c.cause == cause })
	}
	if i := place(cause); i >= 0 {
		return i
	}
	return place(result.CauseCall)
}

// laneName is the programs of a process: "runc → sleep".
func laneName(l *result.TraceLane) string {
	return chain(l, func(p *result.TraceProgram) string { return p.Name })
}

// componentsOfLane are the components of a process.
func componentsOfLane(l *result.TraceLane) string {
	return chain(l, func(p *result.TraceProgram) string { return p.Component })
}

// chain is the texts of the programs of a process in their order.
func chain(l *result.TraceLane, spell func(*result.TraceProgram) string) string {
	return strings.Join(slices.Compact(lists.Convert(append([]result.TraceProgram{l.TraceProgram}, l.Execs...), spell)), " → ")
}

// laneRow is the row of a process.
func laneRow(l *result.TraceLane) []document.Cell {
	var reason result.TimeCause // of the longest wait
	waits := time.Duration(0)
	for _, cause := range slices.Sorted(maps.Keys(l.Wall)) {
		if cause == result.CauseRunning || cause == result.CauseQueue {
			continue
		}
		waits += l.Wall[cause]
		if l.Wall[cause] > l.Wall[reason] {
			reason = cause
		}
	}
	spell := func(length time.Duration) string { return quantity.Text(length.Seconds(), result.Seconds) }
	return document.Cells(laneName(l), componentsOfLane(l), spell(l.At), spell(l.End), spell(l.Wall[result.CauseRunning]), spell(l.Wall[result.CauseQueue]), spell(waits), cmp.Or(string(reason), quantity.None))
}
