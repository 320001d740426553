package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

//go:embed builds.css
var buildsStyle string

// WriteBuilds writes the comparison of two builds as one HTML file, the same bytes for the same comparison. The links to the pages of its runs
// are relative: the page belongs into their folder.
func WriteBuilds(w io.Writer, d *ab.Document) error {
	return write(w, "builds.html", newBuilds(d))
}

// buildsPage is the input of the template.
type buildsPage struct {
	Policy, Title, Class, Answer string
	Style                        template.CSS
	Unfinished, Advice           string
	Facts                        []field
	Values                       []buildsValue
	Plots                        []sides
	// Undrawn are the values with a ratio beyond mostDrawn.
	Undrawn []string
	Factor  string
	Runs    []buildsRun
	Method  []string
}

// buildsValue is a row of the table of values.
type buildsValue struct {
	Benchmark, Metric, Better, Ratio, Interval, Limit, Between, LostA, LostB string
	Class, Answer, Reason                                                    string
}

// buildsRun is a row of the table of runs, with a ratio for each value.
type buildsRun struct {
	Name, ID, Page, Took string
	Ratios               []buildsRatio
}

type buildsRatio struct{ Ratio, Small string }

// answerClass is the class of an answer in the style sheet.
var answerClass = map[ab.Answer]string{ab.Worse: "worse", ab.NotWorse: "not-worse", ab.Inconclusive: "inconclusive"}

func newBuilds(d *ab.Document) *buildsPage {
	css := style + buildsStyle
	p := &buildsPage{
		Policy: web.Policy(css), Style: template.CSS(css), Title: d.Question(), Class: answerClass[d.Answer], Answer: d.Sentence() + ".",
		Unfinished: d.Unfinished, Advice: d.Advice(), Factor: quantity.Number(mostDrawn), Facts: buildsFacts(d), Method: buildsMethod(d),
	}
	for i := range d.Values {
		v := &d.Values[i]
		limit, side := limitOf(d, v)
		p.Values = append(p.Values, buildsValue{
			Benchmark: v.Title(), Metric: v.Metric, Better: string(v.Better) + " is better", Ratio: v.RatioText(), Interval: v.IntervalText(),
			Limit: fmt.Sprintf("%s %.4f", side, limit), Between: v.BetweenText(), LostA: quantity.Percent(v.LostA), LostB: quantity.Percent(v.LostB),
			Class: answerClass[v.Answer], Answer: v.AnswerText(len(d.Runs)), Reason: v.Reason,
		})
		switch s, ok := drawRuns(d, v); {
		case ok:
			p.Plots = append(p.Plots, s)
		case v.Ratio != nil:
			p.Undrawn = append(p.Undrawn, v.Title()+" "+v.Metric)
		}
	}
	for i, r := range d.Runs {
		run := buildsRun{Name: runName(i), ID: r.ID, Page: r.Page, Took: quantity.Text(r.Took, result.Seconds)}
		for j := range d.Values {
			of := &d.Values[j].Ratios[i]
			small := of.Reason
			if small == "" {
				small = fmt.Sprintf("%s, %d blocks", of.IntervalText(), of.Blocks)
			}
			run.Ratios = append(run.Ratios, buildsRatio{of.RatioText(), small})
		}
		p.Runs = append(p.Runs, run)
	}
	return p
}

// limitOf is the ratio at the margin. B is worse on the returned side.
func limitOf(d *ab.Document, v *ab.Outcome) (limit float64, side string) {
	if v.Better == result.Higher {
		return 1 / (1 + d.Margin), "below"
	}
	return 1 + d.Margin, "above"
}

func runName(i int) string { return fmt.Sprintf("run %d", i+1) }

func buildsFacts(d *ab.Document) []field {
	var facts []field
	add := func(name string, parts ...string) {
		var known []string
		for _, part := range parts {
			if part != "" {
				known = append(known, part)
			}
		}
		if known != nil {
			facts = append(facts, field{Name: name, Text: strings.Join(known, ", ")})
		}
	}
	add("A, the old build", d.A.Target, d.A.Version, d.A.Binary)
	add("B, the new build", d.B.Target, d.B.Version, d.B.Binary)
	add("Comparison", strings.ReplaceAll(d.Extent(), "; ", ", "))
	if !d.Started.IsZero() {
		add("Date", d.Started.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	if m := d.Machine; m != nil {
		add("Host", m.Hostname, m.CPU, fmt.Sprintf("%d CPUs", m.CPUs))
		add("System", m.OS, "kernel "+m.Kernel)
	}
	add("Tool", strings.TrimSpace("Touchstone "+d.Tool.Version+" "+d.Tool.Commit))
	return facts
}

func buildsMethod(d *ab.Document) []string {
	return []string{
		"Both builds are targets of each run, compared block by block in shuffled order. Each run has a new session and a new seed, and every second run opens B first. " +
			"A run gives one ratio B / A, the same as in its report.",
		"The runs are the observations. The logarithm of the ratio of all runs is a weighted mean in a model with random effects (Paule and Mandel, 1982), with the interval of Hartung and Knapp (2001). " +
			"“Between runs” is the standard deviation of the ratio from run to run, apart from the variation within runs. A run’s own interval shows only the variation within it.",
		fmt.Sprintf("The interval of a value misses the ratio with a probability of %s, over all looks at the growing series together (Lan and DeMets, 1983). "+
			"Several values share the probability of an error.", quantity.Percent(d.Level)),
		fmt.Sprintf("A value is worse if its whole interval is beyond the margin, not worse if the whole interval is before it, and inconclusive otherwise. "+
			"B is worse if one value is worse, and not worse if all values are. Lost trials help no side: with more than %s of them a side is not the better one.", quantity.Percent(stats.MostLost)),
	}
}

// mostRunsHeight is the most room for the marks of the runs, in units of the drawing.
const mostRunsHeight = 440.0

// mostDrawn is the largest ratio of a plot, and its inverse the smallest one. An axis of more has no readable labels.
const mostDrawn = 10_000

// drawable reports whether a plot can show a ratio.
func drawable(x *float64) bool { return x != nil && *x <= mostDrawn && *x >= 1.0/mostDrawn }

// drawRuns draws a value: the ratio of all runs, the ratio of each run from top to bottom, and lines at 1 and at the margin. It returns false
// without a ratio, and if one is beyond mostDrawn. A plot without it would hide it.
func drawRuns(d *ab.Document, v *ab.Outcome) (sides, bool) {
	limit, _ := limitOf(d, v)
	values := []float64{1, limit}
	estimates := [][3]*float64{{v.Ratio, v.Lo, v.Hi}}
	for _, r := range v.Ratios {
		estimates = append(estimates, [3]*float64{r.Ratio, r.Lo, r.Hi})
	}
	drawn := false
	for _, e := range estimates {
		switch {
		case e[0] == nil:
			continue
		case !drawable(e[0]):
			return sides{}, false
		}
		drawn = true
		for _, x := range e {
			if drawable(x) {
				values = append(values, *x)
			}
		}
	}
	s := sides{Metric: v.Metric, Caption: fmt.Sprintf("B / A, %s is better; %s", v.Better, v.Title()), Width: web.Num(figureWidth)}
	var ok bool
	if s.Axis, ok = web.NewAxis(values, result.Score, margin, figureWidth-margin); !ok || !drawn {
		return sides{}, false
	}
	s.One, s.Limit = web.Num(s.Axis.At(1)), web.Num(s.Axis.At(limit))
	s.Legend = []runHead{
		{Key: keyOf(ofRun), Label: "a run, with its own interval"},
		{Key: keyOf(ofAll), Label: "all runs"},
		{Key: key{"one", "M6 0V12"}, Label: "equal"},
		{Key: key{"limit", "M6 0V12"}, Label: fmt.Sprintf("the margin, %.4f", limit)},
	}
	alt := []string{s.Metric + ", " + s.Caption, fmt.Sprintf("the margin is %.4f", limit)}
	newMark := func(y float64, e [3]*float64, kind int, title string) mark {
		m := mark{Class: "side full " + web.Colour(kind), Colour: web.Colour(kind), Path: web.Shape(kind, s.Axis.At(*e[0]), y, sideRadius), Title: title}
		if e[1] != nil || e[2] != nil {
			// An end that does not exist, or is too far away, is at the end of the axis.
			lo, hi := margin, figureWidth-margin
			if drawable(e[1]) {
				lo = s.Axis.At(*e[1])
			}
			if drawable(e[2]) {
				hi = s.Axis.At(*e[2])
			}
			m.Whisker = fmt.Sprintf("M%s %sH%s", web.Num(lo), web.Num(y), web.Num(hi))
		}
		alt = append(alt, title)
		return m
	}
	bottom := 0.0
	if v.Ratio != nil {
		s.Lanes = append(s.Lanes, sideLane{
			Name: "all runs", Full: "all runs", LabelY: web.Num(13),
			Marks: []mark{newMark(sideTop+2, estimates[0], ofAll, "all runs: "+v.RatioText()+", "+v.IntervalText())},
		})
		bottom = sideTop + sideStep + 4
	}
	step := min(sideStep, mostRunsHeight/float64(len(v.Ratios)))
	lane := sideLane{Name: "each run, the first on top", Full: "each run", LabelY: web.Num(bottom + 13)}
	for i := range v.Ratios {
		if r := &v.Ratios[i]; r.Ratio != nil {
			title := runName(i) + ": " + r.RatioText() + ", " + r.IntervalText()
			lane.Marks = append(lane.Marks, newMark(bottom+sideTop+step*float64(i)+2, estimates[i+1], ofRun, title))
		}
	}
	s.Lanes = append(s.Lanes, lane)
	bottom += sideTop + step*float64(len(v.Ratios)) + 4
	s.Height, s.AxisY, s.LabelY = web.Num(bottom+axisHeight), web.Num(bottom), web.Num(bottom+15)
	s.Alt = strings.Join(alt, "; ")
	return s, true
}

// The marks of a run and of all runs: a circle and a diamond.
const (
	ofRun = 0
	ofAll = 3
)
