package ab_test

import (
	"testing"

	answer "github.com/touchstone-bench/touchstone/internal/answer/ab"
	"github.com/touchstone-bench/touchstone/internal/document"
)

// TestMatrix: a comparison of several values has a row for each, with all runs and each run, and a colour for an interval of all runs that excludes 1.
func TestMatrix(t *testing.T) {
	for name, c := range documents() {
		var m *document.Matrix
		for _, b := range answer.Document(c).Blocks {
			if s, is := b.(document.Section); is && s.ID == "overview" {
				found := s.Blocks[1].(document.Matrix)
				m = &found
			}
		}
		if (m != nil) != (len(c.Values) > 1) {
			t.Errorf("%s: %d values, and a matrix: %v", name, len(c.Values), m != nil)
		}
		if m == nil {
			continue
		}
		count := 0
		for i := range c.Values {
			v := &c.Values[i]
			for row := range m.Rows {
				if m.Rows[row].ID != v.Title()+"/"+v.Metric {
					continue
				}
				count++
				cells := m.Baselines[0].Cells[row]
				excludes := v.Lo != nil && *v.Lo > 1 || v.Hi != nil && *v.Hi < 1
				if cells[0].Factor[0].Text != v.RatioText() || cells[0].Shown != excludes || (cells[0].Factor[0].Strength > 0) != excludes {
					t.Errorf("%s: %s over all runs is %+v", name, v.Metric, cells[0])
				}
				for n := range v.Ratios {
					if got := cells[n+1]; got.Factor[0].Text != v.Ratios[n].RatioText() || got.Shown || got.Factor[0].Strength > 0 {
						t.Errorf("%s: %s in run %d is %+v", name, v.Metric, n+1, got)
					}
				}
			}
		}
		if count != len(c.Values) {
			t.Errorf("%s: the matrix has %d of %d values", name, count, len(c.Values))
		}
	}
}
