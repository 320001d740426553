package html

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// sampleData is the JSON that the script reads: the samples of a figure that are drawn.
type sampleData struct {
	Name string      `json:"name"`
	Unit result.Unit `json:"unit"`
	// Times is the number of places in time.
	Times int        `json:"times"`
	Axis  axisData   `json:"axis"`
	Lanes []laneData `json:"lanes"`
}

// axisData is an axis between the edges of a figure: the values at its ends, or their logarithms.
type axisData struct {
	Log  bool    `json:"log"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

type laneData struct {
	Name string `json:"name"`
	// Scale is the value of one in the unit with the name Suffix.
	Scale  float64   `json:"scale"`
	Suffix string    `json:"suffix"`
	Top    float64   `json:"top"` // of the first sample
	Orders []int32   `json:"orders"`
	Values []float64 `json:"values"`
	Hollow []int     `json:"hollow"` // the indices of the hollow ones
}

func newSampleData(l *document.Lanes, axis *web.Axis, times int) *sampleData {
	low, high := axis.Ends()
	return &sampleData{Name: web.Clean(l.Name), Unit: l.Unit, Times: times, Axis: axisData{axis.Log, low, high}}
}

func (data *sampleData) add(l *document.Lane, selection []document.Sample, top float64) {
	scale := quantity.ScaleFor(l.Samples.Median, data.Unit)
	lane := laneData{Name: web.Clean(strings.TrimSuffix(l.Name, " (baseline)")), Scale: scale.Unit, Suffix: scale.Name, Top: top, Orders: []int32{}, Values: []float64{}, Hollow: []int{}}
	for _, v := range selection {
		if !finite(v.Value) {
			continue
		}
		if v.Hollow {
			lane.Hollow = append(lane.Hollow, len(lane.Values))
		}
		lane.Orders, lane.Values = append(lane.Orders, v.Order), append(lane.Values, v.Value)
	}
	data.Lanes = append(data.Lanes, lane)
}
