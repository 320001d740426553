package html

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// sampleData is the JSON that the script reads: the samples of a figure that are drawn.
type sampleData struct {
	Name   string      `json:"name"`
	Unit   result.Unit `json:"unit"`
	Scales []scaleData `json:"scales"`
	// Times is the number of places in time.
	Times int      `json:"times"`
	Axis  axisData `json:"axis"`
	// Notes are the notes of the samples, each once.
	Notes []string   `json:"notes,omitempty"`
	Lanes []laneData `json:"lanes"`
	// places are the indices of the notes.
	places map[string]int
}

// scaleData is a scale of a unit: the value of one in it, its name, and the least number in it.
type scaleData [3]any

// axisData is an axis between the edges of a figure: the values at its ends, or their logarithms.
type axisData struct {
	Log  bool    `json:"log"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type laneData struct {
	Name string `json:"name"`
	// Look is the classes of its line.
	Look   string    `json:"look"`
	Base   bool      `json:"base"`
	Top    float64   `json:"top"` // of the first sample
	Median any       `json:"median"`
	Low    any       `json:"low"`
	High   any       `json:"high"`
	Orders []int32   `json:"orders"`
	Values []float64 `json:"values"`
	Hollow []int     `json:"hollow"` // the indices of the hollow ones
	// Notes are indices of notes, and -1 for none: one for each sample, or one for all.
	Notes []int `json:"notes,omitempty"`
	// Total is the number of all samples and Quantiles are quantiles of them, if some are left out.
	Total     int       `json:"total,omitempty"`
	Quantiles []float64 `json:"quantiles,omitempty"`
}

// steps is the number of the steps from quantile to quantile of a reduced lane. Every second quantile is a decile.
const steps = 20

func newSampleData(l *document.Lanes, axis *web.Axis, times int) *sampleData {
	low, high := axis.Ends()
	return &sampleData{Name: web.Clean(l.Name), Unit: l.Unit, Scales: scalesOf(l.Unit), Times: times, Axis: axisData{axis.Log, low, high}, places: map[string]int{}}
}

// add adds a lane with the samples that are drawn. The values of a reduced lane have six digits, because the page is large. Its notes have at most a number of bytes, without the notes of the lanes before it.
func (data *sampleData) add(l *document.Lane, selection []document.Sample, look string, top float64, notes int) {
	lane := laneData{
		Name: laneName(l), Look: look, Base: l.Baseline, Top: top, Median: document.Number(l.Samples.Median), Low: document.NumberOf(l.Samples.Low), High: document.NumberOf(l.Samples.High),
		Orders: []int32{}, Values: []float64{}, Hollow: []int{},
	}
	isReduced := len(selection) < len(l.Samples.Values)
	for _, v := range selection {
		if !finite(v.Value) {
			continue
		}
		if isReduced {
			v.Value = rounded(v.Value)
		}
		if v.Hollow {
			lane.Hollow = append(lane.Hollow, len(lane.Values))
		}
		place := -1
		if text := web.Clean(v.Note); text != "" {
			index, has := data.places[text]
			if place = index; !has {
				place = -1
				if notes -= len(text); notes >= 0 {
					place = len(data.Notes)
					data.places[text], data.Notes = place, append(data.Notes, text)
				}
			}
		}
		lane.Orders, lane.Values, lane.Notes = append(lane.Orders, v.Order), append(lane.Values, v.Value), append(lane.Notes, place)
	}
	if kinds := slices.Compact(slices.Clone(lane.Notes)); len(kinds) == 1 {
		lane.Notes = kinds
		if kinds[0] < 0 {
			lane.Notes = nil
		}
	}
	if isReduced {
		lane.Total, lane.Quantiles = l.Samples.Quantiles(steps)
		for i, v := range lane.Quantiles {
			lane.Quantiles[i] = rounded(v)
		}
	}
	data.Lanes = append(data.Lanes, lane)
}

// laneName is the name of a lane without its role.
func laneName(l *document.Lane) string { return web.Clean(strings.TrimSuffix(l.Name, " (baseline)")) }
