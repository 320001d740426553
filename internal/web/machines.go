package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// mostMachineRuns is the largest number of runs that the page names of each machine.
const mostMachineRuns = 20

// machineRow is a machine with its runs, the newest first. Host has the facts of the newest one.
type machineRow struct {
	Name string      `json:"name"`
	Host result.Host `json:"host"`
	Runs []string    `json:"runs"`
	// head is the newest run.
	head *result.Run
}

// machines lists the machines of all runs.
func (s *server) machines(ctx context.Context, db *store.Store, _ *http.Request) (view, error) {
	return view{address: "/machines", document: func() (*document.Document, error) {
		heads, err := db.Heads(ctx)
		if err != nil {
			return nil, err
		}
		rows := machinesOf(heads)
		l := newListing("machines", wording.Counted(len(rows), "machine"), "machine", "runs", "newest_run", "system", "processor")
		for _, m := range rows {
			l.add(plain(m.Name), plain(fmt.Sprint(len(m.Runs))), link(m.Runs[0], "run/"+m.Runs[0]), plain(m.Host.OS+", kernel "+m.Host.Kernel), plain(m.Host.CPU))
		}
		d := l.document(rows)
		for _, m := range rows {
			d.Blocks = append(d.Blocks, m.section())
		}
		return d, nil
	}}, nil
}

// machinesOf groups runs by machine. Runs of machines that do not identify themselves share a group by name.
func machinesOf(heads []result.Run) []machineRow {
	var rows []machineRow
	for i := range heads {
		head := &heads[i]
		host := &head.Host
		m := lists.Place(&rows, func(m *machineRow) bool {
			return m.Host.SameMachine(host) || !m.Host.SameMachine(&m.Host) && !host.SameMachine(host) && m.Host.Hostname == host.Hostname
		}, machineRow{Name: cmp.Or(host.Hostname, "unnamed"), Host: *host, head: head})
		m.Runs = append(m.Runs, head.ID)
	}
	return rows
}

// section has the facts of a machine, and its newest runs.
func (m *machineRow) section() document.Block {
	var facts document.Facts
	for _, f := range fact.Host(m.head) {
		if f.Text != "" && !f.Kind.Natural() && f.Kind != fact.Image && f.Kind != fact.Tool {
			facts.Items = append(facts.Items, document.Fact{Name: f.Name(), Text: strings.TrimSpace(f.Text)})
		}
	}
	runs := document.List{Title: "The newest runs:"}
	for _, id := range m.Runs[:min(len(m.Runs), mostMachineRuns)] {
		runs.Items = append(runs.Items, document.Item{Span: document.Span{Text: id, Link: "run/" + id}})
	}
	return document.Section{Title: m.Name, Blocks: []document.Block{facts, runs}}
}
