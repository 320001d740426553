package runs_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

// The page draws one trace of each target, the baseline first, and a table has the sums of its processes.
func TestTimelineOfPage(t *testing.T) {
	run := reporttest.Explained()
	run.Baseline = "oci/runc"
	blocks := titled(causes(run))[0].Blocks
	figure := blocks[0].(document.Timeline)
	runc, native := figure.Panels[0], figure.Panels[1]
	expect.Equal(t, "the first panel", "oci/runc, trace 2, the median of 3: 43.0 ms; processes: 3, here the 2 that hold the target up longest; states below 500 µs are merged", runc.Name)
	expect.Equal(t, "the second panel", "native, trace 1, the median of 3: 4.30 ms; processes: 1; states below 500 µs are merged", native.Name)
	expect.Equal(t, "the ends of the axes", []float64{0.043, 0.043 / 4}, []float64{runc.End, native.End})
	expect.Equal(t, "the steps", []document.Band{{Name: "create", End: 0.03}, {Name: "start", Start: 0.031, End: 0.043}}, runc.Bands)
	second := runc.Rows[1]
	expect.Equal(t, "the name of a process", []string{"runc → sleep", "runc → sleep (runtime → container)"}, []string{second.Name, second.Text})
	expect.Equal(t, "its programs", []document.TimelineMark{{At: 0.02, Text: "sleep (container) at 20.0 ms"}}, second.Marks)
	var pieces []string
	for _, p := range second.Pieces {
		pieces = append(pieces, figure.States[p.State].Name)
	}
	expect.Equal(t, "its states", []string{"run queue", "running", "sleeps"}, pieces)
	table := titled(document.Section{Blocks: blocks})[0].Blocks[1].(document.Table)
	expect.Equal(t, "the row of the process", document.Cells("runc → sleep", "runtime → container", "5.00 ms", "43.0 ms", "10.0 ms", "3.00 ms", "9.00 ms", "sleep"), table.Rows[3])
	for i := range run.Traces {
		run.Traces[i].Timeline = nil
	}
	if _, is := titled(causes(run))[0].Blocks[0].(document.Section); !is {
		t.Error("traces of an older version have a drawing")
	}
}
