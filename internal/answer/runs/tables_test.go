package runs_test

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// samples are the reports of all made-up runs.
func samples() map[string]report.Report {
	reports := map[string]report.Report{"small": single(reporttest.Small())}
	for name := range computed {
		reports[name] = reportOf(name)
	}
	for name, run := range reporttest.Odd() {
		reports["odd "+name] = report.New([]result.Run{run}, analysis.Options{})
	}
	return reports
}

// tablesOf calls f with each table of the blocks, and with the text below it.
func tablesOf(blocks []document.Block, f func(t *document.Table, note string)) {
	for i, b := range blocks {
		switch b := b.(type) {
		case document.Section:
			tablesOf(b.Blocks, f)
		case document.Table:
			note := ""
			if i+1 < len(blocks) {
				if text, is := blocks[i+1].(document.Text); is {
					note = text.Text
				}
			}
			f(&b, note)
		case document.Matrix:
			for _, baseline := range b.Baselines {
				t := document.Table{}
				for _, cells := range baseline.Cells {
					var row []document.Cell
					for _, c := range cells {
						row = append(row, c.Factor)
					}
					t.Rows = append(t.Rows, row)
				}
				f(&t, "")
			}
		}
	}
}

var (
	cost     = regexp.MustCompile(`(?:^|^typical |\()([0-9.]+) ×(, (?:slower|faster|more|less|worse|better))?`)
	interval = regexp.MustCompile(`^([0-9.]+) to ([0-9.]+)(, .*)?$`)
)

// TestOneDirection: in each table a cost is in its interval, a cost with a word such as slower has the direction of the word, and nothing else is bold: a cost
// without a shown difference is not. A dash never stands alone.
func TestOneDirection(t *testing.T) {
	reports := samples()
	costs, intervals, dashes := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		r := reports[name]
		tablesOf(document.Drawn(runs.Document(&r).Blocks), func(table *document.Table, note string) {
			for _, row := range table.Rows {
				for _, cell := range row {
					value := 0.0
					for i, span := range cell {
						if match := cost.FindStringSubmatch(span.Text); match != nil {
							costs++
							value, _ = strconv.ParseFloat(match[1], 64)
							hasColour := span.Tone == document.Good || span.Tone == document.Bad
							switch isShown := match[2] != ""; {
							case span.Tone == document.Strong, hasColour && !isShown:
								t.Errorf("%s: %q has an emphasis without a shown difference", name, span.Text)
							case isShown && slices.Contains([]string{", slower", ", more", ", worse"}, match[2]) != (value > 1):
								t.Errorf("%s: %q has the other direction", name, span.Text)
							}
						}
						if match := interval.FindStringSubmatch(span.Text); match != nil && value > 0 && !strings.HasPrefix(cell[0].Text, "baseline") {
							intervals++
							lo, _ := strconv.ParseFloat(match[1], 64)
							hi, _ := strconv.ParseFloat(match[2], 64)
							if value < lo || value > hi {
								t.Errorf("%s: the interval %q does not contain its cost %v", name, span.Text, value)
							}
						}
						if i == 0 && len(cell) == 1 && span.Text == quantity.None {
							if dashes++; !strings.HasPrefix(note, quantity.None+": ") && !listsReasons(row) {
								t.Errorf("%s: a dash in the row %v has no reason", name, row)
							}
						}
					}
				}
			}
		})
	}
	if costs < 1000 || intervals < 500 || dashes < 20 {
		t.Errorf("the test has seen %d costs, %d intervals and %d dashes, want many", costs, intervals, dashes)
	}
}

// listsReasons reports whether a row is of the form "–: not recorded on …", which is the reason itself.
func listsReasons(row []document.Cell) bool {
	return len(row) == 2 && len(row[1]) == 1 && strings.HasPrefix(row[1][0].Text, "not recorded on ")
}

// The table of targets has the origin and the checksum of each program that touchstone setup has installed.
func TestInstalledProgramsAreShown(t *testing.T) {
	run := reporttest.Sample()
	for i := range run.Targets {
		if run.Targets[i].Name == "oci/runc" {
			run.Targets[i].Installed = []result.Installed{{
				Program: "runc", Part: "runc", Version: "1.5.2", Origin: "build of example.com/runc@v1.5.2 (h1:x=)", Digest: "sha256:ba78",
			}}
		}
	}
	count, r := 0, single(run)
	tablesOf(runs.Document(&r).Blocks, func(t *document.Table, _ string) {
		for _, row := range t.Rows {
			for _, cell := range row {
				if slices.ContainsFunc(cell, func(s document.Span) bool {
					return s.Text == "runc: build of example.com/runc@v1.5.2 (h1:x=), sha256:ba78"
				}) {
					count++
				}
			}
		}
	})
	if count != 1 {
		t.Errorf("the program is shown %d times, want once", count)
	}
}
