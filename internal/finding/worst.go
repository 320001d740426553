package finding

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Largest spells the largest sample: "12.3 ms, the largest of 20000".
func Largest(w *analysis.Worst, unit result.Unit) string {
	return fmt.Sprintf("%s, the largest of %s", quantity.Text(w.Max, unit), wording.Counted(w.N, "sample"))
}

// Bounds spell the bounds or the refusal: "one in 10⁵ above 14.1 ms (13.2 to 16.0 ms)".
func Bounds(w *analysis.Worst, unit result.Unit) string {
	if w.Refusal != nil {
		return w.Refusal.Error()
	}
	text := ""
	for _, b := range w.Bounds {
		scale := quantity.ScaleFor(b.Value, unit)
		text += fmt.Sprintf("one in %s above %s (%s to %s); ", quantity.Odds(b.P), scale.Text(b.Value), scale.Number(b.CI.Lo), scale.Text(b.CI.Hi))
	}
	m := w.Model
	return text + fmt.Sprintf("shape %s (%s to %s), the tail is %s; %d clusters above %s", quantity.TrueMinus(quantity.Significant(m.GPD.Shape, 2)),
		shapeEnd(m.ShapeCI.Lo, "below −0.5"), shapeEnd(m.ShapeCI.Hi, quantity.None), m.Variation.Weight(), m.Clusters, quantity.Text(m.Threshold, unit))
}

// Rarer spells the refusal of rarer values than the bounds, empty without one.
func Rarer(w *analysis.Worst) string {
	if w.Rarer == nil {
		return ""
	}
	return "rarer values: " + w.Rarer.Error()
}

// shapeEnd spells an end of the interval of a shape, which may be infinite.
func shapeEnd(v float64, fallback string) string {
	if text := quantity.Significant(v, 2); text != quantity.None {
		return quantity.TrueMinus(text)
	}
	return fallback
}

// WorstLegend explains the worst cases of a report.
const WorstLegend = "A bound is the value that one sample exceeds with the given probability, with its 95 % interval; the upper end is the cautious bound. It is " +
	"extrapolated from the largest samples (peaks over threshold), and holds for this machine, load and program alone. It is no proof: see docs/statistics.md."
