package web

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/document"
	site "github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

const (
	// pageRuns is the number of runs on a page.
	pageRuns = 100
	// fleetParameter selects the runs of a fleet, each in a row of its own.
	fleetParameter = "fleet"
	// mostChoices is the largest number of plans and of targets to choose from. The search finds the others.
	mostChoices = 200
)

var (
	//go:embed runs.html
	runsTemplateText string
	//go:embed runs.css
	runsOwnStyle string

	runsStyle    = site.Style + site.SiteStyle + runsOwnStyle
	runsTemplate = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("runs").Parse(runsTemplateText + site.SiteTemplate))
	})
)

// runsPage is the input of the template.
type runsPage struct {
	Site  *site.Site
	Style template.CSS
	Query string
	// Choices are the filters by one value.
	Choices []choice
	Rows    []runRow
	// Noun is the noun for the rows. Count is their number, and First the number of the first row on the page.
	Noun               string
	Count, First, Last int
	Earlier, Later     string // addresses of the neighbouring pages
}

type choice struct {
	Name, Label, Value string
	Values             []string
}

// IsOffered reports whether there is something to choose.
func (c choice) IsOffered() bool {
	return slices.ContainsFunc(c.Values, func(value string) bool { return value != "" })
}

// runRow is a run, or several runs of a fleet. Members is then the address of their list, and Nodes their number.
type runRow struct {
	store.Summary
	Members            string
	Nodes              int
	OK, Bad, Skipped   int
	Start, TargetNames string
	UnderWay           bool
}

// runs is the list of all runs, with filters, and with boxes to compare runs.
func (s *server) runs(ctx context.Context, db *store.Store, r *http.Request) (view, error) {
	list, err := db.Runs(ctx)
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	filters := []choice{{Name: "plan", Label: "Plan"}, {Name: "target", Label: "Target"}, {Name: "state", Label: "State"}, {Name: fleetParameter, Label: "Fleet"}}
	values := func(sum *store.Summary) [][]string {
		fleet := ""
		if sum.Node != nil {
			fleet = sum.Node.Fleet
		}
		return [][]string{{sum.Name}, sum.Targets, {string(sum.State)}, {fleet}}
	}
	for i := range filters {
		f := &filters[i]
		f.Value = query.Get(f.Name)
		for n := range list {
			f.Values = append(f.Values, values(&list[n])[i]...)
		}
		slices.Sort(f.Values)
		f.Values = slices.Compact(f.Values)
		f.Values = f.Values[:min(len(f.Values), mostChoices)]
	}
	text := strings.ToLower(query.Get("q"))
	list = slices.DeleteFunc(list, func(sum store.Summary) bool {
		for i, f := range filters {
			if f.Value != "" && !slices.Contains(values(&sum)[i], f.Value) {
				return true
			}
		}
		return text != "" && !strings.Contains(strings.ToLower(strings.Join(slices.Concat([]string{sum.ID, sum.Name}, names(sum.Node), sum.Targets, sum.Benchmarks), "\n")), text)
	})
	parameters := url.Values{}
	for _, name := range []string{"q", "plan", "target", "state", fleetParameter} {
		if value := query.Get(name); value != "" {
			parameters.Set(name, value)
		}
	}
	v := view{address: "/?" + parameters.Encode(), document: func() (*document.Document, error) { return runsDocument(list), nil }}
	v.policy = strings.Replace(site.Policy(runsStyle), "form-action 'none'", "form-action 'self'", 1) + "; frame-ancestors 'none'"
	v.html = func(w io.Writer, bar *site.Site) error {
		p := runsPage{Site: bar, Style: template.CSS(runsStyle), Query: query.Get("q"), Choices: filters}
		p.fill(rows(list, parameters), parameters, query.Get("page"))
		return site.Write(w, runsTemplate(), "runs", p)
	}
	return v, nil
}

// names are the names of a node and of its fleet.
func names(node *result.Node) []string {
	if node == nil {
		return nil
	}
	return []string{node.Name, node.Fleet}
}

// fill sets the rows of a page, which counts from 1, and the addresses of its neighbours.
func (p *runsPage) fill(list []runRow, parameters url.Values, number string) {
	pages := max(1, (len(list)+pageRuns-1)/pageRuns)
	page, err := strconv.Atoi(number)
	if err != nil {
		page = 1
	}
	page = min(max(page, 1), pages)
	address := func(page int) string {
		if page < 1 || page > pages {
			return ""
		}
		parameters.Set("page", strconv.Itoa(page))
		return "/?" + parameters.Encode()
	}
	start := (page - 1) * pageRuns
	end := min(len(list), start+pageRuns)
	p.Count, p.First, p.Last, p.Later, p.Earlier = len(list), min(start+1, end), end, address(page-1), address(page+1)
	p.Noun, p.Rows = "runs", list[start:end]
	if slices.ContainsFunc(list, func(row runRow) bool { return row.Nodes > 0 }) {
		p.Noun = "runs and fleets"
	}
}

// rows are the rows of the selected runs. The runs of a fleet are one row, in the place of its newest run, unless a fleet is selected.
func rows(list []store.Summary, parameters url.Values) []runRow {
	fleets := map[string][]store.Summary{}
	for _, sum := range list {
		if sum.Node != nil && !parameters.Has(fleetParameter) {
			fleets[sum.Node.Fleet] = append(fleets[sum.Node.Fleet], sum)
		}
	}
	var rows []runRow
	for _, sum := range list {
		members := []store.Summary(nil)
		if sum.Node != nil {
			members = fleets[sum.Node.Fleet]
		}
		switch {
		case len(members) < 2:
			rows = append(rows, newRow(sum))
		case members[0].ID == sum.ID:
			row := fleetRow(members)
			address := maps.Clone(parameters)
			address.Set(fleetParameter, sum.Node.Fleet)
			row.Members = "/?" + address.Encode()
			rows = append(rows, row)
		}
	}
	return rows
}

func newRow(sum store.Summary) runRow {
	row := runRow{Summary: sum, OK: sum.Trials[result.OK], Bad: sum.Trials[result.Failed] + sum.Trials[result.Timeout], Skipped: sum.Trials[result.Skipped]}
	row.Start, row.TargetNames, row.UnderWay = shownTime(sum.Started), strings.Join(sum.Targets, ", "), sum.State == result.Running
	return row
}

// runsDocument is the list for other formats.
func runsDocument(list []store.Summary) *document.Document {
	t := newListing("runs", "Runs", "run", "plan", "state", "started", "ok", "failed", "skipped", "targets")
	for _, sum := range list {
		row := newRow(sum)
		t.add(link(row.ID, "run/"+row.ID), plain(row.Name), plain(string(row.State)), plain(row.Start), plain(fmt.Sprint(row.OK)), plain(fmt.Sprint(row.Bad)), plain(fmt.Sprint(row.Skipped)), plain(row.TargetNames))
	}
	return t.document(list)
}
