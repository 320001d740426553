package study

import (
	"github.com/touchstone-bench/touchstone/internal/answer/figure"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
)

// figures draws the figures of the paper again.
func figures(r *reproduce.Reproduction) document.Block {
	s := document.Section{ID: "figures", Title: "Figures", Detail: true, Blocks: []document.Block{document.Text{
		Text: "The study prints no values in these figures, or prints them elsewhere. They are drawn from the values measured " + r.Where() + " alone.", Tone: document.Faint,
	}}}
	for i := range r.Figures {
		f := &r.Figures[i]
		part := document.Section{Title: f.Name, Blocks: []document.Block{document.Text{Text: f.Title}}}
		if f.Reason != "" {
			part.Blocks = append(part.Blocks, document.Text{Text: "Not measured: " + f.Reason})
		}
		for n := range f.Metrics {
			part.Blocks = append(part.Blocks, figure.Samples(&f.Metrics[n], nil))
			if plot, ok := figure.Series(&f.Metrics[n], "place"); ok {
				part.Blocks = append(part.Blocks, plot)
			}
		}
		s.Blocks = append(s.Blocks, part)
	}
	return s
}
