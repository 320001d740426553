package ab_test

import (
	"strings"
	"testing"

	answer "github.com/touchstone-bench/touchstone/internal/answer/ab"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
)

// plots are the figures of a comparison, and the text about values without one.
func plots(c *ab.Document) (figures []document.Lanes, note string) {
	for _, b := range answer.Document(c).Blocks {
		if s, is := b.(document.Section); is && s.ID == "plots" {
			for _, b := range s.Blocks {
				switch b := b.(type) {
				case document.Lanes:
					figures = append(figures, b)
				case document.Text:
					note = b.Text
				}
			}
		}
	}
	return figures, note
}

// TestFigures holds that a figure has a mark for each run with a ratio and one for all runs, and that no figure hides a ratio.
func TestFigures(t *testing.T) {
	for name, c := range documents() {
		figures, note := plots(c)
		const explanation = "Without a plot, because a ratio is beyond a factor of 10000: operations.container.lifecycle CreateAndRun."
		if isWide := name == "a wide interval"; (note == explanation) != isWide || (note == "") == isWide {
			t.Errorf("%s: the note is %q", name, note)
		}
		index := 0
		for _, v := range c.Values {
			want := 1 // for all runs
			for _, r := range v.Ratios {
				if r.Ratio != nil {
					want++
				}
			}
			if want == 1 || name == "a wide interval" {
				continue
			}
			if index == len(figures) {
				t.Fatalf("%s: %s has no figure", name, v.Metric)
			}
			figure, marks := figures[index], 0
			index++
			for _, lane := range figure.Lanes {
				marks += len(lane.Marks)
				for _, m := range lane.Marks {
					if m.Low != nil && *m.Low > m.Value || m.High != nil && *m.High < m.Value || m.Text == "" || m.Group >= len(figure.Groups) {
						t.Errorf("%s: the mark is %+v", name, m)
					}
				}
			}
			if marks != want || figure.Lines[0].Value != 1 || !figure.Lines[1].Limit || !strings.Contains(figure.Caption, v.Title()) {
				t.Errorf("%s: the figure has %d marks, want %d: %+v", name, marks, want, figure)
			}
		}
		if index != len(figures) {
			t.Errorf("%s: %d figures, want %d", name, len(figures), index)
		}
	}
}
