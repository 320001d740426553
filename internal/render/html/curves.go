package html

import (
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// lineData is the JSON that the script reads: the lines of a panel with the values that are drawn.
type lineData struct {
	Name string `json:"name"`
	// Axis is the name of the horizontal axis, and Across its unit.
	Axis   string      `json:"axis"`
	Across result.Unit `json:"across"`
	Unit   result.Unit `json:"unit"`
	// PlaceScales are the scales of the horizontal axis.
	PlaceScales []scaleData `json:"placeScales"`
	Scales      []scaleData `json:"scales"`
	X           axisData    `json:"x"`
	Y           axisData    `json:"y"`
	Top         float64     `json:"top"`
	Bottom      float64     `json:"bottom"`
	Lines       []lineTable `json:"lines"`
}

// lineTable is a line.
type lineTable struct {
	Name   string    `json:"name"`
	Places []float64 `json:"places"`
	Values []float64 `json:"values"`
}

// courseData is the JSON of a course: its values that are drawn.
type courseData struct {
	Name   string      `json:"name"`
	Unit   result.Unit `json:"unit"`
	Values []float64   `json:"values"`
}

// barsData is the JSON of stacked bars. They have the name of their section.
type barsData struct {
	Unit result.Unit `json:"unit"`
	Bars []barData   `json:"bars"`
}

type barData struct {
	Name   string      `json:"name"`
	Pieces []pieceData `json:"pieces"`
}

// pieceData is the name of a piece and its value.
type pieceData [2]any

// marksData is the JSON of estimates in lanes.
type marksData struct {
	Name  string      `json:"name"`
	Unit  result.Unit `json:"unit"`
	Log   bool        `json:"log"`
	Rows  []string    `json:"rows"`
	Marks []markData  `json:"marks"`
}

// markData is an estimate with the ends of its interval, which may be null, and its coordinates. Row is the index of its lane.
type markData struct {
	Row   int     `json:"row"`
	Group string  `json:"group"`
	Value float64 `json:"value"`
	Low   any     `json:"low"`
	High  any     `json:"high"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
}

// newLineData has a panel without its lines. The horizontal axis has places without a unit.
func newLineData(p *document.Plot, source *document.Panel, y *web.Axis, top, bottom float64) *lineData {
	low, high := y.Ends()
	data := &lineData{
		Name: web.Clean(p.Name), Axis: web.Clean(p.Axis), Across: p.Across, Unit: p.Unit, PlaceScales: scalesOf(p.Across), Scales: scalesOf(p.Unit),
		X: axisData{High: source.End}, Y: axisData{y.Log, low, high}, Top: top, Bottom: bottom, Lines: []lineTable{},
	}
	if p.Across == "" {
		room := placeInset * max(1, source.End-1) / (plotRight - plotLeft - 2*placeInset)
		data.X = axisData{Low: 1 - room, High: 1 + max(1, source.End-1) + room}
	}
	return data
}

// add adds the values of a line that are drawn.
func (data *lineData) add(name string, c *document.Curve, selection []int) {
	line := lineTable{Name: web.Clean(name), Places: []float64{}, Values: []float64{}}
	for _, i := range selection {
		if finite(c.At[i]) && finite(c.Values[i]) {
			line.Places, line.Values = append(line.Places, rounded(c.At[i])), append(line.Values, rounded(c.Values[i]))
		}
	}
	data.Lines = append(data.Lines, line)
}

func newBarsData(b *document.Bars) barsData {
	data := barsData{Unit: b.Unit, Bars: []barData{}}
	for i := range b.Bars {
		bar := barData{Name: web.Clean(b.Bars[i].Name), Pieces: []pieceData{}}
		for _, p := range b.Bars[i].Pieces {
			if finite(p.Value) {
				bar.Pieces = append(bar.Pieces, pieceData{web.Clean(b.Name(p)), p.Value})
			}
		}
		data.Bars = append(data.Bars, bar)
	}
	return data
}

func scalesOf(unit result.Unit) []scaleData {
	var list []scaleData
	for _, s := range quantity.Scales(unit) {
		list = append(list, scaleData{s.Unit, s.Name, s.From})
	}
	return list
}

// rounded is a value with six digits, which are more than a drawing shows.
func rounded(v float64) float64 {
	value, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v // the largest number, which six digits exceed
	}
	return value
}
