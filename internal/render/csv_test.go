package render_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestCSV holds that numbers stay numbers, and that no text is a formula, a second line or a second field.
func TestCSV(t *testing.T) {
	records := document.Records{
		Columns: []string{"text", "value", "n", "shown"},
		Rows: [][]any{
			{"plain", 0.1, 3, true},
			{"a,\"b\"", -1e-9, 0, false},
			{"", nil, nil, nil},
			{"=1+1", 1e300, -1, true},
			{"+1", nil, nil, nil},
			{"-x", nil, nil, nil},
			{"@SUM(A1)", nil, nil, nil},
			{"\t=1", nil, nil, nil},
			{"\r\n=1", nil, nil, nil},
			{"a\nb\x1b[2J", nil, nil, nil},
			{"a=b", nil, nil, nil},
		},
	}
	d := &document.Document{Records: func() document.Records { return records }}
	const want = `text,value,n,shown
plain,0.1,3,true
"a,""b""",-1e-09,0,false
,,,
'=1+1,1e+300,-1,true
'+1,,,
'-x,,,
'@SUM(A1),,,
' =1,,,
'  =1,,,
` + "a b\uFFFD[2J,,,\na=b,,,\n"
	if got := written(t, "csv", d); got != want {
		t.Errorf("the rows are\n%s\nwant\n%s", got, want)
	}
}

// TestRecordsAreRows holds that every answer has records, each with a value or nothing for each column.
func TestRecordsAreRows(t *testing.T) {
	for _, d := range answers(t) {
		rows, err := csv.NewReader(strings.NewReader(written(t, "csv", d))).ReadAll()
		must.Do(t, err) // also for a row with another number of fields
		if len(rows) < 2 {
			t.Errorf("a %s has %d rows", d.Kind, len(rows))
		}
		if names := slices.Sorted(slices.Values(d.Records().Columns)); len(slices.Compact(names)) != len(d.Records().Columns) {
			t.Errorf("a %s has a column twice: %v", d.Kind, d.Records().Columns)
		}
		for _, row := range d.Records().Rows {
			for i, value := range row {
				switch value.(type) {
				case nil, string, float64, int, bool:
				default:
					t.Fatalf("a %s has the value %#v in the column %s", d.Kind, value, d.Records().Columns[i])
				}
			}
		}
	}
}
