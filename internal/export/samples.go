package export

import (
	"io"

	"github.com/touchstone-bench/touchstone/internal/render/rows"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// writeSamples writes each sample of each trial, and a row without a value for a trial that has none. Warm-up trials are marked.
func writeSamples(separator rune) func(io.Writer, *Source) error {
	return func(w io.Writer, s *Source) error {
		columns := []string{
			"run", "benchmark", "params", "target", "metric", "unit", "better", "block", "warmup", "trial", "position", "value", "disturbed", "status", "reason",
		}
		return rows.Write(w, separator, columns, func(row func(values ...any) error) error {
			for i := range s.runs {
				if err := samples(&s.runs[i], row); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// samples passes the rows of a run to row. position counts the samples of a metric in a trial from 1.
func samples(run *result.Run, row func(values ...any) error) error {
	metrics := map[[2]string]*result.Metric{}
	for i := range run.Bench {
		for n := range run.Bench[i].Metrics {
			metrics[[2]string{run.Bench[i].Name, run.Bench[i].Metrics[n].Name}] = &run.Bench[i].Metrics[n]
		}
	}
	for i := range run.Trials {
		t := &run.Trials[i]
		disturbed := len(t.Host.Marks) > 0
		write := func(metric, unit, direction string, position, value any) error {
			return row(run.ID, t.Benchmark, t.Params, t.Target, metric, unit, direction, t.Block, t.Warmup, t.Seq, position, value, disturbed, string(t.Status), t.Reason)
		}
		if len(t.Samples) == 0 {
			if err := write("", "", "", nil, nil); err != nil {
				return err
			}
		}
		positions := map[string]int{}
		for _, sample := range t.Samples {
			positions[sample.Metric]++
			var unit, direction string
			if m := metrics[[2]string{t.Benchmark, sample.Metric}]; m != nil {
				unit, direction = string(m.Unit), string(m.Better)
			}
			if err := write(sample.Metric, unit, direction, positions[sample.Metric], sample.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
