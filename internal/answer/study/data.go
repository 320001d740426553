package study

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Kind is the kind of the JSON.
const Kind = "touchstone-reproduction"

// dataVersion is the version of the JSON.
const dataVersion = 1

// Data is the JSON of a reproduction. An unknown value is null or absent, never zero.
type Data struct {
	Kind      string             `json:"kind" doc:"Kind of the document."`
	Version   int                `json:"schema" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	Paper     paperData          `json:"paper" doc:"The study."`
	Quick     bool               `json:"quick" doc:"Set if the plans have quick parameters."`
	Table     string             `json:"table,omitempty" doc:"The only table of the study that was reproduced; absent for all."`
	Emulation string             `json:"emulation,omitempty" doc:"A note on an emulated CPU; absent without one."`
	Runs      []runData          `json:"runs" doc:"The runs of the plans."`
	Verdicts  verdictsData       `json:"verdicts" doc:"Numbers of claims by verdict."`
	Claims    []claimData        `json:"claims" doc:"The claims of the study."`
	Tables    []tableData        `json:"tables" doc:"The printed tables with our values."`
	Figures   []reproduce.Figure `json:"figures,omitempty" doc:"The figures without printed values; absent without one."`
}

type (
	paperData struct {
		Name    string `json:"name" doc:"Word for the study on the command line: the first author."`
		Authors string `json:"authors" doc:"The authors."`
		Title   string `json:"title" doc:"The title."`
		Venue   string `json:"venue" doc:"The journal or conference."`
		Year    int    `json:"year" doc:"Year of the publication."`
	}
	runData struct {
		ID       string       `json:"id" schema:"minLength=1" doc:"Unique name of the run."`
		Name     string       `json:"name" doc:"Name that the plan gives."`
		State    result.State `json:"state" doc:"The progress of the run."`
		Started  time.Time    `json:"started" doc:"Wall-clock time of the start."`
		Host     string       `json:"host" doc:"Name of the machine; empty if it is unknown."`
		Baseline string       `json:"baseline" doc:"Target that the others are compared with."`
	}
	verdictsData struct {
		Agrees      int `json:"agrees" doc:"Number of claims that our values agree with."`
		Disagrees   int `json:"disagrees" doc:"Number of claims that our values disagree with."`
		CannotTell  int `json:"cannot tell" doc:"Number of claims that our values cannot decide."`
		NotMeasured int `json:"not measured" doc:"Number of claims without our values."`
	}
	claimData struct {
		reproduce.Claim
		Comparisons []comparisonData `json:"comparisons" doc:"The comparisons of the claim."`
	}
	comparisonData struct {
		paper.Of
		Target  string            `json:"target" doc:"Name of the target."`
		Other   string            `json:"other" doc:"Name of the target that it is compared with."`
		Verdict reproduce.Verdict `json:"verdict" doc:"The verdict of this comparison."`
		Reason  string            `json:"reason,omitempty" doc:"The reason of the verdicts \"cannot tell\" and \"not measured\"."`
		*ratioData
	}
	// ratioData is absent without a comparison.
	ratioData struct {
		Ratio    document.Decimal   `json:"ratio" doc:"Typical ratio to the other target, or to the table's reference, within blocks: the estimate of Hodges and Lehmann."`
		Interval *document.Interval `json:"interval" doc:"95 % interval of the ratio; null without one."`
		Pairs    int                `json:"pairs" doc:"Number of blocks that both have."`
	}
	tableData struct {
		Name      string    `json:"name" doc:"Name of the table, unique in its study."`
		Title     string    `json:"title" doc:"The printed caption, or the subject of numbers of the text."`
		Place     string    `json:"place" doc:"Its section, and the figure whose values the text prints."`
		Reference string    `json:"reference,omitempty" doc:"Target that the study compares the others with; absent if the table compares nothing."`
		Reason    string    `json:"reason,omitempty" doc:"The reason why nothing of the table was measured; absent if something was."`
		Columns   []string  `json:"columns" doc:"The headings of the columns."`
		Rows      []rowData `json:"rows" doc:"The rows."`
		Notes     []string  `json:"notes,omitempty" doc:"Remarks on more than one cell."`
	}
	rowData struct {
		Group string     `json:"group,omitempty" doc:"Heading of several rows."`
		Label string     `json:"label" doc:"Heading of the row."`
		Cells []cellData `json:"cells" doc:"The cells, in the order of the columns."`
	}
	// cellData is a printed value beside ours.
	cellData struct {
		Printed     string           `json:"printed" doc:"The printed text without its unit; empty for an empty cell."`
		PrintedUnit string           `json:"printed_unit,omitempty" doc:"The printed unit."`
		Flag        string           `json:"flag,omitempty" doc:"The reason why the printed value is wrong or doubtful."`
		Target      string           `json:"target,omitempty" doc:"Name of the target."`
		Published   document.Decimal `json:"published_ratio,omitzero" doc:"The printed ratio to the table's reference; absent without one."`
		Reason      string           `json:"reason,omitempty" doc:"The reason why our value is missing."`
		*oursData
		*ratioData
	}
	// oursData is our value. It is absent if it was not measured.
	oursData struct {
		Median   document.Decimal   `json:"median" doc:"Our median, in unit."`
		Interval *document.Interval `json:"interval_of_median" doc:"95 % interval of our median, in unit; null without one."`
		Unit     result.Unit        `json:"unit" doc:"Unit of our median."`
		N        int                `json:"n" doc:"Number of our values."`
	}
)

func data(r *reproduce.Reproduction) any {
	counts := r.Counts()
	return Data{
		Kind: Kind, Version: dataVersion, Paper: paperData{r.Paper.Name, r.Paper.Authors, r.Paper.Title, r.Paper.Venue, r.Paper.Year},
		Quick: r.Quick, Table: r.Table, Emulation: r.Emulation(),
		Runs: lists.Convert(r.Runs, func(source *report.Report) runData {
			run := &source.Runs[0]
			return runData{run.ID, run.Name, run.State, run.Started, run.Host.Hostname, run.Baseline}
		}),
		Verdicts: verdictsData{counts[reproduce.Agrees], counts[reproduce.Disagrees], counts[reproduce.CannotTell], counts[reproduce.NotMeasured]},
		Claims:   lists.Convert(r.Claims, newClaimData), Tables: lists.Convert(r.Tables, newTableData),
		Figures: r.Figures,
	}
}

func newClaimData(c *reproduce.Claim) claimData {
	return claimData{*c, lists.Convert(c.Comparisons, func(k *reproduce.Comparison) comparisonData {
		return comparisonData{k.Of, k.Target, k.Other, k.Verdict, k.Reason, newRatioData(k.Compared)}
	})}
}

func newRatioData(k *stats.Comparison) *ratioData {
	if k == nil {
		return nil
	}
	return &ratioData{document.Decimal(k.Ratio), document.IntervalOf(k.CI), k.N}
}

func newTableData(t *reproduce.Table) tableData {
	columns := lists.Convert(t.Columns, func(c *paper.Column) string { return c.Heading })
	d := tableData{t.Name, t.Title, t.Place, t.Reference, t.Reason, columns, []rowData{}, t.Notes}
	for i, row := range t.Rows {
		d.Rows = append(d.Rows, rowData{row.Group, row.Label, lists.Convert(t.Cells[i], newCellData)})
	}
	return d
}

func newCellData(c *reproduce.Cell) cellData {
	d := cellData{
		Printed: c.Printed, PrintedUnit: c.Of.Unit, Flag: c.Flag, Target: c.Of.Target, Published: document.Decimal(c.Published), Reason: c.Reason,
		ratioData: newRatioData(c.Ratio),
	}
	if s := c.Ours; s != nil {
		d.oursData = &oursData{document.Decimal(s.Median), document.IntervalOf(s.CI), c.Metric.Unit, s.N}
	}
	return d
}
