package runs

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// checks are the judgements of a report that need no choice of a user: whether each target did each benchmark, and held its bounds. A slow target fails no check, because the
// baseline is no requirement.
func checks(r *report.Report) []document.Check {
	list := []document.Check{}
	for _, bench := range r.Benchmarks() {
		for run, section := range bench.Sections {
			if section == nil {
				continue
			}
			suite := bench.Title()
			if len(r.Runs) > 1 {
				suite += ", run " + r.Runs[run].ID
			}
			for i := range section.Targets {
				c := check(section, &section.Targets[i])
				c.Suite, c.Name = suite, section.Targets[i].Target
				list = append(list, c)
			}
		}
	}
	return list
}

// check is the judgement of a benchmark on a target.
func check(s *analysis.Section, o *analysis.Outcome) document.Check {
	var breaches []string
	for _, b := range s.Breaches {
		if b.Target == o.Target {
			breaches = append(breaches, fmt.Sprintf("the median of %s is %s, and its bound is %s", b.Metric.Name, quantity.Text(b.Median, b.Metric.Unit), quantity.Text(b.Metric.Bound.Most, b.Metric.Unit)))
		}
	}
	switch {
	case breaches != nil:
		return document.Check{Status: document.Failed, Answer: "bound broken", Message: strings.Join(breaches, "; ")}
	case o.OK == 0 && o.Failed+o.Timeout == 0:
		return document.Check{Status: document.Skipped, Answer: "not measured", Message: o.Why()}
	case o.OK == 0 || o.LostShare() > stats.MostLost:
		return document.Check{Status: document.Failed, Answer: "trials lost", Message: strings.TrimPrefix(o.LostText()+"; "+o.Why(), "; ")}
	}
	return document.Check{Status: document.Passed, Answer: "measured", Message: o.Counts()}
}
