package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answer "github.com/touchstone-bench/touchstone/internal/answer/fleet"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// fleetView is the report of a fleet, or the progress of its nodes while one is under way.
func fleetView(ctx context.Context, db *store.Store, r *http.Request, members []store.Summary) view {
	query := r.URL.Query()
	isPage := query.Get("format") == pageFormat
	v := view{address: "/run/" + members[0].Node.Fleet, key: fleetKey(members), whole: true}
	v.document = func() (*document.Document, error) {
		b := fleet.NewBuilder(analysis.Options{Release: true})
		for i := range members {
			run, err := db.Run(ctx, members[i].ID)
			if err != nil {
				return nil, err
			}
			run = archive.WithoutVariables(run)
			if err := b.Add(&run); err != nil {
				return nil, err
			}
		}
		report, err := b.Report()
		if err != nil {
			return nil, err
		}
		pages := answer.NoPages
		if isPage {
			pages = func(run string) string { return run }
		}
		return answer.Document(report, pages), nil
	}
	if v.key == "" && isPage && !query.Has(partialParameter) {
		v.refresh, v.whole = refreshSeconds, false
		v.document = func() (*document.Document, error) { return fleetUnderWay(members), nil }
	}
	return v
}

// fleetKey identifies the content of a fleet whose runs have ended. It is empty while a run is under way.
func fleetKey(members []store.Summary) string {
	var key strings.Builder
	key.WriteString("fleet")
	for i := range members {
		m := &members[i]
		if m.State == result.Running {
			return ""
		}
		fmt.Fprintf(&key, " %s %s %d %v", m.ID, m.State, m.Ended.UnixNano(), m.Trials)
	}
	return key.String()
}

// fleetUnderWay is the progress of the nodes of a fleet.
func fleetUnderWay(members []store.Summary) *document.Document {
	first := &members[0]
	d := &document.Document{Kind: "fleet under way", Title: "Fleet " + first.Node.Fleet}
	d.Answer = []document.Text{{Text: fmt.Sprintf("%s: %s", wording.Counted(len(members), "node"), stateCounts(members))}}
	table := document.Table{Listing: true, Rows: [][]document.Cell{document.Cells("Node", "Kind", "State", "Started", "Ok", "Failed", "Skipped")}}
	for i := range members {
		row := newRow(members[i])
		table.Rows = append(table.Rows, append(
			[]document.Cell{link(cmp.Or(row.Node.Name, row.ID), row.ID)},
			document.Cells(row.Node.Kind, string(row.State), row.Start, fmt.Sprint(row.OK), fmt.Sprint(row.Bad), fmt.Sprint(row.Skipped))...,
		))
	}
	d.Blocks = []document.Block{
		document.Facts{Items: []document.Fact{{Name: "Plan", Text: first.Name}, {Name: "Started", Text: shownTime(first.Started)}}},
		document.Text{Text: "The results so far", Link: first.Node.Fleet + "?" + partialParameter + "=1"},
		document.Section{ID: "nodes", Title: "Nodes", Blocks: []document.Block{table}},
	}
	return d
}

// stateCounts spells the number of runs in each state: "2 running, 1 complete". Runs in one state have no number.
func stateCounts(members []store.Summary) string {
	var parts []string
	for _, state := range []result.State{result.Running, result.Complete, result.Interrupted, result.Killed} {
		count := 0
		for i := range members {
			if members[i].State == state {
				count++
			}
		}
		switch count {
		case 0:
		case len(members):
			return string(state)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", count, state))
		}
	}
	return strings.Join(parts, ", ")
}

// fleetRow is the row of a fleet in the list of runs.
func fleetRow(members []store.Summary) runRow {
	row := newRow(members[0])
	row.Nodes, row.State = len(members), result.State(stateCounts(members))
	for _, m := range members[1:] {
		next := newRow(m)
		row.OK, row.Bad, row.Skipped, row.UnderWay = row.OK+next.OK, row.Bad+next.Bad, row.Skipped+next.Skipped, row.UnderWay || next.UnderWay
		for _, target := range m.Targets {
			if !slices.Contains(row.Targets, target) {
				row.Targets = append(slices.Clip(row.Targets), target)
			}
		}
		if m.Started.Before(row.Started) {
			row.Started = m.Started
		}
	}
	row.Start, row.TargetNames = shownTime(row.Started), strings.Join(row.Targets, ", ")
	return row
}
