package paper

import (
	"slices"
	"strings"
	"testing"
)

func TestOfCell(t *testing.T) {
	p, err := Load("espe")
	if err != nil {
		t.Fatal(err)
	}
	of := p.Tables[0].OfCell(0, 1)
	if of.Target != "containerd/runsc" || of.Metric != "TotalTime" || of.Unit != "s" {
		t.Errorf("the cell is %+v", of)
	}
	if v, ok := p.Tables[0].Rows[0].Cells[1].Number(); v != 26.29 || !ok {
		t.Errorf("the value is %g, %v", v, ok)
	}
}

func TestUnknownPaper(t *testing.T) {
	for _, name := range []string{"nobody", "", "../paper", "Espe"} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "there are espe") {
			t.Errorf("the error for %q is %v", name, err)
		}
	}
}

func TestNamesAreTheFiles(t *testing.T) {
	papers, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(papers, func(a, b Paper) int { return a.Year - b.Year }) {
		t.Errorf("%v are not in the order of their years", Names())
	}
	for _, p := range papers {
		if same, err := Load(p.Name); err != nil || same.Title != p.Title {
			t.Errorf("the file of %s has another name: %v", p.Name, err)
		}
	}
}
