package paper

import "testing"

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
	if _, err := Load("nobody"); err == nil {
		t.Error("an unknown paper has no error")
	}
}
