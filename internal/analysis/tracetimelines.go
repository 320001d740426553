package analysis

import (
	"cmp"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// TraceTimeline is the timeline of a target: of the trace with the median length, and the shorter one of the two middle ones.
type TraceTimeline struct {
	Target string
	// Seq identifies the trace, and Traces counts the traces to choose from.
	Seq, Traces int
	*result.TraceTimeline
}

// TraceTimelines are the timelines of a benchmark, the targets in the order of the run.
func (r *Run) TraceTimelines(key Key) (lines []TraceTimeline) {
	for i := range r.Targets {
		var traces []*result.Trace
		for n := range r.Traces {
			t := &r.Traces[n]
			if t.Status == result.OK && t.Timeline != nil && t.Target == r.Targets[i].Name && t.Benchmark == key.Name && t.Params == key.Params {
				traces = append(traces, t)
			}
		}
		if traces == nil {
			continue
		}
		slices.SortStableFunc(traces, func(a, b *result.Trace) int { return cmp.Compare(a.Timeline.Length, b.Timeline.Length) })
		t := traces[(len(traces)-1)/2]
		lines = append(lines, TraceTimeline{t.Target, t.Seq, len(traces), t.Timeline})
	}
	return lines
}
