package fleet

import (
	"fmt"
	"math"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
)

// records has a row for each target and metric of the fleet, and then a row for each of its nodes.
func records(r *fleet.Report) document.Records {
	out := document.Records{Columns: []string{
		"fleet", "node", "kind", "run", "benchmark", "params", "metric", "unit", "better", "target", "baseline", "value", "ratio", "ratio_low", "ratio_high", "nodes", "spread_log_sd",
		"verdict", "counts", "odd_ratio", "reason",
	}}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		for n := range m.Classes {
			c := &m.Classes[n]
			row := func(node, kind, run any, rest ...any) {
				prefix := []any{r.ID, node, kind, run, m.Key.Name, m.Params, m.Metric.Name, string(m.Unit), string(m.Better), c.Target, r.Baseline}
				out.Rows = append(out.Rows, append(prefix, rest...))
			}
			var ratio, low, high, spread, verdict any
			if c.Comparison != nil {
				ratio, verdict = document.Number(c.Comparison.Ratio), string(c.Comparison.Verdict)
				low, high = document.Ends(c.Comparison.CI)
				spread = document.Number(c.Fleet.Spread())
			}
			row(nil, nil, nil, document.Number(c.Typical), ratio, low, high, c.Fleet.N, spread, verdict, nil, nil, "")
			for node := range c.Values {
				v := &c.Values[node]
				low, high := document.Ends(v.CI)
				var quotient any
				if odd := oddOf(c, node); odd != nil {
					quotient = document.Number(odd.Quotient)
				}
				row(r.Nodes[node].Name, r.Nodes[node].Kind, r.Nodes[node].Run, document.Number(v.Median), document.Number(v.Ratio), low, high, nil, nil, nil, v.Counts, quotient, v.Reason)
			}
		}
	}
	return out
}

// checks are the nodes: one that is odd has failed, and one without a value in any metric is undecided.
func checks(r *fleet.Report) []document.Check {
	odd := map[int][]string{}
	for _, n := range r.OddNodes() {
		for _, item := range n.Items {
			odd[n.Node] = append(odd[n.Node], item.Text())
		}
	}
	list := []document.Check{}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		check := document.Check{Suite: n.Kind, Name: fmt.Sprintf("%s is like the other nodes of its kind", n.Name), Status: document.Passed, Answer: "no difference shown"}
		switch {
		case odd[i] != nil:
			check.Status, check.Answer, check.Message = document.Failed, "odd", strings.Join(odd[i], ", ")
		case !hasValue(r, i):
			check.Status, check.Answer, check.Message = document.Undecided, "no value", fmt.Sprintf("the node has no value; its run is %s", n.State)
		}
		list = append(list, check)
	}
	return list
}

func hasValue(r *fleet.Report, node int) bool {
	for i := range r.Metrics {
		for n := range r.Metrics[i].Classes {
			if !math.IsNaN(r.Metrics[i].Classes[n].Values[node].Median) {
				return true
			}
		}
	}
	return false
}
