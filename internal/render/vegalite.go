package render

import (
	"encoding/json"
	"io"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/chart"
)

// vegaLite is the schema of the specifications.
const vegaLite = "https://vega.github.io/schema/vega-lite/v6.json"

type object = map[string]any

// writeVegaLite writes the figures of a document as one Vega-Lite specification, below each other, with their values in it.
func writeVegaLite(w io.Writer, d *document.Document, _ Options) error {
	charts, err := figures(d, "Vega-Lite specification")
	if err != nil {
		return err
	}
	notes := []string{"Values are in base units."}
	for _, n := range d.Notes {
		notes = append(notes, n.Text)
	}
	var views []any
	for i := range charts {
		views = append(views, view(&charts[i]))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(object{
		"$schema": vegaLite, "title": object{"text": d.Title, "subtitle": notes}, "vconcat": views, "resolve": object{"scale": object{"color": "independent"}},
	})
}

// figures are the charts of a document, or an error that names its kind.
func figures(d *document.Document, format string) ([]chart.Chart, error) {
	charts := chart.Charts(d)
	if len(charts) == 0 {
		return nil, nothing("a %s without figures has no %s", d.Kind, format)
	}
	return charts, nil
}

// view is a chart with its layers: the lines with a meaning, the intervals, and the values.
func view(c *chart.Chart) object {
	values, place := object{"field": "value", "type": "quantitative", "title": c.Label()}, object{"field": "place", "type": "quantitative", "title": c.Across}
	horizontal, vertical := place, values
	low, high := "y", "y2"
	if c.Rows != nil {
		place = object{"field": "row", "type": "nominal", "title": nil, "sort": nil}
		horizontal, vertical = values, place
		low, high = "x", "x2"
	}
	if c.Log {
		values["scale"] = object{"type": "log"}
	} else if !c.Stacked {
		values["scale"] = object{"zero": false}
	}
	var rows, intervals []object
	isJoined := false
	for _, s := range c.Series {
		isJoined = isJoined || s.Joined
		for _, p := range s.Points {
			row := object{"series": s.Name, "value": p.Value, "text": p.Text, "place": p.Place}
			if c.Rows != nil {
				row["row"] = c.Rows[int(p.Place)]
			}
			rows = append(rows, row)
			if p.Low != nil && p.High != nil && chart.Finite(*p.Low) && chart.Finite(*p.High) {
				intervals = append(intervals, object{"series": s.Name, "low": *p.Low, "high": *p.High, "place": p.Place, "row": row["row"]})
			}
		}
	}
	colour := object{"field": "series", "type": "nominal", "title": nil}
	mark := object{"type": "point", "filled": true}
	switch {
	case c.Stacked:
		mark = object{"type": "bar"}
	case isJoined:
		mark = object{"type": "line", "point": true}
	}
	mark["tooltip"] = object{"content": "data"}
	layers := []object{{"data": object{"values": rows}, "mark": mark, "encoding": object{"x": horizontal, "y": vertical, "color": colour}}}
	if intervals != nil {
		encoding := object{"x": horizontal, "y": vertical, "color": colour}
		encoding[low] = object{"field": "low", "type": "quantitative", "title": c.Label(), "scale": values["scale"]}
		encoding[high] = object{"field": "high"}
		layers = append(layers, object{"data": object{"values": intervals}, "mark": "rule", "encoding": encoding})
	}
	for _, l := range c.Lines {
		if !chart.Finite(l.Value) || c.Log && l.Value <= 0 {
			continue
		}
		layers = append(layers, object{"mark": object{"type": "rule", "strokeDash": []int{4, 4}}, "encoding": object{low: object{"datum": l.Value}}})
	}
	v := object{"title": object{"text": c.Title, "subtitle": c.Caption}, "width": 480, "layer": layers}
	if c.Rows != nil {
		v["height"] = object{"step": 20}
	}
	return v
}
