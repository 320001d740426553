package study_test

import (
	"math"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

// TestMatrix: our ratio is beside the ratio of the study, and a study outside of our interval differs.
func TestMatrix(t *testing.T) {
	r := reporttest.Study()
	var m document.Matrix
	for _, b := range study.Document(r, nil).Blocks {
		if s, is := b.(document.Section); is && s.ID == "ratios" {
			m = s.Blocks[1].(document.Matrix)
		}
	}
	if len(m.Rows) != 2 || len(m.Columns) != 2 || m.Columns[1] != "oci/runc" {
		t.Fatalf("the matrix is %+v", m)
	}
	ours := r.Tables[0].Cells[0][1]
	got := m.Baselines[0].Cells[0]
	if got[0].Factor[1].Text != "reference" || got[1].Factor[2].Text != "study 20.0, differs" || !got[1].Shown || math.Abs(got[1].Size-math.Log(ours.Ratio.Ratio/20)) > 1e-12 {
		t.Errorf("the first row is %+v", got)
	}
	if value := m.Rows[0].Values[1]; value[0].Text != ours.Value() || value[1].Text != "study 0.040" {
		t.Errorf("the values are %v", value)
	}
	if got := m.Baselines[0].Cells[1][1]; got.Shown || len(got.Factor) != 2 { // the study has no value of the reference
		t.Errorf("the ratio without one of the study is %+v", got)
	}
	for i := range r.Tables {
		for n := range r.Tables[i].Cells {
			for c := range r.Tables[i].Cells[n] {
				r.Tables[i].Cells[n][c].Published = math.NaN()
			}
		}
	}
	for _, b := range study.Document(r, nil).Blocks {
		if s, is := b.(document.Section); is && s.ID == "ratios" {
			t.Error("a study without ratios has a matrix of them")
		}
	}
}
