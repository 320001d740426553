package paper

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestUnknownPaper(t *testing.T) {
	for _, name := range []string{"nobody", "", "../paper", "Espe"} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "there are espe") {
			t.Errorf("the error for %q is %v", name, err)
		}
	}
}

func TestNamesAreTheFiles(t *testing.T) {
	papers, err := All()
	must.Do(t, err)
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
		if second, err := Load(p.Name); err != nil || second.Title != p.Title {
			t.Errorf("the file of %s has another name: %v", p.Name, err)
		}
	}
}

// A cell has the facts of its table, its column and its row. A row can name the test that its columns measure, and an engine in place of the table's.
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
	for text, want := range map[string]float64{"1,234.5": 1234.5, "≈ 113.3": 113.3, "0": 0} {
		if v, ok := (Cell{Printed: text}).Number(); v != want || !ok {
			t.Errorf("%q is %g, %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "-", "84 - 104", "Not available"} {
		if v, ok := (Cell{Printed: text}).Number(); ok {
			t.Errorf("%q is the number %g", text, v)
		}
	}
}

// The tables have all of their numbers, also if the texts of the papers are missing: 112 in nishimura's tables and 1638 in sateri's.
func TestCountOfNumbers(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"espe":      {"table 1": 73},
		"wang":      {"table 2": 12, "table 3": 24},
		"nishimura": {"table 3": 55, "table 4": 41, "table 5": 8, "table 6": 8},
		"sateri": {
			"table 4.3": 54, "table 4.5": 80, "table 4.6": 100, "table 4.7": 45, "table 4.8": 36, "table 4.9": 14,
			"table 5.1": 7, "table 5.2": 7, "table 5.3": 21, "table 5.4": 14,
			"table A.1": 140, "table A.2": 140, "table A.3": 140, "table A.4": 140, "table A.5": 140, "table A.6": 140, "table A.7": 140,
			"table A.8": 140, "table A.9": 140,
		},
	} {
		p, err := Load(name)
		must.Do(t, err)
		got := map[string]int{}
		for _, table := range p.Tables {
			for _, row := range table.Rows {
				for _, cell := range row.Cells {
					if strings.HasPrefix(table.Name, "table") && numberAt.MatchString(cell.Printed) && !strings.ContainsAny(cell.Printed, "abcdefghijklmnopqrstuvwxyz") {
						got[table.Name]++
					}
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s has the cells %v, not %v", name, got, want)
		}
	}
}
