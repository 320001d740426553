package html_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

func writtenBuilds(t *testing.T, d *ab.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := html.WriteBuilds(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBuildsGolden(t *testing.T) {
	page := writtenBuilds(t, reporttest.Builds())
	golden(t, "testdata/builds.golden.html", page)
	if again := writtenBuilds(t, reporttest.Builds()); again != page {
		t.Error("two pages of one comparison differ")
	}
}

// drawings matches the plots, and coordinates their paths.
var (
	drawings    = regexp.MustCompile(`(?s)<svg role="img"[^>]*viewBox="0 0 ([0-9.]+) ([0-9.]+)">(.*?)</svg>`)
	coordinates = regexp.MustCompile(`<path class="(?:whisker|one|limit|side)[^"]*" d="M(-?[0-9.]+) (-?[0-9.]+)(?:[HV](-?[0-9.]+))?`)
)

func TestOddBuilds(t *testing.T) {
	for name, d := range reporttest.OddBuilds() {
		got := writtenBuilds(t, d)
		for what, wrong := range map[string]*regexp.Regexp{"no numbers": notNumbers, "loads": loads} {
			if found := wrong.FindString(got); found != "" {
				at := strings.Index(got, found)
				t.Errorf("%s: the page has %s, %q: %s", name, what, found, got[max(0, at-100):min(len(got), at+100)])
			}
		}
		for _, section := range []string{`<p class="answer `, `id="values"`, `id="runs"`, `id="method"`, "</html>"} {
			if !strings.Contains(got, section) {
				t.Errorf("%s: the page lacks %s", name, section)
			}
		}
		drawn, marks := 0, 0
		for _, v := range d.Values {
			has := 0
			for _, r := range v.Ratios {
				if r.Ratio != nil {
					has++
				}
			}
			if has > 0 && name != "a wide interval" {
				drawn, marks = drawn+1, marks+has+1
			}
		}
		const undrawn = "Without a plot, because a ratio is beyond a factor of 10000: operations.container.lifecycle CreateAndRun."
		if strings.Contains(got, undrawn) != (name == "a wide interval") {
			t.Errorf("%s: the page names the wrong values without a plot, or none", name)
		}
		plots := drawings.FindAllStringSubmatch(got, -1)
		if len(plots) != drawn {
			t.Errorf("%s: the page has %d plots, want %d", name, len(plots), drawn)
		}
		for _, plot := range plots {
			if n := strings.Count(plot[3], `<path class="side `); n != marks {
				t.Errorf("%s: the plot has %d marks, want %d: one for each run with a ratio, and one for all", name, n, marks)
			}
			width, height := parsed(t, plot[1]), parsed(t, plot[2])
			for _, p := range coordinates.FindAllStringSubmatch(plot[3], -1) {
				if x, y := parsed(t, p[1]), parsed(t, p[2]); x < 0 || x > width || y < 0 || y > height {
					t.Errorf("%s: a mark lies outside of the plot: %s", name, p[0])
				}
				if p[3] != "" && (parsed(t, p[3]) < 0 || parsed(t, p[3]) > max(width, height)) {
					t.Errorf("%s: a line ends outside of the plot: %s", name, p[0])
				}
			}
			if height > 600 {
				t.Errorf("%s: the plot is %g units high", name, height)
			}
		}
	}
}

func parsed(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Text of a comparison reaches the page only escaped, and a page of a run is no address elsewhere.
func TestTextOfBuildsIsEscaped(t *testing.T) {
	const bad = `"'><svg/onload=alert(1)>{{.}}` + "`</style></title>"
	d := reporttest.Builds()
	v := &d.Values[0]
	for _, s := range []*string{
		&d.A.Target, &d.B.Target, &d.B.Version, &d.B.Binary, &d.Unfinished, &d.Machine.CPU, &d.Machine.Kernel, &d.Tool.Version,
		&v.Benchmark, &v.Params, &v.Metric, &v.Reason, &v.Ratios[0].Reason, &d.Runs[0].ID,
	} {
		*s += bad
	}
	d.Runs[0].Page = "javascript:alert(1)"
	got := writtenBuilds(t, d)
	if !strings.Contains(got, "&lt;svg/onload=alert(1)&gt;") {
		t.Fatal("the text is not in the page")
	}
	for _, want := range []string{"<svg/onload", `"'>`, "{{.}}`</", "javascript:"} {
		if strings.Contains(got, want) {
			t.Errorf("the page has %q unescaped", want)
		}
	}
	if n := strings.Count(got, "</style>"); n != 1 {
		t.Errorf("the page has %d ends of a style sheet", n)
	}
}
