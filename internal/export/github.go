package export

import (
	"fmt"
	"io"

	"github.com/touchstone-bench/touchstone/internal/render/rows"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// githubResult is a benchmark of github-action-benchmark.
type githubResult struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Range string  `json:"range,omitempty"`
	Extra string  `json:"extra"`
}

// writeGitHub writes the metrics of a direction for github-action-benchmark (github.com/benchmark-action/github-action-benchmark, src/extract.ts). The action has a tool for each
// direction, customSmallerIsBetter and customBiggerIsBetter, and takes no empty list.
func writeGitHub(direction result.Direction) func(io.Writer, *Source) error {
	return func(w io.Writer, s *Source) error {
		var list []githubResult
		for _, c := range s.finished() {
			if c.metric.Better != direction {
				continue
			}
			summary := c.values.Summary
			item := githubResult{
				Name: rows.OneLine(c.title() + ": " + c.metric.Name), Unit: string(c.metric.Unit), Value: summary.Median, Extra: fmt.Sprintf("trials: %d", summary.N),
			}
			if low, high := ends(summary); low != nil {
				item.Range = fmt.Sprintf("%v to %v", *low, *high)
			}
			list = append(list, item)
		}
		if list == nil {
			s.note("no metric of the run is better if it is %s, so that file is not written", direction)
			return nil
		}
		return encode(w, " ", list)
	}
}
