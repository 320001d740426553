package runs_test

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// TestRecords holds that each run has a row for each value, and a reason for each missing one.
func TestRecords(t *testing.T) {
	run, second := reporttest.Sample(), reporttest.Small()
	second.ID = "other"
	r := report.New([]result.Run{run, second}, analysis.Options{})
	records := runs.Document(&r).Records()
	value := func(row []any, column string) any { return row[slices.Index(records.Columns, column)] }
	found, missing := map[any]int{}, 0
	for _, row := range records.Rows {
		found[value(row, "run")]++
		switch {
		case value(row, "median") == nil && value(row, "reason") == "":
			t.Errorf("the value and its reason are missing: %v", row)
		case value(row, "median") == nil:
			missing++
		case value(row, "target") == value(row, "baseline") && value(row, "ratio") != nil:
			t.Errorf("the baseline has a ratio: %v", row)
		}
	}
	if found[run.ID] == 0 || found["other"] == 0 || missing == 0 {
		t.Errorf("the rows of the runs are %v, and %d values are missing", found, missing)
	}
	index := slices.IndexFunc(records.Rows, func(row []any) bool {
		return value(row, "run") == "other" && value(row, "target") == "oci/runc" && value(row, "metric") == "CreateAndRun"
	})
	if index < 0 {
		t.Fatal("the row of CreateAndRun is missing")
	}
	row := records.Rows[index]
	if ratio, is := value(row, "ratio").(float64); !is || ratio < 2 || value(row, "verdict") != "slower" || value(row, "unit") != "s" || value(row, "ok") != value(row, "n") {
		t.Errorf("the row of CreateAndRun is %v", row)
	}
}
