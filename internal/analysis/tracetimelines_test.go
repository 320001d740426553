package analysis_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// A target has the timeline with the median length. A trace without a timeline does not count.
func TestTraceTimelines(t *testing.T) {
	run := reporttest.Explained()
	key := analysis.Key{Name: run.Bench[0].Name, Params: run.Trials[0].Params}
	type choice struct {
		Target      string
		Seq, Traces int
	}
	choices := func() (list []choice) {
		for _, l := range analysis.New([]result.Run{run}, analysis.Options{}).Runs[0].TraceTimelines(key) {
			list = append(list, choice{l.Target, l.Seq, l.Traces})
		}
		return list
	}
	expect.Equal(t, "the traces", []choice{{"native", 1, 3}, {"oci/runc", 2, 3}}, choices())
	run.Traces[1].Timeline = nil
	expect.Equal(t, "the traces without one timeline", []choice{{"native", 1, 3}, {"oci/runc", 4, 2}}, choices())
	for i := range run.Traces {
		run.Traces[i].Timeline = nil
	}
	expect.Equal(t, "the traces of an older version", []choice(nil), choices())
}
