package main

import (
	"fmt"
	"io"
	"os"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// traced compares the lives of containers in runs without and with traces: the exports with traces follow those without in exports. Timed trials
// of both must be equal. It prints the same of traced trials and the timed ones of the same runs, which has no limit: see BenchmarkCost in internal/trace.
func traced(w io.Writer, target string, exports []string) error {
	if len(exports)%2 != 0 {
		return fmt.Errorf("%d exports are no pairs of one without and one with traces", len(exports))
	}
	count := len(exports) / 2
	base, _, err := lives(exports[:count])
	if err != nil {
		return err
	}
	trials, traces, err := lives(exports[count:])
	if err != nil {
		return err
	}
	effect, cost := stats.Compare(base, trials, stats.Lower, 1), stats.Compare(trials, traces, stats.Lower, 1)
	fmt.Fprintf(w, "%s: %d batches without and with traces\n", target, count)
	fmt.Fprintf(w, "  timed trials with traces after them / without: %.3f%s\n", effect.Ratio, within(effect.CI))
	fmt.Fprintf(w, "  traced trials / timed trials: %.3f%s\n", cost.Ratio, within(cost.CI))
	if effect.CI != nil && effect.CI.Lo > 1 {
		return fmt.Errorf("%s: traces change the timed trials: %w of 1", target, errBeyond)
	}
	return nil
}

// lives returns the median length of the timed and of the traced trials of each export: the sum of their phases.
func lives(exports []string) (trials, traces []stats.Sample, err error) {
	for block, export := range exports {
		runs, err := runsOf(export)
		if err != nil {
			return nil, nil, err
		}
		var trialLives, traceLives []float64
		for _, run := range runs {
			for _, t := range run.Trials {
				if !t.Warmup {
					trialLives = append(trialLives, life(t.Phases))
				}
			}
			for _, t := range run.Traces {
				if t.Status != result.OK {
					return nil, nil, fmt.Errorf("trace %d of run %s is %s: %s", t.Seq, run.ID, t.Status, t.Reason)
				}
				traceLives = append(traceLives, life(t.Phases))
			}
		}
		if len(trialLives) == 0 {
			return nil, nil, fmt.Errorf("%s has no trials", export)
		}
		trials = append(trials, stats.Sample{Block: block, Value: quantile(trialLives, 0.5)})
		if len(traceLives) > 0 {
			traces = append(traces, stats.Sample{Block: block, Value: quantile(traceLives, 0.5)})
		}
	}
	return trials, traces, nil
}

// life is the length of all phases of a trial, in seconds.
func life(phases []result.Phase) (sum float64) {
	for _, p := range phases {
		sum += p.Duration.Seconds()
	}
	return sum
}

// runsOf reads the runs of an export.
func runsOf(export string) ([]result.Run, error) {
	file, err := os.Open(export)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	doc, err := result.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", export, err)
	}
	return doc.Runs, nil
}
