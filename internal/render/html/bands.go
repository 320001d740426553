package html

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	// mostBands is the largest number of bands in a panel.
	mostBands = 12
	// nameWidth is the approximate width of a character in the name of a band.
	nameWidth = 5.0
)

// band is one band of a document, or several that are close together.
type band struct {
	X, Width, Class string
	Title           string
	// Label is the name, or a letter that stands for it. It is empty if another label is there.
	Label, LabelX string
}

// stretch is a band before it has a label: bands of the document that are close together.
type stretch struct {
	from, to   float64 // coordinates
	start, end float64
	names      []string
	count      int
}

func (s *stretch) name() string {
	name := strings.Join(s.names, ", ")
	if s.count > len(s.names) {
		name = fmt.Sprintf("%d × %s", s.count, name)
	}
	return name
}

func (s *stretch) title(unit result.Unit) string {
	start, end := quantity.Text(s.start, unit), quantity.Text(s.end, unit)
	if s.count == 1 {
		return fmt.Sprintf("%s: %s to %s", s.name(), start, end)
	}
	return fmt.Sprintf("%s: between %s and %s", s.name(), start, end)
}

// newBands draws the bands, and joins neighbours that are too narrow until at most mostBands are left. A name that does not fit is
// replaced by a letter, which the second result explains.
func newBands(list []document.Band, x *web.Axis, unit result.Unit, left, right float64) (bands []band, regions string) {
	place := func(value float64) float64 { return within(x.At(value), left, right) }
	stretches := joined(list, place, 2)
	for width := 4.0; len(stretches) > mostBands && width < right; width *= 2 {
		stretches = joined(list, place, width)
	}
	var legend []string
	edge := 0.0 // the end of the last label
	for i, s := range stretches {
		b := band{X: web.Num(s.from), Width: web.Num(s.to - s.from), Class: fmt.Sprintf("phase p%d", i%2+1), Title: s.title(unit)}
		name, centre := s.name(), (s.from+s.to)/2
		label := name
		if float64(utf8.RuneCountInString(name))*nameWidth > s.to-s.from {
			label = string(rune('a' + len(legend)%26))
			legend = append(legend, label+" "+name)
		}
		half := float64(utf8.RuneCountInString(label)) * nameWidth / 2
		if centre-half >= edge {
			b.Label, b.LabelX = label, web.Num(centre)
			edge = centre + half + 1
		}
		bands = append(bands, b)
	}
	return bands, strings.Join(legend, "; ")
}

// joined joins bands with a neighbour if one of them is narrower than width and the gap between them is narrower still.
func joined(list []document.Band, place func(value float64) float64, width float64) []stretch {
	var stretches []stretch
	for _, b := range list {
		start := place(b.Start)
		end := max(place(b.End), start+1)
		if len(stretches) > 0 {
			last := &stretches[len(stretches)-1]
			isNarrow := end-start < width || last.to-last.from < width
			isSame := len(last.names) == 1 && last.names[0] == b.Name
			if start-last.to < width/2 && (isNarrow || isSame) {
				last.to, last.end = max(last.to, end), max(last.end, b.End)
				last.count++
				if !slices.Contains(last.names, b.Name) {
					last.names = append(last.names, b.Name)
				}
				continue
			}
		}
		stretches = append(stretches, stretch{from: start, to: end, start: b.Start, end: b.End, names: []string{b.Name}, count: 1})
	}
	return stretches
}
