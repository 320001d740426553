package export

import (
	"encoding/json"
	"io"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The longest names that Bencher takes, in characters.
const (
	mostBenchmark = 1024
	mostMeasure   = 64
)

// bmfMetric is a value with its interval. An interval that does not exist is absent.
type bmfMetric struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower_value,omitempty"`
	Upper *float64 `json:"upper_value,omitempty"`
}

// writeBMF writes the Bencher Metric Format (bencher.dev/docs/reference/bencher-metric-format): the median of each metric with its interval, by benchmark and
// measure. The format has neither units nor directions: the name of a measure ends in the unit.
func writeBMF(w io.Writer, s *Source) error {
	benchmarks := map[string]map[string]bmfMetric{}
	for _, c := range s.finished() {
		name := s.shorten(c.title(), mostBenchmark, "Bencher")
		if benchmarks[name] == nil {
			benchmarks[name] = map[string]bmfMetric{}
		}
		low, high := ends(c.values.Summary)
		benchmarks[name][s.shorten(c.metric.Name+" ("+string(c.metric.Unit)+")", mostMeasure, "Bencher")] = bmfMetric{c.values.Summary.Median, low, high}
	}
	return encode(w, " ", benchmarks)
}

// ends are the ends of the interval of a median, nil without one.
func ends(s *stats.Summary) (low, high *float64) {
	if s.CI == nil {
		return nil, nil
	}
	return &s.CI.Lo, &s.CI.Hi
}

// encode writes JSON.
func encode(w io.Writer, indent string, data any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false)
	return enc.Encode(data)
}
