package browser

import (
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// hostileName is a target's name that a spreadsheet and a page could misread.
const hostileName = `oci/<img src=x>, "b"`

// count is the number of the samples of a target.
const count = 12

// laneOf is a figure of two targets with samples. The second one has a disturbed value.
func laneOf() document.Lanes {
	l := document.Lanes{Name: "Exec", Caption: "lower is better", Unit: result.Seconds}
	for i, name := range []string{"native", hostileName} {
		s := &document.Samples{Median: 0.0021 * float64(i+1)}
		for n := range count {
			value := (0.002 + 0.0001*float64((n*5)%count)) * float64(1+9*i)
			s.Values = append(s.Values, document.Sample{Value: value, Order: int32(n), Hollow: i == 1 && n == 2, Note: "cache cold"})
		}
		s.Values[2].Note = []string{"", "disturbed: the hypervisor withheld 3.1 % of the CPU time; cache cold"}[i]
		l.Lanes = append(l.Lanes, document.Lane{Name: name, Baseline: i == 0, Samples: s})
	}
	l.Lanes[0].Name += " (baseline)"
	return l
}

// readOut is the status of the figure about a sample.
func readOut(l *document.Lanes, lane, index int) string {
	s := l.Lanes[lane].Samples.Values[index]
	number, _ := strconv.ParseFloat(strconv.FormatFloat(s.Value*1e3, 'g', 4, 64), 64)
	text := fmt.Sprintf("%s: block %d, %v ms", strings.TrimSuffix(l.Lanes[lane].Name, " (baseline)"), s.Order+1, number)
	return strings.TrimSuffix(text+", "+s.Note, ", ")
}

func status(t *testing.T, ctx context.Context) string {
	t.Helper()
	return evaluate[string](t, ctx, `document.querySelector("figure [role=status]").textContent`)
}

// testReadOut: the keyboard and the pointer reach each sample, and the status has its target, block, value and mark.
func testReadOut(t *testing.T, ctx context.Context) {
	l := laneOf()
	open(t, ctx, written(t, &document.Document{Title: "plot", Blocks: []document.Block{l}}))
	evaluate[chromedp.Void](t, ctx, `document.querySelector("figure svg").focus()`)
	must.Do(t, chromedp.Do(ctx, chromedp.KeyEvent(kb.Home)))
	for lane := range l.Lanes {
		texts := evaluate[[]string](t, ctx, `(() => { const svg = document.querySelector("figure svg"); const texts = []
			const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", {key}))
			for (let i = 0; i < 12; i++) { texts.push(document.querySelector("figure [role=status]").textContent); press("ArrowRight") }
			press("Home"); press("ArrowDown")
			return texts })()`)
		for i, got := range texts {
			if want := readOut(&l, lane, i); got != want {
				t.Errorf("after %d steps to the right the status is %q, want %q", i, got, want)
			}
		}
	}
	place := evaluate[[]float64](t, ctx, `(() => { const box = document.querySelector(".ring").getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] })()`)
	must.Do(t, chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, place[0], place[1])))
	if got, want := status(t, ctx), readOut(&l, 1, 2); got != want {
		t.Errorf("the pointer on the disturbed sample reads %q, want %q", got, want)
	}
}

// download clicks a button of a figure, and returns the file that the browser saves.
func download(t *testing.T, ctx context.Context, figure int, text string) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir})
		return err
	})))
	evaluate[chromedp.Void](t, ctx, fmt.Sprintf(`Array.from(document.querySelectorAll("figure")[%d].querySelectorAll("button")).find((b) => b.textContent === %q).click()`, figure, text))
	for range 100 {
		files, _ := filepath.Glob(filepath.Join(dir, "*."+strings.ToLower(text)))
		if len(files) == 1 {
			if content, err := os.ReadFile(files[0]); err == nil && len(content) > 0 {
				return string(content)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the browser saves no file for the button %s", text)
	return ""
}

// testDownload: the table has each sample, and the drawing needs no style sheet.
func testDownload(t *testing.T, ctx context.Context) {
	l := laneOf()
	bands := document.Plot{Name: "Memory", Unit: result.Bytes, Linear: true, Axis: "time", Across: result.Seconds, Names: []string{"used", "free"}, Panels: []document.Panel{{
		Name: "native", End: 2, Bands: []document.Band{{Name: "start", Start: 0, End: 1}}, Lines: []*document.Curve{{At: []float64{0, 1, 2}, Values: []float64{1, 2, 3}}, nil},
	}}}
	address := written(t, &document.Document{Title: "plot", Blocks: []document.Block{l, bands}})
	if messages := errorsOf(t, ctx, address); len(messages) > 0 {
		t.Fatalf("the browser reports %q", messages)
	}
	rows, err := csv.NewReader(strings.NewReader(download(t, ctx, 0, "CSV"))).ReadAll()
	must.Do(t, err)
	want := [][]string{{"target", "order", "value", "unit", "disturbed", "note"}}
	for _, lane := range l.Lanes {
		for _, s := range lane.Samples.Values {
			want = append(want, []string{strings.TrimSuffix(lane.Name, " (baseline)"), fmt.Sprint(s.Order), fmt.Sprint(s.Value), string(l.Unit), fmt.Sprint(s.Hollow), s.Note})
		}
	}
	if fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("the table is %v, want %v", rows, want)
	}
	for i, text := range []string{"native", "used"} {
		drawing := download(t, ctx, i, "SVG")
		checkDrawing(t, drawing)
		if !strings.Contains(drawing, text) {
			t.Errorf("the drawing %d lacks %q", i, text)
		}
	}
}

// checkDrawing checks that a drawing is XML, and that each of its elements has its own colours.
func checkDrawing(t *testing.T, drawing string) {
	t.Helper()
	if found := regexp.MustCompile(`class=|var\(|<script|https?://[^"]*`).FindAllString(strings.ReplaceAll(drawing, "http://www.w3.org/2000/svg", ""), -1); len(found) > 0 {
		t.Errorf("the drawing depends on %q", found)
	}
	decoder := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		must.Do(t, err)
		start, is := token.(xml.StartElement)
		if !is {
			continue
		}
		attributes := map[string]string{}
		for _, a := range start.Attr {
			attributes[a.Name.Local] = a.Value
		}
		switch start.Name.Local {
		case "path", "circle", "rect", "text":
			if attributes["fill"] == "" || start.Name.Local == "path" && attributes["stroke"] == "" {
				t.Errorf("%v has no colour", start)
			}
		}
	}
}
