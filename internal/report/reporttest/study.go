package reporttest

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Study is a made study compared with the run Small, with all verdicts, a flag, a table of another machine and a figure. Its text is hostile to
// HTML and to terminals.
func Study() *reproduce.Reproduction {
	value := func(metric string) paper.Of { return paper.Of{Benchmark: lifecycle, Metric: metric} }
	claim := func(name, text string, relation paper.Relation, margin float64, values ...paper.Of) paper.Claim {
		return paper.Claim{
			Name: name, Text: text, Place: "section 1", Of: values, Targets: []string{"oci/runc"}, Others: []string{"native"},
			Relation: relation, Margin: margin, Note: "the printed factor",
		}
	}
	p := paper.Paper{
		Name: "study", Authors: "A. Author", Title: "A Study of <Containers>", Venue: "A Conference", Year: 2020,
		Claims: []paper.Claim{
			claim("slower", "runc starts slower than native.", paper.Worse, 2, value("CreateAndRun")),
			claim("similar", "runc starts as fast as native.", paper.Similar, 1.05, value("CreateAndRun"), value("Create"), value("Run"), value("Destroy")),
			claim("taste", "runc is <b>nicer</b>.\x1b[31m", paper.Better, 1, paper.Of{Unmeasured: "it is a matter of taste"}),
			claim("partly", "runc is slower everywhere.", paper.Worse, 1, value("CreateAndRun"), value("Absent")),
		},
		Tables: []paper.Table{
			{
				Name: "table 1", Title: "Results", Place: "section 1", Reference: "native", Of: paper.Of{Benchmark: lifecycle, Unit: "s"},
				Columns: []paper.Column{{Heading: "native", Of: paper.Of{Target: "native"}}, {Heading: "runc", Of: paper.Of{Target: "oci/runc"}}},
				Rows: []paper.Row{
					{Group: "Life cycle", Label: "Create and run", Of: paper.Of{Metric: "CreateAndRun"}, Cells: []paper.Cell{{Printed: "0.002"}, {Printed: "0.040"}}},
					{Label: "Destroy", Of: paper.Of{Metric: "Destroy"}, Cells: []paper.Cell{{Printed: "-"}, {Printed: "0.5", Flag: "the text has 0.6"}}},
					{Label: "Taste", Of: paper.Of{Unmeasured: "it is a matter of taste"}, Cells: []paper.Cell{{Printed: ""}, {Printed: "good"}}},
				},
				Notes: []string{"The study <measured> once."},
			},
			{
				Name: "table 2", Title: "The same on a board", Place: "section 2", Of: paper.Of{Benchmark: lifecycle, Target: "native", Arch: "riscv64"},
				Columns: []paper.Column{{Heading: "native"}},
				Rows:    []paper.Row{{Label: "Create", Of: paper.Of{Metric: "Create"}, Cells: []paper.Cell{{Printed: "1"}}}},
			},
		},
		Figures: []paper.Figure{
			{Name: "figure 1", Title: "Start", Of: []paper.Of{value("CreateAndRun")}},
			{Name: "figure 2", Title: "Taste", Of: []paper.Of{{Unmeasured: "it is a matter of taste"}}},
		},
	}
	run := Small()
	run.Seed = 1
	full := report.New([]result.Run{run}, analysis.Options{})
	return reproduce.New(p, []reproduce.Run{{Run: run, Report: full}}, reproduce.Options{Work: []analysis.Key{full.Benchmarks()[0].Key}, Quick: true})
}
