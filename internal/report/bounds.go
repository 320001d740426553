package report

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Breach is a median beyond the bound of its metric: a limit that does not hold, on any baseline.
type Breach struct {
	Key
	Target string
	Metric result.Metric
	Median float64
	// Trials is the number of values behind the median.
	Trials int
	// Doubt is the reason why the breach may be chance. It is empty if the whole interval of the median is beyond the bound.
	Doubt string
}

// String spells it in one sentence: "limits.cpu.time quota=0.1: containerd/runsc does not hold its CPU limit: CPULimitUse is
// 980 %, above the bound of 110 % (median of 10 trials)."
func (b *Breach) String() string { return b.Title() + ": " + b.Short() + "." }

// Short is String without the benchmark.
func (b *Breach) Short() string {
	trials := fmt.Sprintf("median of %d trials", b.Trials)
	if b.Trials == 1 {
		trials = "one trial"
	}
	if b.Doubt != "" {
		trials += "; " + b.Doubt
	}
	return fmt.Sprintf("%s %s: %s is %s, above the bound of %s (%s)",
		b.Target, b.Metric.Bound.Broken, b.Metric.Name, quantity.Text(b.Median, b.Metric.Unit), quantity.Text(b.Metric.Bound.Most, b.Metric.Unit), trials)
}

// breaches lists the breaches of a benchmark in one run.
func (b *Benchmark) breaches(run int) []Breach {
	var all []Breach
	for i := range b.Metrics {
		m := &b.Metrics[i]
		for _, row := range m.Rows {
			if c := &row.Cells[run]; m.Breached(c) {
				all = append(all, Breach{b.Key, row.Target, m.Metric, c.Summary.Median, c.Summary.N, doubt(m.Bound, c.Summary)})
			}
		}
	}
	return all
}

// doubt is the reason why a median beyond a bound may be chance.
func doubt(bound result.Bound, s *stats.Summary) string {
	switch {
	case s.CI == nil:
		return "too few trials for an interval: repeat it"
	case s.CI.Lo <= bound.Most:
		return "its interval includes the bound: repeat it on a quiet host"
	}
	return ""
}

// breaches describes the breaches of all runs, with the runs if there are several.
func (r *Report) breaches() []string {
	type kind struct {
		Breach
		where []string
	}
	var kinds []kind
	for _, bench := range r.Benchmarks() {
		for run, s := range bench.Sections {
			if s == nil {
				continue
			}
			for _, b := range s.Breaches {
				k := place(&kinds, func(k *kind) bool {
					return k.Title() == b.Title() && k.Target == b.Target && k.Metric.Bound.Broken == b.Metric.Bound.Broken && k.Metric.Name == b.Metric.Name
				}, kind{Breach: b})
				text := r.Runs[run].Label + " (" + quantity.Text(b.Median, b.Metric.Unit)
				if b.Doubt != "" {
					text += "; " + b.Doubt
				}
				k.where = append(k.where, text+")")
			}
		}
	}
	var all []string
	for _, k := range kinds {
		if len(r.Runs) == 1 {
			all = append(all, k.String())
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s %s on %s: %s is above the bound of %s.",
			k.Title(), k.Target, k.Metric.Bound.Broken, strings.Join(k.where, ", "), k.Metric.Name, quantity.Text(k.Metric.Bound.Most, k.Metric.Unit)))
	}
	return all
}
