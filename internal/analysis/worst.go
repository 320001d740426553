package analysis

import (
	"errors"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats/tail"
)

// leastRaw is the least number of samples for a worst case without tails. Fewer samples cannot have a bound.
const leastRaw = 2000

// Worst is the worst case of a time on a target: the largest of all its samples, with bounds for rarer values, a refusal, or bounds and a refusal of
// still rarer values. The samples of all trials are one series.
type Worst struct {
	// N counts the samples, and Max is the largest of them.
	N   int
	Max float64
	// Model is the tail of the samples, with Bounds for descending probabilities beyond 1/N. Without a bound both are nil, and Refusal is the reason.
	Model   *tail.Model
	Bounds  []tail.Bound
	Refusal *tail.Refusal
	// Rarer is the reason why smaller probabilities than in Bounds have no bound; nil if all have one. The model has passed all checks of tail.Fit, so
	// Bounds hold.
	Rarer *tail.Refusal
}

// LostTrials is the test of a worst case that no block of the target is lost: a trial that exceeded its limit took the slowest samples with it.
const LostTrials tail.Test = "lost trials"

// worst is nil for a metric that is no time, that depends on the place in its series, or that has neither tails nor many samples.
func worst(trials []*result.Trial, samples []float64, m result.Metric, o *Outcome) *Worst {
	if m.Unit != result.Seconds || m.Consumed || m.Better != result.Lower || m.Trend != "" || m.Growth || m.DerivedFrom != "" {
		return nil
	}
	series := tailsOf(trials, m.Name)
	if series.N == 0 {
		if len(samples) < leastRaw {
			return nil
		}
		series = tail.Of(samples)
	}
	w := &Worst{N: series.N, Max: series.Max()}
	if reason := o.LostText(); reason != "" {
		w.Refusal = &tail.Refusal{
			Test: LostTrials, Reason: reason + ", and their samples may be the slowest", Advice: "find the cause in the trials without a number, and measure again",
		}
		return w
	}
	model, err := tail.Fit(series)
	if errors.As(err, &w.Refusal) {
		return w
	}
	w.bound(model, model.Beyond())
	return w
}

// bound adds the bounds for the probabilities, which descend, up to the first one without a bound.
func (w *Worst) bound(model *tail.Model, probabilities []float64) {
	var refusal *tail.Refusal
	for _, p := range probabilities {
		b, err := model.Bound(p)
		if errors.As(err, &refusal) {
			break
		}
		w.Bounds = append(w.Bounds, b)
	}
	if refusal != nil && len(w.Bounds) == 0 {
		w.Refusal = refusal
		return
	}
	w.Model, w.Rarer = model, refusal
}

// tailsOf joins the tails of the distributions of a metric in the order of the trials.
func tailsOf(trials []*result.Trial, metric string) tail.Series {
	var tails []tail.Series
	for _, t := range trials {
		for _, d := range t.Distributions {
			if d.Metric != metric || d.Tail == nil || len(d.Tail.At) == 0 {
				continue
			}
			s := tail.Series{At: d.Tail.At, Values: d.Tail.Values, Floor: slices.Min(d.Tail.Values)}
			for _, n := range d.Counts {
				s.N += int(min(n, 1<<40)) // an import may have any count
			}
			tails = append(tails, s)
		}
	}
	return tail.Join(tails...)
}

// allSamples are the samples of each metric in the order of the trials. One pass over the trials collects all metrics, because their samples are far
// apart in memory.
func allSamples(trials []*result.Trial, metrics []result.Metric) [][]float64 {
	index := make(map[string]int, len(metrics))
	for i, m := range metrics {
		index[m.Name] = i
	}
	samples := make([][]float64, len(metrics))
	for _, t := range trials {
		for i := range t.Samples {
			s := &t.Samples[i]
			if metric, ok := index[s.Metric]; ok {
				samples[metric] = append(samples[metric], s.Value)
			}
		}
	}
	return samples
}

// Worsts returns the metrics of the only run with a worst case on some target.
func (b *Benchmark) Worsts() []*Metric {
	var metrics []*Metric
	for i := range b.Metrics {
		if slices.ContainsFunc(b.Metrics[i].Rows, func(r Row) bool { return r.Cells[0].Worst != nil }) {
			metrics = append(metrics, &b.Metrics[i])
		}
	}
	return metrics
}
