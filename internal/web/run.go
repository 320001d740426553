package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answer "github.com/touchstone-bench/touchstone/internal/answer/fleet"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// refreshSeconds is the time between two loads of the page of a run under way.
const refreshSeconds = 5

// partialParameter requests the report of a run under way in place of its progress.
const partialParameter = "partial"

// run is the report of a run or of a fleet, or the progress of one under way.
func (s *server) run(ctx context.Context, db *store.Store, r *http.Request) (view, error) {
	ref := r.PathValue("id")
	outline, problem := db.Outline(ctx, ref)
	fleet := ""
	// The search for a fleet reads the list of all runs.
	if isRun := problem == nil && outline.ID == ref; !isRun || outline.Host.Node != nil {
		if isRun {
			ref = outline.Host.Node.Fleet
		}
		members, err := archive.Fleet(ctx, db, ref)
		switch {
		case err != nil:
			return view{}, cmp.Or(problem, err)
		case members != nil && !isRun:
			return fleetView(ctx, db, r, members), nil
		case members != nil:
			fleet = ref
		}
	}
	if problem != nil {
		return view{}, problem
	}
	query := r.URL.Query()
	if query.Get("format") != pageFormat {
		fleet = "" // a file has no page beside it
	}
	v := view{address: "/run/" + outline.ID, key: runKey(&outline), whole: true}
	if fleet != "" && v.key != "" {
		v.key += " of a fleet"
	}
	v.load = func() ([]result.Run, error) {
		run, err := db.Run(ctx, outline.ID)
		return []result.Run{archive.WithoutVariables(run)}, err
	}
	v.document = func() (*document.Document, error) {
		list, err := v.load()
		if err != nil {
			return nil, err
		}
		model := report.New(list, analysis.Options{Release: true})
		if fleet != "" {
			return answer.NodeDocument(&model, fleet), nil
		}
		return runs.Document(&model), nil
	}
	if outline.State == result.Running && query.Get("format") == pageFormat && !query.Has(partialParameter) {
		v.refresh, v.whole = refreshSeconds, false
		v.document = func() (*document.Document, error) {
			d := underWay(&outline)
			if fleet != "" {
				d.Blocks = append(d.Blocks, answer.BackLink(outline.Host.Node, fleet))
			}
			return d, nil
		}
	}
	return v, nil
}

// runKey identifies the content of a run that has ended. It is empty for a run under way. A run that is resumed later has more trials.
func runKey(run *result.Run) string {
	if run.State == result.Running {
		return ""
	}
	return fmt.Sprintf("run %s %s %d %d %d", run.ID, run.State, run.Started.UnixNano(), run.Ended.UnixNano(), len(run.Trials))
}

// shownTime spells a time.
func shownTime(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// underWay is the progress of a run as a document.
func underWay(run *result.Run) *document.Document {
	d := &document.Document{Kind: "run under way", Title: "Run " + run.ID}
	facts := document.Facts{Items: []document.Fact{
		{Name: "Plan", Text: run.Name}, {Name: "Machine", Text: run.Host.Hostname}, {Name: "Started", Text: shownTime(run.Started)},
	}}
	if n := len(run.Trials); n > 0 {
		last := &run.Trials[n-1]
		facts.Items = append(facts.Items, document.Fact{Name: "Last trial", Text: fmt.Sprintf("%s on %s: %s, at %s", last.Benchmark, last.Target, last.Status, shownTime(last.Started.Add(last.Elapsed)))})
	}
	p, err := archive.ProgressOf(run)
	if err != nil { // such as the plan of another version
		text := fmt.Sprintf("%s so far. The number of all trials is unknown: %v.", wording.Counted(len(run.Trials), "trial"), err)
		d.Answer = []document.Text{{Text: text}}
		d.Blocks = []document.Block{facts, partialLink(run)}
		return d
	}
	d.Answer = []document.Text{{Text: progressText(&p)}}
	table := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Benchmark", "Parameters", "Trials", "Of", "Not ok")}}
	for _, w := range p.Work {
		table.Rows = append(table.Rows, document.Cells(w.Benchmark, w.Params, fmt.Sprint(w.Done), fmt.Sprint(w.Total), fmt.Sprint(w.Problems)))
	}
	d.Blocks = []document.Block{facts, partialLink(run), document.Section{ID: "trials", Title: "Trials", Blocks: []document.Block{table}}}
	return d
}

func partialLink(run *result.Run) document.Text {
	return document.Text{Text: "The results so far", Link: run.ID + "?" + partialParameter + "=1"}
}

// progressText spells the progress on one line.
func progressText(p *archive.Progress) string {
	text := fmt.Sprintf("%d %%: %d of %d trials", 100*p.Done/max(p.Total, 1), p.Done, p.Total)
	if p.Left == 0 {
		return text
	}
	word := "about"
	if p.AtMost {
		word = "at most"
	}
	return fmt.Sprintf("%s, %s %v left", text, word, quantity.RoundedTime(p.Left))
}
