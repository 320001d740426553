package export

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/render/rows"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// openMetricsUnits are the names of the units, which end the names of their families.
var openMetricsUnits = map[result.Unit]string{
	result.Seconds: "seconds", result.Bytes: "bytes", result.BytesPerSecond: "bytes_per_second", result.BitsPerSecond: "bits_per_second", result.PerSecond: "per_second",
	result.FlopPerSecond: "flop_per_second", result.Ratio: "ratio", result.Score: "score", result.Joules: "joules", result.Count: "items", result.ByteSeconds: "byte_seconds",
}

// writeOpenMetrics writes OpenMetrics text 1.0: families of gauges for the medians and the ends of their intervals, one for each unit, and the numbers of trials by status.
// The names of benchmarks, metrics and targets are labels, which may contain any text, so that no two of them become one. The time of a value is the end of its run.
func writeOpenMetrics(w io.Writer, s *Source) error {
	var out strings.Builder
	kinds := []struct {
		name, help string
		value      func(*stats.Summary) *float64
	}{
		{"median", "Median of the values of the trials.", func(s *stats.Summary) *float64 { return &s.Median }},
		{"median_low", "Lower end of the 95 % interval of the median.", func(s *stats.Summary) *float64 {
			if s.CI == nil {
				return nil
			}
			return &s.CI.Lo
		}},
		{"median_high", "Upper end of the 95 % interval of the median.", func(s *stats.Summary) *float64 {
			if s.CI == nil {
				return nil
			}
			return &s.CI.Hi
		}},
	}
	cells := s.finished()
	for _, unit := range result.Units() {
		for _, kind := range kinds {
			family := "touchstone_" + kind.name + "_" + openMetricsUnits[unit]
			head := fmt.Sprintf("# TYPE %s gauge\n# UNIT %s %s\n# HELP %s %s\n", family, family, openMetricsUnits[unit], family, kind.help)
			for _, c := range cells {
				value := kind.value(c.values.Summary)
				if c.metric.Unit != unit || value == nil {
					continue
				}
				labels := append(cellLabels(c.run, c.Cell), "metric", c.metric.Name, "better", string(c.metric.Better))
				out.WriteString(head + family + labelled(labels) + " " + strconv.FormatFloat(*value, 'g', -1, 64) + timestamp(c.run) + "\n")
				head = ""
			}
		}
	}
	out.WriteString("# TYPE touchstone_trials gauge\n# HELP touchstone_trials Number of trials without warm-up, by their status. Only those that are ok have values.\n")
	for i := range s.runs {
		out.WriteString(strings.Join(trialLines(&s.runs[i]), ""))
	}
	out.WriteString("# EOF\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// trialLines are the samples of the numbers of trials.
func trialLines(run *result.Run) []string {
	cells, counts := trialCounts(run)
	var lines []string
	for _, c := range cells {
		for _, status := range []result.Status{result.OK, result.Failed, result.Timeout, result.Skipped} {
			labels := append(cellLabels(run, c), "status", string(status))
			lines = append(lines, fmt.Sprintf("touchstone_trials%s %d%s\n", labelled(labels), counts[c][status], timestamp(run)))
		}
	}
	return lines
}

func cellLabels(run *result.Run, c result.Cell) []string {
	return []string{"run", run.ID, "host", run.Host.Hostname, "benchmark", c.Benchmark, "params", c.Params, "target", c.Target}
}

// labelled spells pairs of names and values.
func labelled(pairs []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, pairs[i]+`="`+escape.Replace(rows.OneLine(pairs[i+1]))+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// timestamp is the end of a run, or its start if it has not ended. A run of TouchStone has no time.
func timestamp(run *result.Run) string {
	end := run.Ended
	if end.IsZero() {
		end = run.Started
	}
	if end.IsZero() {
		return ""
	}
	return " " + strconv.FormatFloat(float64(end.UnixMilli())/float64(time.Second/time.Millisecond), 'f', -1, 64)
}
