package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/chart"
)

// writePGFPlots writes the figures of a document for \input in a paper, each as a picture of the package pgfplots with its values in it.
func writePGFPlots(w io.Writer, d *document.Document, _ Options) error {
	charts, err := figures(d, "picture for pgfplots")
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%% %s\n%% \\usepackage{pgfplots} \\pgfplotsset{compat=1.18}; values are in base units\n", comment(d.Title))
	for _, note := range d.Notes {
		fmt.Fprintf(&out, "\n\\noindent\\textbf{%s}\n", tex(note.Text))
	}
	for i := range charts {
		picture(&out, &charts[i])
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// picture writes a chart. Values of rows are horizontal.
func picture(out *strings.Builder, c *chart.Chart) {
	if c.Caption != "" {
		fmt.Fprintf(out, "\n%% %s", comment(c.Caption))
	}
	options := []string{fmt.Sprintf("title={%s}", tex(c.Title)), "legend pos=outer north east", "scaled ticks=false"}
	value := "y"
	if c.Rows != nil {
		value = "x"
		var ticks, names []string
		for i, name := range c.Rows {
			ticks, names = append(ticks, fmt.Sprint(i)), append(names, "{"+tex(name)+"}")
		}
		options = append(options, "y dir=reverse", "ytick={"+strings.Join(ticks, ",")+"}", "yticklabels={"+strings.Join(names, ",")+"}", fmt.Sprintf("height=%dcm", 4+len(c.Rows)/2))
	} else {
		options = append(options, fmt.Sprintf("xlabel={%s}", tex(c.Across)))
	}
	options = append(options, fmt.Sprintf("%slabel={%s}", value, tex(c.Label())))
	if c.Log {
		options = append(options, value+"mode=log")
	}
	if c.Stacked {
		options = append(options, "xbar stacked")
	}
	var lines []string
	for _, l := range c.Lines {
		if chart.Finite(l.Value) && (!c.Log || l.Value > 0) {
			lines = append(lines, chart.Number(l.Value))
		}
	}
	if lines != nil {
		options = append(options, fmt.Sprintf("extra %s ticks={%s}", value, strings.Join(lines, ",")), fmt.Sprintf("extra %s tick style={grid=major}", value))
	}
	fmt.Fprintf(out, "\n\\begin{tikzpicture}\n\\begin{axis}[%s]\n", strings.Join(options, ", "))
	for i := range c.Series {
		plot(out, c, &c.Series[i], value)
	}
	out.WriteString("\\end{axis}\n\\end{tikzpicture}\n")
}

// plot writes a series. A stacked one has a value for each row, because pgfplots adds the values by their order.
func plot(out *strings.Builder, c *chart.Chart, s *chart.Series, value string) {
	kind := "only marks, mark size=1pt"
	switch {
	case c.Stacked:
		kind = ""
	case s.Joined:
		kind = "mark size=1pt"
	}
	hasIntervals := false
	var coordinates []string
	add := func(p chart.Point) {
		pair := func(v, place float64) string {
			if value == "x" {
				return fmt.Sprintf("(%s,%s)", chart.Number(v), chart.Number(place))
			}
			return fmt.Sprintf("(%s,%s)", chart.Number(place), chart.Number(v))
		}
		text := pair(p.Value, p.Place)
		if p.Low != nil && p.High != nil && chart.Finite(*p.Low) && chart.Finite(*p.High) {
			hasIntervals = true
			text += " += " + pair(*p.High-p.Value, 0) + " -= " + pair(p.Value-*p.Low, 0)
		}
		coordinates = append(coordinates, text)
	}
	if c.Stacked {
		rows := make([]float64, len(c.Rows))
		for _, p := range s.Points {
			rows[int(p.Place)] += p.Value
		}
		for i, v := range rows {
			add(chart.Point{Place: float64(i), Value: v})
		}
	} else {
		for _, p := range s.Points {
			add(p)
		}
	}
	if hasIntervals {
		kind += fmt.Sprintf(", error bars/.cd, %s dir=both, %s explicit", value, value)
	}
	fmt.Fprintf(out, "\\addplot+[%s] coordinates {\n%s\n};\n", kind, strings.Join(coordinates, "\n"))
	if s.Name != "" {
		fmt.Fprintf(out, "\\addlegendentry{%s}\n", tex(s.Name))
	} else {
		out.WriteString("\\addlegendentry{values}\n")
	}
}
