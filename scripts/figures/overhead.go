package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// mostRatio is the limit of the ratio of Touchstone's time to the bare loop's, at the 10th percentile and at the median. There is
// no lower limit: on a busy machine the bare loop, which shares its cgroup with the runtimes, is the slower side.
const mostRatio = 1.03

// overhead compares CreateAndRun + Destroy of the exported batches with the lifecycles of the bare loop. It prints the
// 10th percentiles and the medians of all lifecycles with their ratios. Each export is one batch, in the order
// of the bare loop's batches, which have equal lengths.
func overhead(w io.Writer, target, bare string, exports []string) error {
	loop, err := lifecycles(bare)
	if err != nil {
		return fmt.Errorf("read the bare loop's times: %w", err)
	}
	var ours []float64
	var batches []stats.Sample // the medians of our batches
	for n, export := range exports {
		batch, err := lifecycleTimes(target, export)
		if err != nil {
			return err
		}
		ours = append(ours, batch...)
		batches = append(batches, stats.Sample{Block: n, Value: quantile(batch, 0.5)})
	}
	if len(loop) == 0 || len(loop)%len(exports) != 0 {
		return fmt.Errorf("the bare loop has %d lifecycles, which are no %d equal batches", len(loop), len(exports))
	}
	var loops []stats.Sample
	var evens, odd []float64 // the lifecycles of every second batch of the bare loop: their ratio shows the resolution
	for batch := range slices.Chunk(loop, len(loop)/len(exports)) {
		if len(loops)%2 == 0 {
			evens = append(evens, batch...)
		} else {
			odd = append(odd, batch...)
		}
		loops = append(loops, stats.Sample{Block: len(loops), Value: quantile(batch, 0.5)})
	}
	paired := stats.Compare(loops, batches, stats.Lower, 1)
	fmt.Fprintf(w, "%s: %d batches, %d lifecycles of each side\n", target, len(exports), len(loop))
	fmt.Fprintf(w, "  ratio of the batches' medians, paired: %.3f%s\n", paired.Ratio, within(paired.CI))
	var excess error
	for _, q := range []struct {
		name string
		q    float64
	}{{"10th percentile", 0.1}, {"median", 0.5}, {"90th percentile", 0.9}} {
		reference, result := quantile(loop, q.q), quantile(ours, q.q)
		ratio := result / reference
		fmt.Fprintf(w, "  %s: bare loop %v, touchstone %v, ratio %.3f; odd / even batches of the bare loop %.3f\n",
			q.name, seconds(reference), seconds(result), ratio, quantile(odd, q.q)/quantile(evens, q.q))
		if ratio > mostRatio && q.q <= 0.5 {
			excess = errors.Join(excess, fmt.Errorf("%s, %s: %w of %.2f", target, q.name, errBeyond, mostRatio))
		}
	}
	return excess
}

// lifecycleTimes returns CreateAndRun + Destroy of each trial of an export.
func lifecycleTimes(target, export string) ([]float64, error) {
	list, err := trials([]string{export})
	if err != nil {
		return nil, err
	}
	var sums []float64
	for _, t := range list {
		if t.Target != target {
			return nil, fmt.Errorf("trial %d is of %s instead of %s", t.Seq, t.Target, target)
		}
		var sum float64
		for _, metric := range []string{"CreateAndRun", "Destroy"} {
			v, err := value(t, metric)
			if err != nil {
				return nil, err
			}
			sum += v
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// quantile interpolates between the two nearest values.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	position := q * float64(len(sorted)-1)
	low := int(position)
	if low == len(sorted)-1 {
		return sorted[low]
	}
	return sorted[low] + (position-float64(low))*(sorted[low+1]-sorted[low])
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

func within(ci *stats.Interval) string {
	if ci == nil {
		return ""
	}
	return fmt.Sprintf(" (95 %% interval %.3f to %.3f)", ci.Lo, ci.Hi)
}

// lifecycles reads the lines of bareloop: create, start and destroy in nanoseconds.
func lifecycles(file string) ([]float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var sums []float64
	for line := range strings.Lines(string(text)) {
		var create, start, destroy int64
		if _, err := fmt.Sscan(line, &create, &start, &destroy); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		sums = append(sums, float64(create+start+destroy)/1e9)
	}
	return sums, nil
}
