package browser

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/must"
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

// testAccessibility: axe-core finds nothing on a page, in light and in dark, with everything unfolded.
func testAccessibility(t *testing.T, ctx context.Context) {
	file := os.Getenv(axeVariable)
	if file == "" {
		record.Skip(t, axeVariable+" is not set; scripts/test.sh sets it where npm works")
	}
	program, err := os.ReadFile(file)
	must.Do(t, err)
	pages := map[string]string{"suite": pageOf(t, suite), "engines": pageOf(t, engines)}
	for name, a := range answers() {
		pages[name] = written(t, a.document)
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
