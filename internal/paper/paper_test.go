package paper

import (
	"reflect"
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
	var found []string
	for _, p := range papers {
		found = append(found, p.Name)
	}
	if got := Names(); !slices.Equal(got, found) {
		t.Errorf("the names are %q, but the files have %q", got, found)
	}
	for _, p := range papers {
		if same, err := Load(p.Name); err != nil || same.Title != p.Title {
			t.Errorf("the file of %s has another name: %v", p.Name, err)
		}
	}
}

// A row can name the test that its columns measure, and an engine in place of the table's.
func TestOfCellOfItem(t *testing.T) {
	table := Table{
		Of:      Of{Target: "crio/runsc@platform=ptrace", Arch: "arm64"},
		Columns: []Column{{Of: Of{Metric: "{item}Rating"}}, {Of: Of{Metric: "LatencyAvg"}}},
		Rows:    []Row{{Of: Of{Item: "Compress", Engine: "docker"}}, {Of: Of{Item: "SET"}}},
	}
	for _, c := range []struct {
		row, column                  int
		target, metric, item, engine string
	}{
		{0, 0, "docker/runsc@platform=ptrace", "CompressRating", "Compress", "docker"},
		{1, 1, "crio/runsc@platform=ptrace", "LatencyAvg", "SET", ""},
	} {
		want := Of{Arch: "arm64", Target: c.target, Engine: c.engine, Metric: c.metric, Item: c.item}
		if got := table.OfCell(c.row, c.column); !reflect.DeepEqual(got, want) {
			t.Errorf("the cell is %+v, want %+v", got, want)
		}
	}
	table.Of.Target = "native"
	if got := table.OfCell(0, 0).Target; got != "native" {
		t.Errorf("native has another engine: %s", got)
	}
}

func TestNumber(t *testing.T) {
	for printed, want := range map[string]float64{"1,234.5": 1234.5, "≈ 113.3": 113.3, "0": 0} {
		if v, ok := (Cell{Printed: printed}).Number(); v != want || !ok {
			t.Errorf("%q is %g, %v", printed, v, ok)
		}
	}
	for _, printed := range []string{"", "-", "84 - 104", "Not available"} {
		if v, ok := (Cell{Printed: printed}).Number(); ok {
			t.Errorf("%q is the number %g", printed, v)
		}
	}
}
