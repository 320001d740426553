package fleet_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func build(t testing.TB, runs []result.Run, o analysis.Options) *fleet.Report {
	t.Helper()
	b := fleet.NewBuilder(o)
	for i := range runs {
		must.Do(t, b.Add(&runs[i]))
	}
	r, err := b.Report()
	must.Do(t, err)
	return r
}

func TestDump(t *testing.T) {
	r := build(t, reporttest.Cluster(), analysis.Options{})
	for _, m := range r.Metrics {
		for _, c := range m.Classes {
			t.Logf("%s %s %s: typical %.4g", m.Key.Name, m.Metric.Name, c.Target, c.Typical)
			if c.Comparison != nil {
				t.Logf("    %d nodes ratio %.3f %v verdict %s everywhere %v spread %.3f p %.2g share %.2f", c.Fleet.N, c.Comparison.Ratio, c.Comparison.CI, c.Comparison.Verdict, c.Comparison.Everywhere, c.Fleet.Spread(), c.SpreadP, c.Fleet.Share)
			}
			for _, k := range c.Kinds {
				t.Logf("    kind %+v", k)
			}
			for _, o := range c.Odd {
				t.Logf("    odd %s %+v", r.Nodes[o.Node].Name, o)
			}
			for _, s := range c.Separations {
				t.Logf("    separation %+v", s)
			}
			for i, v := range c.Values {
				if v.Reason != "" {
					t.Logf("    %s: %s", r.Nodes[i].Name, v.Reason)
				}
			}
		}
	}
	for _, s := range r.Stages {
		for _, row := range s.Rows {
			t.Log(s.Title, s.Parts, row)
		}
	}
}
