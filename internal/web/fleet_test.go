package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// fleetID is the ID of the fleet of reporttest.Cluster.
const fleetID = "01K9Z0TOUCHSTONE0FLEET0000"

// The runs of a fleet are one row, which leads to the page of the fleet. A filter lists them one by one, and each has a link back.
func TestFleet(t *testing.T) {
	lone := reporttest.Fleet{ID: "01K9Z0TOUCHSTONE0LONE00000", Nodes: 1, Blocks: 2, Healthy: true}.Runs()[0]
	p := serve(t, stored(t, slices.Concat(reporttest.Cluster(), []result.Run{reporttest.Day(1, 1), lone})...), nil)
	row := `<td></td><td></td>` + "\n" + `<th scope="row"><a href="/run/` + fleetID + `">` + fleetID + `</a></th><td>pods on <a href="/?fleet=` + fleetID + `">14 nodes</a></td><td>13 complete, 1 killed</td>`
	p.has("/", http.StatusOK, []string{"1 to 3 of 3 runs and fleets", row, `<td>pods on worker-00</td>`, `<option>` + fleetID + `</option>`, `href="/run/run1"`}, []string{"worker-01"})
	p.has("/?fleet="+fleetID, http.StatusOK, []string{"1 to 14 of 14 runs", `value="` + fleetID + `-0003" aria-label`, "<td>pods on worker-03</td>"}, []string{"14 nodes", "/run/run1"})
	p.has("/?state=complete", http.StatusOK, []string{`<a href="/?fleet=` + fleetID + `&amp;state=complete">13 nodes</a></td><td>complete</td>`}, nil)
	p.has("/?q=WORKER-07", http.StatusOK, []string{"1 to 1 of 1 runs", "/run/" + fleetID + "-0007"}, nil)

	nodeLink := `href="` + fleetID + `-0006"`
	p.has("/run/"+fleetID, http.StatusOK, []string{"pods on 14 nodes", "Unlike the other nodes of their kind: worker-", nodeLink, `href="/run/` + fleetID + `?format=csv"`}, []string{`http-equiv="refresh"`})
	p.has("/run/"+fleetID+"?format=html", http.StatusOK, []string{"pods on 14 nodes"}, []string{nodeLink, `class="site"`})
	p.has("/run/"+fleetID+"?format=csv", http.StatusOK, []string{"worker-06"}, nil)
	p.has("/run/"+fleetID[:20], http.StatusOK, []string{"pods on 14 nodes"}, nil)
	p.has("/run/01K9Z0TOUCHSTONE0", http.StatusNotFound, []string{"15 ids begin with it"}, nil)

	const back = `href="` + fleetID + `"`
	p.has("/run/"+fleetID+"-0006?format=html", http.StatusOK, []string{"worker-06"}, []string{back})
	p.has("/run/"+fleetID+"-0006", http.StatusOK, []string{back, "All nodes of the cluster run " + fleetID + "; this is worker-06"}, nil)
	p.has("/run/"+lone.ID, http.StatusOK, []string{"worker-00"}, []string{"All nodes of the cluster run"})
}

// The page of a fleet under way has the progress of its nodes, and the browser loads it again.
func TestFleetUnderWay(t *testing.T) {
	cluster := reporttest.Cluster()
	path := stored(t, cluster[0], cluster[1])
	db, err := store.Open(t.Context(), path)
	must.Do(t, err)
	defer func() { must.Do(t, db.Close()) }()
	run := cluster[2]
	trials := run.Trials[:5]
	run.Trials, run.State, run.Ended = nil, result.Running, time.Time{}
	must.Do(t, db.Create(t.Context(), run))
	for _, trial := range trials {
		must.Do(t, db.Append(t.Context(), run.ID, trial))
	}
	p := serve(t, path, nil)
	p.has("/", http.StatusOK, []string{"<b>1 running, 2 complete</b>", "3 nodes"}, nil)
	p.has("/run/"+fleetID, http.StatusOK, []string{`http-equiv="refresh" content="5"`, "3 nodes: 1 running, 2 complete", `href="` + run.ID + `">worker-02</a>`, `href="` + fleetID + `?partial=1"`}, nil)
	p.has("/run/latest", http.StatusOK, []string{"3 nodes: 1 running"}, nil)
	p.has("/run/"+run.ID, http.StatusOK, []string{`http-equiv="refresh"`, `href="` + fleetID + `"`}, nil)
	p.has("/run/"+fleetID+"?partial=1", http.StatusOK, []string{"pods on 3 nodes", "The run is running on worker-02."}, []string{`http-equiv="refresh"`})
	must.Do(t, db.Finish(t.Context(), run.ID, result.Interrupted, run.Started.Add(time.Minute), nil))
	p.has("/run/"+fleetID, http.StatusOK, []string{"pods on 3 nodes", "interrupted on worker-02"}, []string{`http-equiv="refresh"`})
}

// A reader goes from the list to the fleet, to the report of an odd node, and back.
func TestBrowserFollowsFleet(t *testing.T) {
	program := chromium(t)
	p := serve(t, stored(t, slices.Concat(reporttest.Cluster(), []result.Run{reporttest.Day(1, 1)})...), nil)
	ctx := browser(t, program)
	must.Do(t, chromedp.Do(ctx, chromedp.EmulateViewport(400, 800)))
	follow(t, ctx, chromedp.Navigate(p.URL+"/"))
	for _, step := range []struct{ link, address, text string }{
		{`main a[href="/run/` + fleetID + `"]`, "/run/" + fleetID, "Unlike the other nodes of their kind"},
		{`#nodes a[href="` + fleetID + `-0006"]`, "/run/" + fleetID + "-0006", "this is worker-06"},
		{`main a[href="` + fleetID + `"]`, "/run/" + fleetID, "Unlike the other nodes of their kind"},
		{`nav a[href="/"]`, "/", "14 nodes"},
		{`main a[href="/?fleet=` + fleetID + `"]`, "/?fleet=" + fleetID, "1 to 14 of 14 runs"},
	} {
		follow(t, ctx, chromedp.Click(chromedp.CSS(step.link)))
		address, text := read(t, ctx)
		if !strings.HasSuffix(address, step.address) || !strings.Contains(text, step.text) {
			t.Errorf("the link %s leads to %s without %q:\n%.2000s", step.link, address, step.text, text)
		}
		width, err := chromedp.Run(ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth"))
		must.Do(t, err)
		if width > 400 {
			t.Errorf("%s is %d pixels wide", address, width)
		}
	}
}
