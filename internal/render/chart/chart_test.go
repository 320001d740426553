package chart_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/chart"
)

// TestManySamplesAreFewPoints: a row of many samples has a selection of them with both extremes, and the caption has their number. Equal samples are no exception.
func TestManySamplesAreFewPoints(t *testing.T) {
	for name, value := range map[string]func(i int) float64{"different": func(i int) float64 { return float64((i*7919)%100_003 + 1) }, "equal": func(int) float64 { return 1 }} {
		samples := &document.Samples{Median: 1}
		low, high := value(0), value(0)
		for i := range 100_000 {
			v := value(i)
			low, high = min(low, v), max(high, v)
			samples.Values = append(samples.Values, document.Sample{Value: v})
		}
		d := &document.Document{Blocks: []document.Block{document.Section{Title: "S", Blocks: []document.Block{
			document.Lanes{Name: "Create", Unit: "s", Lanes: []document.Lane{{Name: "a", Samples: samples}}},
		}}}}
		c := chart.Charts(d)[0]
		points := c.Series[0].Points
		first, last := points[0].Value, points[0].Value
		for _, p := range points {
			first, last = min(first, p.Value), max(last, p.Value)
		}
		if len(points) > 510 || first != low || last != high || c.Title != "S: Create" || c.Label() != "Create (s)" {
			t.Errorf("%s: %d points from %v to %v, want few from %v to %v; the chart is %q, %q", name, len(points), first, last, low, high, c.Title, c.Label())
		}
		if c.Log != (high/low > 10) || c.Caption == "" {
			t.Errorf("%s: logarithmic is %v, and the caption %q", name, c.Log, c.Caption)
		}
	}
}
