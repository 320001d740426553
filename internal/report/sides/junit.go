package sides

import (
	"fmt"
	"io"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report/ci"
)

// statuses are the answers as results of test cases.
var statuses = map[Answer]ci.Status{Worse: ci.Failed, NotWorse: ci.Passed, Inconclusive: ci.Undecided}

// JUnit writes the gates as test cases, a suite for each benchmark. A metric that is worse than its margin is a failure, and an inconclusive one
// an error.
func (c *Comparison) JUnit(w io.Writer) error {
	var cases []ci.Case
	for _, k := range c.Gates {
		suite, name := analysis.Key{Name: k.Benchmark, Params: k.Params}.Title(), k.Metric.Name+" on "+k.Target
		if k.Metric.Name == "" {
			suite, name = "gates", k.Gate.String()
		}
		cases = append(cases, ci.Case{
			Suite: suite, Name: name, Status: statuses[k.Answer], Answer: string(k.Answer), Message: fmt.Sprintf("%s: %s", k.Gate, k.Why),
		})
	}
	return ci.WriteJUnit(w, "touchstone compare "+c.NameA+" "+c.NameB, cases)
}
