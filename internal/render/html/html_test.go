package html_test

import (
	"flag"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

var update = flag.Bool("update", false, "rewrite the golden page")

func written(t *testing.T, d *document.Document) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, html.Write(&b, d))
	return b.String()
}

func cell(lines ...string) document.Cell {
	var c document.Cell
	for i, line := range lines {
		s := document.Span{Text: line}
		if i > 0 {
			s.Tone = document.Faint
		}
		c = append(c, s)
	}
	return c
}

func mark(group int, value, low, high float64, text string) document.Mark {
	return document.Mark{Group: group, Value: value, Low: &low, High: &high, Text: text}
}

// sample is a document with each kind of block, as a comparison of two builds could have them.
func sample() *document.Document {
	const (
		runs = iota
		total
	)
	toned := func(text string, tone document.Tone, rest ...string) document.Cell {
		return append(document.Cell{{Text: text, Tone: tone}}, cell(append([]string{""}, rest...)...)[1:]...)
	}
	figure := func(name string, values ...float64) document.Lanes {
		l := document.Lanes{
			Name: name, Caption: "B / A, lower is better; operations.container.lifecycle", Unit: result.Score, Groups: []string{"a run, with its own interval", "", "", "all runs"},
			Lines: []document.Line{{Name: "equal", Value: 1}, {Name: "the margin, 1.0300", Value: 1.03, Limit: true}},
			Lanes: []document.Lane{{Name: "all runs", Marks: []document.Mark{mark(3, values[0], values[0]-0.01, values[0]+0.012, "1.0213, 1.0113 to 1.0333")}}},
		}
		lane := document.Lane{Name: "each run, the first on top"}
		for _, v := range values {
			lane.Marks = append(lane.Marks, mark(runs, v, v-0.02, v+0.02, "run"))
		}
		lane.Marks[1].High = nil
		l.Lanes = append(l.Lanes, lane)
		return l
	}
	course := document.Course{
		Name: "CreateAndRun", Unit: result.Seconds, Columns: []string{"Started (UTC)", "Run", "Median", "Remark"},
		Breaks: []document.Break{{Index: 5, Before: 0.02, After: 0.022, Text: "slower: +10.0 %, from 20.0 ms to 22.0 ms (p = 0.002)", Lines: []string{"Target oci/runc: 1.1.12, then 1.2.0"}}},
	}
	for i := range 12 {
		p := document.Point{Labels: []string{"2026-11-" + string(rune('0'+i/10+1)) + string(rune('0'+i%10)) + " 10:00", "run " + string(rune('a'+i))}, Value: 0.02 + 0.0001*float64(i%3), Text: "20.1 ms, 20 trials"}
		if i >= 5 {
			p.Value, p.Text = p.Value+0.002, "22.1 ms, 20 trials"
		}
		if i == 3 {
			p.Remark = "lost 33 % of its trials"
		}
		course.Points = append(course.Points, p)
	}
	low, high := 0.019, 0.021
	samples := document.Lanes{Name: "Exec", Caption: "lower is better", Unit: result.Seconds, Lanes: []document.Lane{
		{Name: "native (baseline)", Text: "20.0 ± 1.0 ms", Baseline: true, Samples: &document.Samples{Median: 0.02, Low: &low, High: &high}}, {Name: "oci/youki", Text: "no value"},
	}}
	for i := range 5 {
		samples.Lanes[0].Samples.Values = append(samples.Lanes[0].Samples.Values, document.Sample{Value: 0.018 + 0.001*float64(i), Order: int32(i), Hollow: i == 2})
	}
	samples.Lanes[0].Samples.Values[2].Note = "disturbed: programs waited for I/O 14.2 % of the time; cache cold"
	series := document.Plot{
		Name: "StartLatency", Caption: "by place: medians over blocks", Unit: result.Seconds, Axis: "number of the container", Names: []string{"native", "oci/runc"},
		Panels: []document.Panel{{End: 4, Text: "StartLatency by number of the container; oci/runc from 1 ms to 30 ms", Lines: []*document.Curve{nil, {
			At: []float64{1, 2, 3, 4}, Values: []float64{0.001, 0.002, 0.009, 0.03}, Spread: [][]float64{{0.001, 0.0012}, {0.002}, {0.008, 0.01}, {0.03}},
			Fit: []float64{-0.001, 0.001, 0.01, 0.03}, Knee: &document.Knee{At: 2.5, Value: 0.004},
		}}}},
	}
	memory := document.Plot{
		Name: "Memory", Caption: "over time", Unit: result.Bytes, Linear: true, Axis: "time since the start of the trial", Across: result.Seconds, Names: []string{"used", "free"},
		Panels: []document.Panel{
			{Name: "native", Text: "Memory on native", End: 9, Lines: []*document.Curve{{At: []float64{0, 5, 8}, Values: []float64{-1 << 20, 5 << 20, 1 << 20}}, nil}, Bands: []document.Band{{Name: "start", Start: 0, End: 4}, {Name: "kill", Start: 6, End: 6.01}}},
			{Name: "oci/runc", Text: "Memory on oci/runc", End: 9, Lines: []*document.Curve{nil, {At: []float64{1, 2}, Values: []float64{2 << 20, 3 << 20}}}},
		},
	}
	end := 0.03
	layers := document.Bars{
		Caption: "layers of CreateAndRun", Parts: []string{"process", "runtime", "shim"}, Bars: []document.Bar{
			{Name: "oci/runc", Text: "30 ms", Whole: &end, First: true, Pieces: []document.Piece{{Value: 0.01, Text: "process 10 ms"}, {First: 1, Last: 2, Value: 0.02, Text: "runtime, shim 20 ms", Steps: []document.Piece{{Value: 0.005, Text: "step 5 ms"}}}}},
			{Name: "oci/crun", Text: "8 ms", Pieces: []document.Piece{{Value: 0.01, Text: "process 10 ms"}, {First: 1, Last: 1, Value: -0.002, Faint: true, Text: "runtime −2 ms"}}},
		},
	}
	timeline := document.Timeline{
		Name: "Processes over time", Caption: "a lane for each process", Mark: "execve", States: []document.State{{Name: "running"}, {Name: "disk", Height: document.Half}, {Name: "unused", Height: document.Half}, {Name: "child", Height: document.Low}},
		Panels: []document.TimelinePanel{
			{Name: "native", Text: "native, 4 ms", End: 0.01, Rows: []document.TimelineRow{{Name: "probe", Text: "probe (container)", End: 0.004, Pieces: []document.TimelinePiece{{End: 0.004}}}}},
			{Name: "oci/runc", Text: "oci/runc, 40 ms", Folded: true, End: 0.04, Bands: []document.Band{{Name: "create", End: 0.03}, {Name: "start", Start: 0.031, End: 0.032}}, Rows: []document.TimelineRow{
				{Name: "runc", Text: "runc (runtime)", End: 0.03, Pieces: []document.TimelinePiece{{End: 0.005}, {State: 3, Start: 0.005, End: 0.028}, {Start: 0.028, End: 0.0280001}}},
				{Name: "runc → sleep with a long name of a program", Text: "runc → sleep (container)", Start: 0.005, End: 0.04, Pieces: []document.TimelinePiece{{State: 1, Start: 0.01, End: 0.02}}, Marks: []document.TimelineMark{{At: 0.02, Text: "sleep at 20 ms"}}},
			}},
		},
	}
	return &document.Document{
		Kind: "comparison of two builds", Title: "Is runc 1.2.0 slower than runc 1.1.12 by more than 3 %?", Whole: "touchstone ab -o json",
		Notes:  []document.Text{{Text: "Runs are missing: 2 of 12 were interrupted.", Tone: document.Alarm}, {Text: "More runs would narrow the interval; give --runs 30.", Tone: document.Advice}},
		Answer: []document.Text{{Text: "B is worse than the margin: CreateAndRun takes 5.1 % longer, with an interval of 3.4 % to 6.8 %.", Tone: document.Bad}},
		Blocks: []document.Block{
			document.Facts{Items: []document.Fact{
				{Name: "A, the old build", Text: "oci/runc@path=/usr/local/lib/runtimes/runc-1.1.12, 1.1.12"},
				{Name: "B, the new build", Text: "oci/runc@path=/usr/local/lib/runtimes/runc-1.2.0, 1.2.0"},
				{Name: "Host", Text: "bench1, AMD EPYC 7713, 8 CPUs", Notes: []document.Span{{Text: "the governor is powersave", Tone: document.Alarm}}},
				{Name: "agrees", Tone: document.Good, Text: "The start of a container takes less than a second.", Notes: []document.Span{{Text: "section 4.1", Tone: document.Faint}}},
				{Name: "disagrees", Tone: document.Bad, Text: "gVisor is slower by a factor of two.", Details: []document.Item{
					{Span: document.Span{Text: "read as: worse by at least 2.00 ×"}, Lines: []string{"CreateAndRun: 1.40 × slower"}},
					{Span: document.Span{Text: "4 other comparisons"}, Lines: []string{"Create: 1.20 × slower", "Run: 1.10 × slower", "Exec: 1.00 ×", "Destroy: 1.30 × slower"}},
				}},
			}},
			document.Section{ID: "matrix", Title: "Matrix", Blocks: []document.Block{matrixOf("oci/runc", "CreateAndRun")}},
			document.Section{ID: "values", Title: "Values", Blocks: []document.Block{
				document.Table{Turns: true, Rows: [][]document.Cell{
					{nil, cell("B / A"), cell("Interval"), cell("Between runs"), cell("A lost", "of all trials"), cell("Answer")},
					{cell("CreateAndRun", "operations.container.lifecycle; lower is better"), cell("1.0512"), cell("1.0340 to 1.0680"), cell("0.8 %"), cell("0 %"), toned("worse than the margin", document.Bad, "the whole interval is beyond the margin of 1.0300")},
					{cell("Exec", "operations.container.exec; lower is better"), cell("0.9990"), cell("0.9920 to 1.0060"), cell("0.4 %"), cell("1.2 %"), toned("not worse", document.Good)},
					{cell("other values")},
					{cell("HostMemory", "density.memory; lower is better"), cell("–"), cell("–"), cell("–"), cell("100 %"), toned("inconclusive", document.Strong)},
				}},
			}},
			document.Section{ID: "figures", Title: "Figures", Blocks: []document.Block{figure("CreateAndRun", 1.0512, 1.04, 1.062, 1.05), figure("Exec", 0.999, 0.98, 1.01), document.Text{Text: "Figures show each ratio.", Tone: document.Faint}, samples, series, memory, layers, timeline}},
			document.Section{ID: "runs", Title: "Runs", Blocks: []document.Block{
				document.Table{Listing: true, Rows: [][]document.Cell{
					{cell("Run"), cell("Time"), cell("Remark")},
					{{{Text: "run 1", Link: "run-1.html"}, {Text: "20261128-100000-aaaa", Tone: document.Faint}}, cell("2 min 3 s"), cell("")},
					{{{Text: "run 2", Link: "https://example.org/run-2.html"}}, cell("2 min 10 s"), cell("The run was interrupted by a signal, and its last block has fewer trials than the others.")},
				}},
			}},
			document.Section{ID: "history of it", Title: "History", Blocks: []document.Block{course}},
			document.Section{ID: "findings", Title: "Findings", Blocks: []document.Block{
				document.List{Title: "In the order of their size:", Ordered: true, Items: []document.Item{
					{Span: document.Span{Text: "CreateAndRun is 1.05 × slower."}, Lines: []string{"In 10 of 10 runs."}}, {Span: document.Span{Text: "Exec has no difference."}},
				}},
				document.List{Items: []document.Item{{Span: document.Span{Text: "A bound is broken.", Tone: document.Alarm}}, {Span: document.Span{Text: "Pin the CPUs.", Tone: document.Advice}}, {Span: document.Span{Text: "Plain."}}}},
			}},
			document.Section{ID: "method", Title: "Method", Folded: true, Blocks: []document.Block{
				document.Text{Text: "Both builds are targets of each run, compared block by block in shuffled order."},
				document.Section{Title: "Interval", Blocks: []document.Block{document.Text{Text: "The runs are the observations."}}},
			}},
		},
	}
}

// matrixOf is a matrix of two targets and two metrics with texts of a run.
func matrixOf(target, metric string) document.Matrix {
	m := document.Matrix{Columns: []string{"native", target}, Rows: []document.MatrixRow{
		{ID: "operations.lifecycle/" + metric, Suite: "operations", Group: document.Span{Text: "operations.lifecycle", Link: "#values"}, Name: cell(metric), Values: []document.Cell{cell("10.0 ms"), cell("20.0 ms")}},
		{ID: "density.memory/" + metric, Suite: "density", Group: document.Span{Text: metric}, Name: cell("Memory", metric), Rest: true, Values: []document.Cell{cell("1.00 MiB"), cell("–", "failed")}},
	}}
	for i, name := range m.Columns {
		factor := document.Cell{{Text: []string{"2.00 × slower", "2.00 × faster"}[i], Tone: []document.Tone{document.Bad, document.Good}[i], Strength: 3}, {Text: "1.90 to 2.10"}}
		b := document.MatrixBaseline{Name: name, Cells: [][]document.MatrixCell{make([]document.MatrixCell, 2), make([]document.MatrixCell, 2)}}
		for c := range b.Cells {
			b.Cells[c][i] = document.MatrixCell{Factor: cell("10.0 ms", "baseline"), Difference: cell("10.0 ms", "baseline"), Size: math.NaN()}
			b.Cells[c][1-i] = document.MatrixCell{Factor: factor, Difference: cell("10.0 ms", metric), Size: []float64{0.7, -0.7}[i], Shown: c == 0}
		}
		m.Baselines = append(m.Baselines, b)
	}
	return m
}

func TestGolden(t *testing.T) {
	const file = "testdata/sample.golden.html"
	page := written(t, sample())
	if *update {
		must.Do(t, os.WriteFile(file, []byte(page), 0o644))
	}
	want, err := os.ReadFile(file)
	must.Do(t, err)
	if diff := cmp.Diff(string(want), page); diff != "" {
		t.Errorf("the page differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
	}
	if written(t, sample()) != page {
		t.Error("the same document has two pages")
	}
}

// TestContents: a page of many sections lists those with an address, and its anchors are unique and have no blanks.
func TestContents(t *testing.T) {
	page := written(t, sample())
	for _, want := range []string{`<a href="#values">Values</a>`, `<a href="#history-of-it">History</a>`, `<section id="history-of-it">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	d := &document.Document{Title: "few"}
	for _, id := range []string{"main", "a b", "a-b", "x\"'", "benchmark/a.b"} {
		d.Blocks = append(d.Blocks, document.Section{ID: id, Title: id})
	}
	page = written(t, d)
	for _, want := range []string{`<section id="main-">`, `<section id="a-b">`, `<section id="a-b-">`, `<section id="x--">`, `<section id="benchmark/a.b">`} {
		if strings.Count(page, want) != 1 {
			t.Errorf("the page does not have %s once", want)
		}
	}
	if strings.Contains(page, "<nav") {
		t.Error("a page of five sections has a table of contents")
	}
}

// TestLinksAreRelative: a text from a run leads to no address outside of the folder.
func TestLinksAreRelative(t *testing.T) {
	for link, want := range map[string]bool{
		"run-1.html": true, "runs/a%20b.html": true, "#values": true, "run.html?x=1#y": true,
		"": false, "https://example.org": false, "//example.org/x": false, "/etc/passwd": false, "javascript:alert(1)": false, "JavaScript:alert(1)": false, " javascript:alert(1)": false,
		"\tjavascript:alert(1)": false, "java\nscript:alert(1)": false, `\\example.org\x`: false, `/\example.org`: false, "data:text/html,x": false, "mailto:a@b": false, "../../secret.html": false,
		"a/../../b": false, "%2e%2e/x": false, "x:y.html": false, "user@host:1": false,
	} {
		page := written(t, &document.Document{Blocks: []document.Block{document.Text{Text: "needle", Link: link}}})
		if got := regexp.MustCompile(`<a href="[^"]*">needle</a>`).MatchString(page); got != want {
			t.Errorf("%q is a link: %v, want %v", link, got, want)
		}
	}
}

// TestTextIsHarmless: no text becomes a tag, an attribute, a control character or a direction of text.
func TestTextIsHarmless(t *testing.T) {
	const bad = `"'><svg/onload=alert(1)>{{.}}` + "`</style></title></svg><!--\x1b[2J\u202e"
	d := sample()
	d.Title, d.Kind, d.Notes[0].Text, d.Answer[0].Text = bad, bad, bad, bad
	figure := document.Lanes{Name: bad, Caption: bad, Groups: []string{bad}, Lines: []document.Line{{Name: bad}}, Lanes: []document.Lane{{Name: bad, Marks: []document.Mark{{Text: bad}, {Value: math.NaN(), Text: bad}}}}}
	course := document.Course{Name: bad, Columns: []string{bad}, Points: []document.Point{{Labels: []string{bad}, Text: bad, Remark: bad}}, Breaks: []document.Break{{Text: bad, Lines: []string{bad}}}}
	plot := document.Plot{Name: bad, Caption: bad, Axis: bad, Across: result.Seconds, Names: []string{bad}, Panels: []document.Panel{
		{Name: bad, Text: bad, End: 9, Lines: []*document.Curve{{At: []float64{1}, Values: []float64{1}}}, Bands: []document.Band{{Name: bad, End: 9}}}, {},
	}}
	bars := document.Bars{Caption: bad, Parts: []string{bad}, Bars: []document.Bar{{Name: bad, Text: bad, Pieces: []document.Piece{{Value: 1, Text: bad}}}}}
	timeline := document.Timeline{Name: bad, Caption: bad, Mark: bad, States: []document.State{{Name: bad}}, Panels: []document.TimelinePanel{{Name: bad, Text: bad, End: 1, Bands: []document.Band{{Name: bad, End: 1}}, Rows: []document.TimelineRow{
		{Name: bad, Text: bad, Pieces: []document.TimelinePiece{{}}, Marks: []document.TimelineMark{{Text: bad}}},
	}}}}
	span := document.Span{Text: bad, Link: bad}
	d.Blocks = append(d.Blocks, matrixOf(bad, bad),
		figure, course, plot, bars, timeline, document.Lanes{Lanes: []document.Lane{{Name: bad, Text: bad, Samples: &document.Samples{Values: []document.Sample{{Value: 1, Note: bad}}}}}}, document.Section{ID: bad, Title: bad, Folded: true}, document.Table{Rows: [][]document.Cell{{{span, span}}, {{span, span}}}},
		document.List{Title: bad, Items: []document.Item{{Span: span, Lines: []string{bad}}}}, document.Facts{Items: []document.Fact{{Name: bad, Text: bad, Notes: []document.Span{span}, Details: []document.Item{{Span: span, Lines: []string{bad}}, {Span: span, Lines: []string{bad, bad, bad, bad}}}}}})
	page := written(t, d)
	if n := strings.Count(page, "&lt;svg/onload=alert"); n < 25 {
		t.Errorf("the page has the text %d times", n)
	}
	for _, unwanted := range []string{"<svg/", "<!--", "\x1b", "\u202e", `="'>`} {
		if strings.Contains(page, unwanted) {
			t.Errorf("the page has %q", unwanted)
		}
	}
	for tag, want := range map[string]int{"</style>": 1, "</title></head>": 0, "<script>": 1, `<script type="application/json">`: 15, "<script": 16, "</script>": 16} {
		if n := strings.Count(page, tag); n != want {
			t.Errorf("the page has %s %d times, want %d", tag, n, want)
		}
	}
	if loads := regexp.MustCompile(`(?i)<(link|img|iframe|object|embed|base|form)\b|\b(src|srcset|action|data|background|xlink:href)\s*=|@import|url\(|https?:`).FindAllString(written(t, sample()), -1); len(loads) > 0 {
		t.Errorf("the page has %q", loads)
	}
	if !strings.Contains(page, `content="default-src &#39;none&#39;; style-src &#39;sha256-`) {
		t.Error("the page has no policy")
	}
}

// notNumbers are values that are no numbers, in an attribute.
var notNumbers = regexp.MustCompile(`="[^"]*(NaN|Inf)[^"]*"`)

// TestFiguresAreFinite: odd values leave no coordinate that is no number, or that is outside of the drawing.
func TestFiguresAreFinite(t *testing.T) {
	odd := []float64{0, 1, -1, 1e-300, 1e300, -1e300, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1)}
	coordinate := regexp.MustCompile(`(?: c?x="|[MH])(-?[0-9.e+]+)`)
	for _, a := range odd {
		for _, b := range odd {
			for _, unit := range []result.Unit{result.Score, result.Bytes} {
				page := written(t, &document.Document{Blocks: []document.Block{
					document.Lanes{Unit: unit, Lines: []document.Line{{Value: 1, Name: "one"}, {Value: b}}, Lanes: []document.Lane{{Marks: []document.Mark{mark(0, a, b, a, "needle"), mark(7, 1, a, b, "needle"), {Value: b, High: &a, Text: "needle"}}}}},
					document.Course{Unit: unit, Points: []document.Point{{Value: a, Text: "needle"}, {Value: b, Text: "needle"}}, Breaks: []document.Break{{Index: 1, Before: b, After: a}}},
					document.Course{Unit: unit},
					document.Lanes{Unit: unit, Lanes: []document.Lane{{Text: "x", Samples: &document.Samples{Median: a, Low: &b, High: &a, Values: []document.Sample{{Value: a}, {Value: b, Hollow: true}}}}}},
					document.Plot{Unit: unit, Names: []string{"line"}, Panels: []document.Panel{{End: 2, Lines: []*document.Curve{{At: []float64{1, 2}, Values: []float64{a, b}, Intervals: []*stats.Interval{{Lo: a, Hi: b}, nil}, Spread: [][]float64{{a}, {b}}, Fit: []float64{b, a}, Knee: &document.Knee{At: a, Value: b}}}}}},
					document.Plot{Unit: unit, Linear: true, Names: []string{"line"}, Across: result.Seconds, Panels: []document.Panel{{}, {End: a, Lines: []*document.Curve{{At: []float64{0, b}, Values: []float64{b, a}}}, Bands: []document.Band{{Start: b, End: a}}}}},
					document.Bars{Parts: []string{"part"}, Bars: []document.Bar{{Whole: &a, Pieces: []document.Piece{{Value: a}, {Value: b, Steps: []document.Piece{{Value: a}}}}}}},
					document.Bars{},
					document.Timeline{States: []document.State{{Name: "needle"}}, Panels: []document.TimelinePanel{{End: a, Bands: []document.Band{{Start: b, End: a}}, Rows: []document.TimelineRow{
						{Start: a, End: b, Pieces: []document.TimelinePiece{{Start: a, End: b}}, Marks: []document.TimelineMark{{At: a, Text: "needle"}}},
					}}}},
					document.Plot{Unit: unit},
					document.Lanes{Unit: unit},
				}})
				_, page, _ = strings.Cut(page, "<body>")
				if found := notNumbers.FindString(page); found != "" {
					t.Fatalf("%v, %v: the page has %s", a, b, found)
				}
				for _, found := range coordinate.FindAllStringSubmatch(page, -1) {
					if len(found[1]) > 6 || strings.HasPrefix(found[1], "-") {
						t.Fatalf("%v, %v: a coordinate is %s", a, b, found[0])
					}
				}
				for _, label := range regexp.MustCompile(`<text class="tick"[^>]*>([^<]*)<`).FindAllStringSubmatch(page, -1) {
					if len(label[1]) > 20 {
						t.Fatalf("%v, %v: a label is %s", a, b, label[1])
					}
				}
				if n := strings.Count(page, "needle"); n < 3 {
					t.Errorf("%v, %v: the page has %d of the texts", a, b, n)
				}
			}
		}
	}
}
