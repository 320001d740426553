package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
)

// barsOf are bars of parts with a value each.
func barsOf(names ...string) document.Bars {
	b := document.Bars{Parts: names, Bars: []document.Bar{{}}}
	for i := range names {
		b.Bars[0].Pieces = append(b.Bars[0].Pieces, document.Piece{First: i, Last: i, Value: float64(i + 1)})
	}
	return b
}

// A component has one colour in all charts, and the components of a chart have different ones.
func TestColoursOfComponents(t *testing.T) {
	blocks := []document.Block{
		barsOf("create", "start"),
		document.Plot{Names: []string{"native", "oci/runc"}},
		document.Section{Blocks: []document.Block{barsOf("start", "delete", "create", "wait"), document.Plot{Names: []string{"oci/crun", "oci/runc", "native"}}}},
		document.Lanes{Lanes: []document.Lane{{Name: "oci/crun", Samples: &document.Samples{}}, {Name: "native (baseline)", Baseline: true, Samples: &document.Samples{}}}},
	}
	p := newPalette(blocks)
	collectComponents(blocks, func(names []string) {
		owners := map[string]string{}
		for _, name := range names {
			colour := p.colour(name)
			if owners[colour] != "" {
				t.Errorf("%s and %s have the colour %s", name, owners[colour], colour)
			}
			owners[colour] = name
		}
	})
	if got := p.line("native"); got != "c3 d3" {
		t.Errorf("the third component of the page has the line %s", got)
	}
	plot := document.Plot{}
	for i := range looks {
		plot.Names = append(plot.Names, fmt.Sprint(i))
	}
	lines := map[string]bool{}
	for _, look := range newPalette([]document.Block{plot}) {
		lines[lineClass(look)] = true
	}
	if len(lines) != looks {
		t.Errorf("%d lines of a plot have %d looks", looks, len(lines))
	}
}

// Bars of more parts than colours have one colour for the smallest of them.
func TestManyParts(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("part %d", i))
	}
	b := barsOf(names...)
	out := newBars(&b, newPalette([]document.Block{b}))
	var legend []string
	for _, key := range out.Legend {
		legend = append(legend, key.Name)
	}
	if got, want := strings.Join(legend, ", "), "part 4, part 5, part 6, part 7, part 8, part 9, part 10, part 11, other (4 parts)"; got != want {
		t.Errorf("the legend is %s, want %s", got, want)
	}
	for i, s := range out.Bars[0].Segments {
		if isOther := s.Class == "c0"; isOther != (i < 4) {
			t.Errorf("part %d has the colour %s", i, s.Class)
		}
	}
}
