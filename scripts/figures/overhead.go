package main

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The limits of the ratio of Touchstone's median to the bare loop's.
const (
	leastRatio = 0.90
	mostRatio  = 1.10
)

// overhead prints the medians of CreateAndRun + Destroy of the exported trials and of
// the bare loop, and their ratio.
func overhead(w io.Writer, target string, bare io.Reader, exports []string) error {
	loop, err := lifecycles(bare)
	if err != nil {
		return fmt.Errorf("read the bare loop's times: %w", err)
	}
	all, err := trials(exports)
	if err != nil {
		return err
	}
	var ours []float64
	for _, t := range all {
		if t.Target != target {
			return fmt.Errorf("trial %d is of %s instead of %s", t.Seq, t.Target, target)
		}
		var sum float64
		for _, metric := range []string{"CreateAndRun", "Destroy"} {
			v, err := value(t, metric)
			if err != nil {
				return err
			}
			sum += v
		}
		ours = append(ours, sum)
	}
	c := stats.CompareUnpaired(loop, ours, stats.Lower, 1)
	fmt.Fprintf(w, "%s: bare loop %s, touchstone %s, ratio %.2f%s\n", target, median(loop), median(ours), c.Ratio, within(c.CI))
	if c.Ratio < leastRatio || c.Ratio > mostRatio {
		return fmt.Errorf("%s: %w of %.2f to %.2f", target, errBeyond, leastRatio, mostRatio)
	}
	return nil
}

func median(seconds []float64) string {
	s := stats.Summarize(seconds, 1)
	return fmt.Sprintf("%v (median of %d)", time.Duration(s.Median*float64(time.Second)).Round(time.Microsecond), s.N)
}

func within(ci *stats.Interval) string {
	if ci == nil {
		return ""
	}
	return fmt.Sprintf(" (95 %% interval %.2f to %.2f)", ci.Lo, ci.Hi)
}

// lifecycles reads the lines of bareloop: create, start and destroy in nanoseconds.
func lifecycles(r io.Reader) ([]float64, error) {
	var sums []float64
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var create, start, destroy int64
		if _, err := fmt.Sscanf(lines.Text(), "%d %d %d", &create, &start, &destroy); err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		sums = append(sums, float64(create+start+destroy)/1e9)
	}
	return sums, nil
}
