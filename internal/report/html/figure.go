package html

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Drawings are this wide in their own units and are laid out in columns about as wide in CSS
// pixels, so that their text is as large as it says, on a phone too.
const (
	figureWidth = 320.0
	margin      = 8.0
	laneHeight  = 42.0
	laneTop     = 18.0 // of the points, below the lane's label
	laneDepth   = 18.0 // of the points
	axisHeight  = 24.0
)

// longestName is how much of a target's name a lane has room for.
const longestName = 30

// num spells a coordinate.
func num(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// strip is the plot of a metric: a lane for each target.
type strip struct {
	Metric, Better string
	Series         bool
	// Only says that not all targets have the metric.
	Only string
	// Alt says in words what the drawing shows.
	Alt           string
	Width, Height string
	AxisY, LabelY string
	Axis          axis
	Drawn         bool
	Lanes         []lane
}

type lane struct {
	Name, Full, Value string
	Baseline          bool
	LabelY            string
	Band              *band
	// MedianX and the Y's are those of the median's line.
	MedianX, Top, Bottom string
	// Dots is the path of the points, Rings those of disturbed trials.
	Dots  string
	Rings []ring
}

type band struct{ X, Width, Y, Height string }

type ring struct{ X, Y string }

func newStrip(m *report.Metric) strip {
	var values []float64
	blocks := 1
	for _, c := range m.Cells {
		for _, p := range c.Points {
			values = append(values, p.Value)
			blocks = max(blocks, p.Block+1)
		}
		if c.Summary != nil && c.Summary.CI != nil {
			values = append(values, c.Summary.CI.Lo, c.Summary.CI.Hi)
		}
	}
	cells := slices.DeleteFunc(slices.Clone(m.Cells), func(c report.Cell) bool { return c.Absent })
	height := float64(len(cells)) * laneHeight
	s := strip{
		Metric: m.Name, Better: string(m.Better) + " is better", Series: m.Series, Alt: alternative(m),
		Width: num(figureWidth), Height: num(height + axisHeight), AxisY: num(height), LabelY: num(height + 15),
	}
	s.Axis, s.Drawn = newAxis(values, m.Unit, margin, figureWidth-margin)
	if len(cells) < len(m.Cells) {
		s.Only = fmt.Sprintf("on %d of %d targets", len(cells), len(m.Cells))
	}
	for i, c := range cells {
		s.Lanes = append(s.Lanes, newLane(&s, &c, m, float64(i)*laneHeight, blocks))
	}
	return s
}

func newLane(s *strip, c *report.Cell, m *report.Metric, y float64, blocks int) lane {
	top := y + laneTop
	l := lane{
		Name: shortened(c.Target), Full: c.Target, Baseline: c.Baseline, LabelY: num(y + 13),
		Top: num(top - 3), Bottom: num(top + laneDepth + 3),
	}
	if c.Summary == nil {
		l.Value = "no value"
		return l
	}
	l.Value = report.Median(c.Summary, m.Unit)
	if !s.Drawn {
		return l
	}
	l.MedianX = num(s.Axis.at(c.Summary.Median))
	if ci := c.Summary.CI; ci != nil {
		lo, hi := s.Axis.at(ci.Lo), s.Axis.at(ci.Hi)
		l.Band = &band{X: num(lo), Width: num(max(hi-lo, 0.5)), Y: num(top - 2), Height: num(laneDepth + 4)}
	}
	var dots strings.Builder
	for _, p := range c.Points {
		x, py := num(s.Axis.at(p.Value)), num(top+laneDepth*(float64(p.Block)+0.5)/float64(blocks))
		if p.Disturbed {
			l.Rings = append(l.Rings, ring{x, py})
			continue
		}
		fmt.Fprintf(&dots, "M%s %sh0", x, py)
	}
	l.Dots = dots.String()
	return l
}

// alternative says in words what a plot of a metric shows.
func alternative(m *report.Metric) string {
	parts := []string{m.Name}
	for _, c := range m.Cells {
		s := c.Target + ": "
		switch {
		case c.Absent:
			continue
		case c.Summary == nil:
			s += "no value"
		case c.Comparison == nil:
			s += report.Median(c.Summary, m.Unit)
		default:
			s += fmt.Sprintf("%s, %s %s", report.Median(c.Summary, m.Unit), report.Ratio(c.Comparison.Ratio), report.VerdictWord(c.Comparison.Verdict, m.Unit))
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// shortened cuts a name that a lane has no room for; the whole stands in its title.
func shortened(name string) string {
	if utf8.RuneCountInString(name) <= longestName {
		return name
	}
	return string([]rune(name)[:longestName-1]) + "…"
}

// level is how strongly a shown difference is coloured, 1 to 5, by the logarithm of its
// ratio.
func level(ratio float64) int {
	switch size := math.Abs(math.Log(ratio)); {
	case size < math.Log(1.1):
		return 1
	case size < math.Log(1.5):
		return 2
	case size < math.Log(4):
		return 3
	case size < math.Log(20):
		return 4
	default:
		return 5
	}
}

// heat is the class of a comparison in the matrix.
func heat(c *stats.Comparison) string {
	switch c.Verdict {
	case stats.Faster:
		return fmt.Sprintf("better b%d", level(c.Ratio))
	case stats.Slower:
		return fmt.Sprintf("worse w%d", level(c.Ratio))
	case stats.NoDifference, stats.TooNoisy, stats.TooFew, stats.NotComparable:
	}
	return "neutral"
}
