package report_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const second = time.Second

// timed is a run of one target whose trials have the given lengths and timelines.
func timed(lengths []time.Duration, lines func(trial int) []result.Timeline) result.Run {
	run := reporttest.Small()
	name, first := run.Bench[0].Name, run.Targets[0].Name
	run.Trials = nil
	for i, length := range lengths {
		run.Trials = append(run.Trials, result.Trial{
			Seq: i + 1, Cell: result.Cell{Benchmark: name, Target: first}, Block: i, Status: result.OK, Elapsed: length, Timelines: lines(i),
			Phases: []result.Phase{
				{Name: "create", Start: second, Duration: second},
				{Name: "create/Step", Start: second, Duration: second / 2},
				{Name: "delete", Start: 3 * second, Duration: second},
			},
			Samples: []result.Sample{{Metric: run.Bench[0].Metrics[0].Name, Value: 1}},
		})
	}
	return run
}

func timelinesOf(t *testing.T, run result.Run) []analysis.Timelines {
	t.Helper()
	r := report.New([]result.Run{run}, analysis.Options{})
	list := r.Benchmarks()
	if len(list) != 1 {
		t.Fatalf("the report has %d benchmarks", len(list))
	}
	return list[0].Sections[0].Timelines
}

func line(group, name string, unit result.Unit, values ...float64) result.Timeline {
	l := result.Timeline{Group: group, Name: name, Unit: unit, Values: values}
	for i := range values {
		l.At = append(l.At, time.Duration(i)*second)
	}
	return l
}

func TestTimelinesOfTheMedianTrial(t *testing.T) {
	got := timelinesOf(t, timed([]time.Duration{9 * second, 4 * second, 5 * second}, func(trial int) []result.Timeline {
		return []result.Timeline{
			line("Memory", "used", result.Bytes, float64(trial), 4, 0),
			line("Memory", "none", result.Bytes),
			line("CPU", "all", result.Ratio, 0.5),
		}
	}))
	want := []analysis.Timelines{
		{
			Title: "Memory", Unit: result.Bytes, Names: []string{"used"},
			Panels: []analysis.Panel{{
				Target: "native", Seq: 3, Block: 2, Trials: 3, End: 5,
				Regions: []analysis.Region{{Name: "create", Start: 1, End: 2}, {Name: "delete", Start: 3, End: 4}},
				Lines:   []*analysis.Line{{At: []float64{0, 1, 2}, Values: []float64{2, 4, 0}, First: 2, Last: 0, Min: 0, Max: 4, Mean: new(2.5)}},
			}},
		},
		{
			Title: "CPU", Unit: result.Ratio, Names: []string{"all"},
			Panels: []analysis.Panel{{
				Target: "native", Seq: 3, Block: 2, Trials: 3, End: 5,
				Regions: []analysis.Region{{Name: "create", Start: 1, End: 2}, {Name: "delete", Start: 3, End: 4}},
				Lines:   []*analysis.Line{{At: []float64{0}, Values: []float64{0.5}, First: 0.5, Last: 0.5, Min: 0.5, Max: 0.5, Mean: new(0.5)}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The shown trial is one that counts.
func TestTimelinesOfOtherTrialsAreNotShown(t *testing.T) {
	run := timed([]time.Duration{second, 2 * second, 3 * second}, func(int) []result.Timeline {
		return []result.Timeline{line("Memory", "used", result.Bytes, 1)}
	})
	run.Trials[1].Warmup = true
	run.Trials[0].Status, run.Trials[0].Timelines, run.Trials[0].Samples = result.Failed, nil, nil
	got := timelinesOf(t, run)
	if len(got) != 1 || got[0].Panels[0].Seq != 3 || got[0].Panels[0].Trials != 1 {
		t.Errorf("shown: %+v", got)
	}
}

// A small change of large amounts would be flat. Rates and shares begin at zero.
func TestTimelinesShowChanges(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []result.Timeline
		want  bool
	}{
		{"far apart, small changes", []result.Timeline{line("G", "a", result.Bytes, 1000, 1010), line("G", "b", result.Bytes, 10, 11)}, true},
		{"far apart, a large change", []result.Timeline{line("G", "a", result.Bytes, 1000, 500), line("G", "b", result.Bytes, 10, 11)}, false},
		{"one line", []result.Timeline{line("G", "a", result.Bytes, 1000, 1010)}, false},
		{"no change", []result.Timeline{line("G", "a", result.Bytes, 1000, 1000), line("G", "b", result.Bytes, 10, 10)}, false},
		{"shares", []result.Timeline{line("G", "a", result.Ratio, 0.9, 0.91), line("G", "b", result.Ratio, 0.01, 0.02)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := timelinesOf(t, timed([]time.Duration{9 * second}, func(int) []result.Timeline { return tt.lines }))
			if got[0].Change != tt.want {
				t.Errorf("Change = %t", got[0].Change)
			}
		})
	}
}

// The value between two values that are far apart is not known, so there is no mean.
func TestNoMeanWithAGap(t *testing.T) {
	l := line("G", "a", result.Bytes, 1, 2, 3, 4)
	l.At[3] = 9 * second
	got := timelinesOf(t, timed([]time.Duration{9 * second}, func(int) []result.Timeline { return []result.Timeline{l} }))
	if mean := got[0].Panels[0].Lines[0].Mean; mean != nil {
		t.Errorf("the mean is %v", *mean)
	}
}
