package finding

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
)

// Breach states a breach in one sentence: "limits.cpu.time quota=0.1: containerd/runsc does not hold its CPU limit: CPULimitUse is
// 980 %, above the bound of 110 % (median of 10 trials)."
func Breach(b *analysis.Breach) string { return b.Title() + ": " + BreachClause(b) + "." }

// BreachClause is [Breach] without the benchmark.
func BreachClause(b *analysis.Breach) string {
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

// breaches describes the breaches of all runs, with the runs if there are several.
func breaches(a *analysis.Analysis) []string {
	type kind struct {
		analysis.Breach
		where []string
	}
	var kinds []kind
	for _, bench := range a.Benchmarks() {
		for run, s := range bench.Sections {
			if s == nil {
				continue
			}
			for _, b := range s.Breaches {
				k := lists.Place(&kinds, func(k *kind) bool {
					return k.Title() == b.Title() && k.Target == b.Target && k.Metric.Bound.Broken == b.Metric.Bound.Broken && k.Metric.Name == b.Metric.Name
				}, kind{Breach: b})
				text := a.Runs[run].Label + " (" + quantity.Text(b.Median, b.Metric.Unit)
				if b.Doubt != "" {
					text += "; " + b.Doubt
				}
				k.where = append(k.where, text+")")
			}
		}
	}
	var texts []string
	for _, k := range kinds {
		if len(a.Runs) == 1 {
			texts = append(texts, Breach(&k.Breach))
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %s %s on %s: %s is above the bound of %s.",
			k.Title(), k.Target, k.Metric.Bound.Broken, strings.Join(k.where, ", "), k.Metric.Name, quantity.Text(k.Metric.Bound.Most, k.Metric.Unit)))
	}
	return texts
}
