package html_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// panel is the page of a plot with one line.
func panel(t *testing.T, end float64, bands []document.Band, times, values []float64, unit result.Unit) string {
	t.Helper()
	return written(t, &document.Document{Blocks: []document.Block{document.Plot{
		Unit: unit, Linear: true, Across: result.Seconds, Names: []string{"line"},
		Panels: []document.Panel{{End: end, Bands: bands, Lines: []*document.Curve{{At: times, Values: values}}}},
	}}})
}

// Lines at the limits: no change at all, one value, and more values than the width has places.
func TestLinesAtLimits(t *testing.T) {
	var times, values []float64
	for i := range 20_000 {
		times, values = append(times, float64(i)/1000), append(values, float64(i%2))
	}
	values[12_345] = 7000
	for name, c := range map[string]struct {
		times, values []float64
		unit          result.Unit
		want          string
	}{
		"zero":     {[]float64{0, 1e-9}, []float64{0, 0}, result.Bytes, `d="M46 132L46 132"`},
		"one":      {[]float64{5e-9}, []float64{3}, result.Ratio, `class="points c1 d1"`},
		"negative": {[]float64{0, 9e-9}, []float64{-5, -9}, result.Bytes, "<path class=\"curve"},
		"long":     {times, values, result.Count, "extremes kept"},
	} {
		page := panel(t, 20, nil, c.times, c.values, c.unit)
		if found := notNumbers.FindString(page); found != "" || !strings.Contains(page, c.want) {
			t.Errorf("%s: the page has %q or lacks %q", name, found, c.want)
		}
		if len(page) > 300_000 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		if name == "long" && !regexp.MustCompile(`L[0-9.]+ 12\.[0-9]+`).MatchString(page) {
			t.Error("the peak is lost")
		}
	}
}

// Hundreds of bands become a few with their number.
func TestManyBands(t *testing.T) {
	var bands []document.Band
	for i := range 200 {
		bands = append(bands, document.Band{Name: []string{"create", "start"}[i%2], Start: 0.01 * float64(i), End: 0.01*float64(i) + 0.009})
	}
	if page := panel(t, 4, bands, []float64{0, 4}, []float64{0, 1}, result.Count); !strings.Contains(page, "200 × create, start") {
		t.Error("the bands are not joined")
	}
}

// Each of twelve groups of marks has its own shape and colour.
func TestKeysDiffer(t *testing.T) {
	var l document.Lanes
	for i := range 12 {
		l.Groups = append(l.Groups, fmt.Sprint(i))
		l.Lanes = append(l.Lanes, document.Lane{Marks: []document.Mark{{Group: i, Value: 1}}})
	}
	keys := map[string]bool{}
	for _, key := range regexp.MustCompile(`<li><svg class="shape"[^>]*>(<path[^>]*>)</svg>`).FindAllStringSubmatch(written(t, &document.Document{Blocks: []document.Block{l}}), -1) {
		keys[key[1]] = true
	}
	if len(keys) != len(l.Groups) {
		t.Errorf("%d groups have %d keys", len(l.Groups), len(keys))
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteReturnsTheErrorOfTheWriter(t *testing.T) {
	if err := html.Write(broken{}, new(document.Document)); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
}

// A page leads from a cell to a section, marks a section with an alarm, and fills cells by the strength of a difference.
func TestSectionsOfReports(t *testing.T) {
	page := written(t, &document.Document{Blocks: []document.Block{
		document.Table{Rows: [][]document.Cell{document.Cells("a", "b", "c"), {{{Text: "go", Link: "#the section"}}, {{Text: "2 × slower", Tone: document.Bad, Strength: 3}}}}},
		document.Section{ID: "suite", Title: "Suite", Frame: true, Folded: true, Note: "one", Blocks: []document.Block{
			document.Section{ID: "the section", Title: "The section", Short: "short", Blocks: []document.Block{document.Text{Text: "broken", Tone: document.Alarm}, document.Verbatim{Text: "a\n  <b>"}}},
		}},
		document.Section{ID: "1", Title: "1"},
		document.Section{ID: "2", Title: "2"},
		document.Section{ID: "3", Title: "3"},
		document.Section{ID: "4", Title: "4"},
	}})
	for _, want := range []string{
		`<a href="#the-section">go</a>`, `<td colspan="2" class="heat w3">`, `<summary><h2>Suite</h2> <span>one</span> <em class="alarm">1 alarm</em></summary>`,
		`<li><a href="#the-section">short</a> <b class="alarm"`, "<pre tabindex=\"0\">a\n  &lt;b&gt;</pre>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
