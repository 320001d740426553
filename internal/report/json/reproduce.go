package reportjson

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// ReproductionKind is the kind of the document of WriteReproduction.
const ReproductionKind = "touchstone-reproduction"

// WriteReproduction writes the comparison of a paper with its runs as one JSON document, the same bytes for the same comparison.
func WriteReproduction(w io.Writer, r *reproduce.Reproduction) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(reproduction(r)); err != nil {
		return fmt.Errorf("write reproduction: %w", err)
	}
	return nil
}

func reproduction(r *reproduce.Reproduction) object {
	counts := object{}
	for _, v := range reproduce.Verdicts() {
		counts = append(counts, member{string(v), r.Counts()[v]})
	}
	return object{
		{"kind", ReproductionKind},
		{"schema", SchemaVersion},
		{"paper", object{{"name", r.Paper.Name}, {"authors", r.Paper.Authors}, {"title", r.Paper.Title}, {"venue", r.Paper.Venue}, {"year", r.Paper.Year}}},
		{"quick", r.Quick},
		optional("table", r.Table),
		optional("emulation", r.Emulation()),
		{"runs", each(r.Runs, func(source *report.Report) object {
			run := &source.Runs[0]
			return object{{"id", run.ID}, {"name", run.Name}, {"state", string(run.State)}, {"started", run.Started}, {"host", run.Host.Hostname}, {"baseline", run.Baseline}}
		})},
		{"verdicts", counts},
		{"claims", each(r.Claims, claim)},
		{"tables", each(r.Tables, reproducedTable)},
		optional("figures", each(r.Figures, func(f *reproduce.Figure) object {
			return object{{"name", f.Name}, {"title", f.Title}, {"of", each(f.Of, ofValue)}, optional("reason", f.Reason)}
		})),
	}
}

func claim(c *reproduce.Claim) object {
	return object{
		{"name", c.Name},
		{"text", c.Text},
		{"place", c.Place},
		{"relation", string(c.Relation)},
		{"margin", c.Margin},
		optional("note", c.Note),
		{"verdict", string(c.Verdict)},
		optional("reason", c.Reason),
		{"comparisons", each(c.Comparisons, func(k *reproduce.Comparison) object {
			o := append(ofValue(&k.Of), object{{"target", k.Target}, {"other", k.Other}, {"verdict", string(k.Verdict)}, optional("reason", k.Reason)}...)
			return append(o, ratio(k.Compared)...)
		})},
	}
}

func ofValue(value *paper.Of) object {
	return object{optional("benchmark", value.Benchmark), optional("metric", value.Metric), optional("params", value.Params)}
}

// ratio is the members of a comparison. It is empty without one.
func ratio(k *stats.Comparison) object {
	if k == nil {
		return nil
	}
	return object{{"ratio", number(k.Ratio)}, {"interval", interval(k.CI)}, {"pairs", k.N}}
}

func reproducedTable(t *reproduce.Table) object {
	var rows []object
	for i, row := range t.Rows {
		rows = append(rows, object{
			optional("group", row.Group), {"label", row.Label}, {"cells", each(t.Cells[i], reproducedCell)},
		})
	}
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, c.Heading)
	}
	return object{
		{"name", t.Name},
		{"title", t.Title},
		{"place", t.Place},
		optional("reference", t.Reference), optional("reason", t.Reason),
		{"columns", list(columns)},
		{"rows", list(rows)},
		optional("notes", t.Notes),
	}
}

func reproducedCell(c *reproduce.Cell) object {
	o := object{
		{"printed", c.Printed},
		optional("printed_unit", c.Of.Unit), optional("flag", c.Flag), optional("target", c.Of.Target),
		optional("published_ratio", number(c.Published)), optional("reason", c.Reason),
	}
	if c.Ours != nil {
		o = append(o, object{{"median", number(c.Ours.Median)}, {"interval_of_median", interval(c.Ours.CI)}, {"unit", string(c.Metric.Unit)}, {"n", c.Ours.N}}...)
	}
	return append(o, ratio(c.Ratio)...)
}
