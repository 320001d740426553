package runs

import (
	"math"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/stats/tail"
)

type (
	metricData struct {
		Name        string           `json:"name" doc:"Name of the metric."`
		Unit        result.Unit      `json:"unit" doc:"Unit of all values."`
		Better      result.Direction `json:"better" doc:"The direction of better values."`
		Series      bool             `json:"series,omitempty" doc:"Set if a trial takes several values in order. They count as one value: their median, or the last one of an amount that grows."`
		Trend       string           `json:"trend_per,omitempty" doc:"The thing that the places of a series count, such as \"running container\"; absent if the value is no function of its place."`
		DerivedFrom string           `json:"derived_from,omitempty" doc:"Metric that this one is computed from. A derived metric has no comparison."`
		Bound       result.Bound     `json:"bound,omitzero" doc:"A value that the metric should not exceed, in the unit of the metric."`
		Cells       []cellData       `json:"cells" doc:"The metric on each target."`
	}
	// cellData is a metric on a target of the only run. All values are in the unit of the metric.
	cellData struct {
		Target string `json:"target" doc:"Name of the target."`
		Reason string `json:"reason,omitempty" doc:"The reason of a missing number; absent with a number."`
		estimateData
		Mean         document.Decimal   `json:"mean" doc:"Arithmetic mean, in the unit of the metric."`
		SD           document.Decimal   `json:"sd" doc:"Sample standard deviation, in the unit of the metric; 0 for one value."`
		Min          document.Decimal   `json:"min" doc:"The smallest value, in the unit of the metric."`
		Max          document.Decimal   `json:"max" doc:"The largest value, in the unit of the metric."`
		MAD          document.Decimal   `json:"mad" doc:"Median absolute deviation from the median, not scaled, in the unit of the metric."`
		P90          *float64           `json:"p90,omitempty" doc:"The 90th percentile, in the unit of the metric; absent below 20 values."`
		P95          *float64           `json:"p95,omitempty" doc:"The 95th percentile, in the unit of the metric; absent below 40 values."`
		P99          *float64           `json:"p99,omitempty" doc:"The 99th percentile, in the unit of the metric; absent below 200 values."`
		Baseline     bool               `json:"baseline,omitempty" doc:"Set on the cell that the others are compared with."`
		BoundBroken  bool               `json:"bound_broken,omitempty" doc:"Set if the median exceeds the bound of the metric."`
		Comparison   *comparisonData    `json:"comparison,omitempty" doc:"The ratio to the baseline; absent without one."`
		Overhead     *document.Decimal  `json:"overhead,omitempty" doc:"|ratio - 1| (wang, equation 1), as a share; absent unless the baseline is native."`
		MedianPlaces []document.Decimal `json:"median_by_place,omitempty" doc:"Median over trials at each place of a series, in the unit of the metric."`
		Trend        *trendData         `json:"trend,omitempty" doc:"The trend of the medians by place; absent without one."`
		Worst        *worstData         `json:"worst_case,omitempty" doc:"The worst case of a time; absent for other metrics, and with too few samples."`
		Warnings     []stats.Warning    `json:"warnings,omitempty" doc:"Reasons to trust the numbers less."`
	}
	// estimateData is a median with its interval, in the unit of the metric.
	estimateData struct {
		N        int                `json:"n" doc:"Number of values."`
		Median   document.Decimal   `json:"median" doc:"The median, in the unit of the metric; null without a number. It is not to be compared with the median of another machine."`
		Interval *document.Interval `json:"interval" doc:"95 % interval of the median, in the unit of the metric; null without one."`
	}
	// comparisonData is a target against the baseline of its run. The verdict has one spelling for all units. Its word is for people and depends
	// on the metric.
	comparisonData struct {
		Pairs         int                `json:"pairs" doc:"Number of blocks that both have."`
		Ratio         document.Decimal   `json:"ratio" doc:"Typical value of target / baseline within blocks, the estimate of Hodges and Lehmann; below 1 if the target has the smaller values."`
		Interval      *document.Interval `json:"interval" doc:"95 % interval of the ratio; null without one."`
		P             document.Decimal   `json:"p" doc:"p-value."`
		AdjustedP     document.Decimal   `json:"adjusted_p" doc:"p-value after Holm's correction."`
		Verdict       stats.Verdict      `json:"verdict" doc:"Verdict, in one spelling for all units; \"emulated\" for a comparison of speed on an emulated CPU, which has no p-value."`
		Word          string             `json:"word" doc:"The verdict for people, by the unit."`
		Detectable    document.Decimal   `json:"detectable" doc:"Least relative difference that would have been found: 0.03 is 3 %."`
		Scope         string             `json:"scope,omitempty" schema:"enum=report|metric" doc:"The extent of a difference: over all comparisons of the run, or in its metric alone; absent without a difference."`
		DecidingPart  stats.Part         `json:"deciding_part,omitempty" doc:"The part that decides a difference; absent without one."`
		MeansRatio    document.Decimal   `json:"means_ratio" doc:"Ratio of the means."`
		MeansInterval *document.Interval `json:"means_interval" doc:"95 % interval of the ratio of the means; null without one."`
		Parts         []partData         `json:"parts,omitempty" doc:"The differences of the parts of the distribution; absent below the least number of blocks, and on an emulated CPU."`
		Shift         []document.Decimal `json:"shift_function,omitempty" schema:"minItems=9;maxItems=9" doc:"Ratios of the deciles, from 10 to 90 %; absent below ten blocks."`
		Dependent     bool               `json:"dependent,omitempty" doc:"Set if the ratios of the blocks depend on the ones before; absent if this is not shown."`
		Lost          document.Decimal   `json:"lost_share,omitzero" schema:"minimum=0;maximum=1" doc:"Share of the target's blocks that it has lost, because trials failed, timed out or were given up; absent if none. Above 0.05 the verdict is never \"faster\" but \"trials lost\"."`
		BaselineLost  document.Decimal   `json:"baseline_lost_share,omitzero" schema:"minimum=0;maximum=1" doc:"Share of the baseline's blocks that it has lost; absent if none. Above 0.05 the verdict is never \"slower\"."`
	}
	partData struct {
		Part      stats.Part       `json:"part" doc:"The part, in the unit of the metric."`
		Ratio     document.Decimal `json:"ratio" doc:"Ratio of the target to the baseline: the comparison's ratio for the typical value, the median of the quotients of any two values for all values, and the ratio of the geometric means for another part."`
		P         document.Decimal `json:"p" doc:"p-value, adjusted for the other parts."`
		AdjustedP document.Decimal `json:"adjusted_p" doc:"p-value after Holm's correction."`
	}
	// trendData is the line through the medians of the places. Slopes are in the unit of the metric per place.
	trendData struct {
		Places    int                `json:"places" doc:"Number of places."`
		Slope     document.Decimal   `json:"slope" doc:"Change from place to place, in the unit of the metric; null with too few places."`
		Interval  *document.Interval `json:"interval" doc:"95 % interval of the slope; null without one."`
		Intercept document.Decimal   `json:"intercept" doc:"Value of the line at place 0, in the unit of the metric."`
		Knee      *kneeData          `json:"knee,omitempty" doc:"The place where the slope changes; absent if none is shown."`
	}
	kneeData struct {
		At          document.Decimal   `json:"at" doc:"The place."`
		Interval    *document.Interval `json:"interval" doc:"95 % interval of the place."`
		SlopeBefore document.Decimal   `json:"slope_before" doc:"Slope of the line before it, in the unit of the metric."`
		SlopeAfter  document.Decimal   `json:"slope_after" doc:"Slope of the line after it, in the unit of the metric."`
		P           document.Decimal   `json:"p" doc:"Probability of lines at least as different in a series without a knee."`
	}
	worstData struct {
		Samples int              `json:"samples" doc:"Number of samples."`
		Max     document.Decimal `json:"max" doc:"The largest sample, in the unit of the metric."`
		Refusal *tail.Refusal    `json:"refusal,omitempty" doc:"The reason without a bound; absent with bounds."`
		*tailData
	}
	// tailData is the model of the samples above a threshold, with its bounds.
	tailData struct {
		Bounds        []boundData        `json:"bounds" doc:"Bounds of rare values, in descending order of their probabilities."`
		Threshold     document.Decimal   `json:"threshold" doc:"The threshold, in the unit of the metric."`
		Exceedances   int                `json:"exceedances" doc:"Number of samples above the threshold."`
		Clusters      int                `json:"clusters" doc:"Number of clusters of these samples."`
		ExtremalIndex document.Decimal   `json:"extremal_index" doc:"The reciprocal of the mean size of a cluster."`
		Scale         document.Decimal   `json:"scale" doc:"Scale of the generalised Pareto distribution of the excesses, in the unit of the metric."`
		Shape         document.Decimal   `json:"shape" doc:"Shape of this distribution."`
		ShapeInterval *document.Interval `json:"shape_interval" doc:"95 % interval of the shape."`
		Variation     document.Decimal   `json:"variation" doc:"Coefficient of variation of the excesses."`
		Weight        tail.Weight        `json:"weight" doc:"The tail beside the exponential distribution."`
		Rarer         *tail.Refusal      `json:"rarer_refusal,omitempty" doc:"The reason why rarer values have no bound; absent if all have one. The bounds hold."`
	}
	boundData struct {
		Probability float64            `json:"probability" doc:"Probability that a sample exceeds the bound."`
		Value       document.Decimal   `json:"value" doc:"The bound, in the unit of the metric."`
		Interval    *document.Interval `json:"interval" doc:"95 % profile-likelihood interval of the bound. Its upper end is the cautious bound."`
	}
)

func newMetricData(m *analysis.Metric) metricData {
	return metricData{m.Name, m.Unit, m.Better, m.Series, m.Trend, m.DerivedFrom, m.Bound, lists.Convert(m.Rows, func(r *analysis.Row) cellData { return newCellData(m, r) })}
}

func newCellData(m *analysis.Metric, row *analysis.Row) cellData {
	c := &row.Cells[0]
	s := summarized(c)
	d := cellData{
		Target: row.Target, Reason: c.Reason, estimateData: newEstimateData(s),
		Mean: document.Decimal(s.Mean), SD: document.Decimal(s.SD), Min: document.Decimal(s.Min), Max: document.Decimal(s.Max), MAD: document.Decimal(s.MAD),
		P90: s.P90, P95: s.P95, P99: s.P99, // samples, with all digits
		Baseline: c.Baseline, BoundBroken: m.Breached(c), Comparison: newComparisonData(c.Comparison, m.Metric), Overhead: (*document.Decimal)(c.Overhead),
		Trend: newTrendData(c.Trend), Worst: newWorstData(c.Worst), Warnings: s.Warnings,
	}
	for _, p := range c.Curve {
		d.MedianPlaces = append(d.MedianPlaces, document.Decimal(p.Median))
	}
	return d
}

// summarized is the summary of a cell. No number of it exists if the cell has none.
func summarized(c *analysis.Cell) *stats.Summary {
	if c.Summary != nil {
		return c.Summary
	}
	gap := math.NaN()
	return &stats.Summary{Median: gap, Mean: gap, SD: gap, Min: gap, Max: gap, MAD: gap}
}

func newEstimateData(s *stats.Summary) estimateData {
	return estimateData{s.N, document.Decimal(s.Median), document.IntervalOf(s.CI)}
}

func newComparisonData(k *stats.Comparison, m result.Metric) *comparisonData {
	if k == nil {
		return nil
	}
	return &comparisonData{
		Pairs: k.N, Ratio: document.Decimal(k.Ratio), Interval: document.IntervalOf(k.CI), P: document.Decimal(k.P), AdjustedP: document.Decimal(k.Adjusted),
		Verdict: k.Verdict, Word: quantity.VerdictWord(k.Verdict, m), Detectable: document.Decimal(k.Detectable), Scope: scope(k), DecidingPart: k.By,
		MeansRatio: document.Decimal(k.Means), MeansInterval: document.IntervalOf(k.MeansCI),
		Parts: lists.Convert(k.Parts, func(d *stats.PartDifference) partData {
			return partData{d.Part, document.Decimal(d.Ratio), document.Decimal(d.P), document.Decimal(d.Adjusted)}
		}),
		Shift: document.Decimals(k.Shift), Dependent: k.Dependent, Lost: document.Decimal(k.Lost.Other), BaselineLost: document.Decimal(k.Lost.Baseline),
	}
}

// scope is the extent of a difference. It is empty without one.
func scope(k *stats.Comparison) string {
	switch {
	case !k.Differs():
		return ""
	case k.Everywhere:
		return "report"
	}
	return "metric"
}

func newTrendData(t *stats.Trend) *trendData {
	if t == nil {
		return nil
	}
	d := &trendData{Places: t.N, Slope: document.Decimal(t.Slope), Interval: document.IntervalOf(t.CI), Intercept: document.Decimal(t.Intercept)}
	if k := t.Knee; k != nil {
		d.Knee = &kneeData{document.Decimal(k.At), document.IntervalOf(&k.Range), document.Decimal(k.Before), document.Decimal(k.After), document.Decimal(k.P)}
	}
	return d
}

func newWorstData(w *analysis.Worst) *worstData {
	if w == nil {
		return nil
	}
	d := &worstData{Samples: w.N, Max: document.Decimal(w.Max), Refusal: w.Refusal}
	if w.Refusal == nil {
		m := w.Model
		bounds := lists.Convert(w.Bounds, func(b *tail.Bound) boundData {
			return boundData{b.P, document.Decimal(b.Value), document.IntervalOf(&b.CI)}
		})
		d.tailData = &tailData{
			bounds, document.Decimal(m.Threshold), m.Exceedances, m.Clusters, document.Decimal(m.ExtremalIndex), document.Decimal(m.GPD.Scale), document.Decimal(m.GPD.Shape),
			document.IntervalOf(&m.ShapeCI), document.Decimal(m.Variation.CV), m.Variation.Weight(), w.Rarer,
		}
	}
	return d
}
