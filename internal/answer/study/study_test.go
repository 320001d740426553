package study_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/text"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	for name, opts := range map[string]text.Options{"study": {Width: 100}, "study-color": {Width: 80, Color: true}} {
		var b bytes.Buffer
		must.Do(t, text.Write(&b, study.Document(reporttest.Study()), opts))
		file := filepath.Join("testdata", name+".golden")
		if *update {
			must.Do(t, os.WriteFile(file, b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(file)
		must.Do(t, err)
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("the text differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
		}
		if !opts.Color && strings.Contains(b.String(), "\x1b") {
			t.Error("text of the study reaches the terminal")
		}
	}
}

// TestRecords holds that each claim has a row with a verdict, and each printed value one with its text.
func TestRecords(t *testing.T) {
	r := reporttest.Study()
	records := study.Document(r).Records()
	value := func(row []any, column string) any { return row[slices.Index(records.Columns, column)] }
	claims, measurements := map[any]bool{}, 0
	for _, row := range records.Rows {
		switch value(row, "part") {
		case "claim":
			claims[value(row, "name")] = true
			if value(row, "verdict") == "" {
				t.Errorf("the verdict is missing: %v", row)
			}
		case "cell":
			if value(row, "printed") == "" && value(row, "median") == nil {
				t.Errorf("the cell is empty: %v", row)
			}
			if value(row, "median") != nil {
				measurements++
			}
		}
	}
	if len(claims) != len(r.Claims) || measurements == 0 {
		t.Errorf("%d of %d claims have rows, and %d cells have our value", len(claims), len(r.Claims), measurements)
	}
}
