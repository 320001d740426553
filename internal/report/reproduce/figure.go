package reproduce

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/paper"
)

// Figure is a figure of the paper without printed values, from the values of the runs alone.
type Figure struct {
	paper.Figure
	// Metrics are the metrics of the figure that were measured, on all targets of a run.
	Metrics []analysis.Metric `json:"-"`
	Reason  string            `json:"reason,omitempty" doc:"The reason why nothing of the figure was measured; absent if something was."`
}

func (s *source) figure(f paper.Figure) Figure {
	out := Figure{Figure: f}
	for _, value := range f.Of {
		if m, reason := s.metric(value); reason == "" {
			out.Metrics = append(out.Metrics, *m)
		} else if out.Reason == "" {
			out.Reason = reason
		}
	}
	if out.Metrics != nil {
		out.Reason = ""
	}
	return out
}

// metric is a metric with all targets of the run that measured it, or the reason why no run did.
func (s *source) metric(value paper.Of) (*analysis.Metric, string) {
	if value.Unmeasured != "" {
		return nil, value.Unmeasured
	}
	key, has := s.key(value)
	if !has {
		return nil, s.notPlanned(value)
	}
	reason := ""
	for i := range s.runs {
		b := s.view(view{run: i, key: key, baseline: s.runs[i].Baseline})
		if b.Benchmark == nil {
			reason = b.reason
			continue
		}
		if m := slices.IndexFunc(b.Metrics, func(m analysis.Metric) bool { return m.Name == value.Metric }); m >= 0 {
			return &b.Metrics[m], ""
		}
		reason = "not recorded: " + value.Metric + " of " + key.Title()
	}
	return nil, reason
}
