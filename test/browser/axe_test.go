package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/web"
	"github.com/touchstone-bench/touchstone/test/record"
)

// axeVariable names the file axe.min.js of axe-core, the program that checks pages against the guidelines for accessibility.
const axeVariable = "TOUCHSTONE_AXE"

// axe runs all its rules and returns what they found, a text for each element.
const axe = `axe.run(document, {resultTypes: ["violations"]}).then((result) => result.violations.flatMap((rule) =>
	rule.nodes.map((node) => rule.id + " at " + node.target.join(" ") + ": " + node.failureSummary)))`

func findings(t *testing.T, ctx context.Context) []string {
	t.Helper()
	list, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](axe, chromedp.EvalAwaitPromise))
	must.Do(t, err)
	return list
}

// served is a page of touchstone ui about a fleet.
func served(t *testing.T, ctx context.Context, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.db")
	db, err := store.Open(ctx, path)
	must.Do(t, err)
	_, err = db.Import(ctx, func(v result.Visitor) error { return result.Visit(v, reporttest.Cluster()...) })
	must.Do(t, err)
	defer func() { must.Do(t, db.Close()) }()
	handler := web.New(web.Config{Read: func(_ context.Context, do func(*store.Store) error) error { return do(db) }, Address: netip.MustParseAddr("127.0.0.1")})
	request, answer := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+address, nil), httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", address, answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// testAccessibility: axe-core finds nothing on a page, in light and in dark, with everything unfolded.
func testAccessibility(t *testing.T, ctx context.Context) {
	file := os.Getenv(axeVariable)
	if file == "" {
		record.Skip(t, axeVariable+" is not set; scripts/test.sh sets it where npm works")
	}
	program, err := os.ReadFile(file)
	must.Do(t, err)
	pages := map[string]string{"suite": pageOf(t, suite), "engines": pageOf(t, engines), "surfaces": pageOf(t, surfaces), "explained": pageOf(t, explained)}
	for name, a := range answers() {
		pages[name] = written(t, a.document)
	}
	for name, address := range map[string]string{"list of runs": "/", "fleet of the list": "/run/latest", "node of a fleet": "/run/01K9Z0TOUCHSTONE0FLEET0000-0006"} {
		pages[name] = saved(t, served(t, ctx, address))
	}
	for name, page := range pages {
		for _, scheme := range []string{"light", "dark"} {
			open(t, ctx, page)
			media(t, ctx, "", scheme)
			evaluate[chromedp.Void](t, ctx, string(program))
			evaluate[chromedp.Void](t, ctx, `document.querySelectorAll("details").forEach((e) => e.open = true)`)
			for _, finding := range findings(t, ctx) {
				t.Errorf("%s in %s: %s", name, scheme, finding)
			}
		}
	}
	evaluate[chromedp.Void](t, ctx, `document.querySelector("p").style.opacity = 0.4`)
	if found := findings(t, ctx); len(found) == 0 || !strings.HasPrefix(found[0], "color-contrast at ") {
		t.Errorf("axe-core found %q in a page with a pale paragraph", found)
	}
}
