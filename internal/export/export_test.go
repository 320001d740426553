package export_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/export"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// written has the files of a format by their suffixes, and the notes.
func written(t *testing.T, name string, runs ...result.Run) (files map[string]string, notes []string) {
	t.Helper()
	formats := export.Formats()
	index := slices.IndexFunc(formats, func(f export.Format) bool { return f.Name == name })
	if index < 0 {
		t.Fatalf("no format is called %q", name)
	}
	s := export.New(runs)
	files = map[string]string{}
	for _, p := range formats[index].Parts {
		var b strings.Builder
		must.Do(t, p.Write(&b, s))
		files[p.Suffix] = b.String()
	}
	return files, s.Notes()
}

// hostile is a run whose names have everything that a format might interpret.
func hostile() result.Run {
	run := reporttest.Small()
	rename := func(text string) string { return text + reporttest.Hostile }
	for i := range run.Targets {
		run.Targets[i].Name = rename(run.Targets[i].Name)
	}
	run.Baseline = rename(run.Baseline)
	run.Host.CPU, run.Host.Hostname = rename(run.Host.CPU), rename(run.Host.Hostname)
	for i := range run.Bench {
		run.Bench[i].Name = rename(run.Bench[i].Name)
	}
	for i := range run.Trials {
		run.Trials[i].Target, run.Trials[i].Benchmark = rename(run.Trials[i].Target), rename(run.Trials[i].Benchmark)
	}
	return run
}

// TestSamplesAreWhole: a spreadsheet gets each sample of a run once with all its digits, and a row without a value for each trial without one. encoding/csv reads the rows.
//
// Invariant export-formats: An export has each value with all its digits, and names each cell without one.
func TestSamplesAreWhole(t *testing.T) {
	for name, separator := range map[string]rune{"csv": ',', "tsv": '\t'} {
		for _, run := range []result.Run{reporttest.Sample(), hostile()} {
			files, _ := written(t, name, run)
			in := csv.NewReader(strings.NewReader(files[""]))
			in.Comma = separator
			rows, err := in.ReadAll()
			must.Do(t, err)
			column := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
			var got, want []float64
			empty, failures := 0, 0
			for _, row := range rows[1:] {
				if column(row, "value") == "" {
					empty++
					if column(row, "status") != "ok" && column(row, "reason") == "" {
						t.Errorf("%s: a row has neither a value nor a reason: %v", name, row)
					}
					continue
				}
				if column(row, "unit") == "" || column(row, "better") == "" {
					t.Errorf("%s: a value has no unit or no direction: %v", name, row)
				}
				got = append(got, number(t, column(row, "value")))
			}
			for i := range run.Trials {
				if len(run.Trials[i].Samples) == 0 {
					failures++
				}
				for _, s := range run.Trials[i].Samples {
					want = append(want, s.Value)
				}
			}
			if !slices.Equal(got, want) || empty != failures {
				t.Errorf("%s has %d values and %d empty rows, want %d and %d, or other values", name, len(got), empty, len(want), failures)
			}
		}
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	var v float64
	must.Do(t, json.Unmarshal([]byte(text), &v))
	return v
}

// TestNotesNameEachCellWithoutAValue: a format without a place for the reason names the cell in the notes, and no format has a number for it.
func TestNotesNameEachCellWithoutAValue(t *testing.T) {
	run := reporttest.Sample()
	for _, f := range []string{"bmf", "github-action", "conbench", "openmetrics"} {
		_, notes := written(t, f, run)
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "no value: ") && strings.Contains(n, "oci/runsc") }) {
			t.Errorf("%s: the notes name no lost trial: %q", f, notes)
		}
		for _, n := range notes {
			if strings.ContainsAny(n, "\n\x1b") {
				t.Errorf("%s: a note has a control character: %q", f, n)
			}
		}
	}
}

// A run that another program measured may be of any system.
func TestUnknownHostHasNoSystem(t *testing.T) {
	run := reporttest.Small()
	for _, hasHost := range []bool{true, false} {
		if !hasHost {
			run.Host = result.Host{Hostname: result.UnknownHost}
		}
		files, _ := written(t, "benchfmt", run)
		if strings.Contains(files[""], "goos: linux\n") != hasHost {
			t.Errorf("with a host %v the configuration is\n%.300s", hasHost, files[""])
		}
	}
}

// TestLongNamesAreShort: Bencher refuses a measure of more than 64 characters, so a longer name is shortened, stays unique, and is noted.
func TestLongNamesAreShort(t *testing.T) {
	run := reporttest.Small()
	prefix := strings.Repeat("M", 80)
	first := run.Bench[0].Metrics[0].Name
	second := run.Bench[0].Metrics[1].Name
	names := map[string]string{first: prefix + "1", second: prefix + "2"}
	for i := range run.Bench[0].Metrics {
		if name := names[run.Bench[0].Metrics[i].Name]; name != "" {
			run.Bench[0].Metrics[i].Name = name
		}
	}
	for i := range run.Trials {
		for n := range run.Trials[i].Samples {
			if name := names[run.Trials[i].Samples[n].Metric]; name != "" && run.Trials[i].Benchmark == run.Bench[0].Name {
				run.Trials[i].Samples[n].Metric = name
			}
		}
	}
	files, notes := written(t, "bmf", run)
	var tree map[string]map[string]struct{ Value *float64 }
	must.Do(t, json.Unmarshal([]byte(files[""]), &tree))
	shortened := 0
	for _, measures := range tree {
		for name := range measures {
			if len([]rune(name)) > 64 {
				t.Errorf("the measure %q is too long", name)
			}
			if strings.HasPrefix(name, "MMM") {
				shortened++
			}
		}
	}
	if want := 2 * len(run.Targets); shortened != want || !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "up to 64 characters") }) {
		t.Errorf("%d names are shortened, want %d; the notes are %q", shortened, want, notes)
	}
}

// values are the values of a metric in the trials of a run that are ok.
func values(run result.Run, benchmark, target, metric string) (list []float64) {
	for i := range run.Trials {
		t := &run.Trials[i]
		if !t.Warmup && t.Status == result.OK && t.Benchmark == benchmark && t.Target == target {
			list = append(list, t.Values(metric)...)
		}
	}
	return list
}

// same reports whether two numbers are equal but for the last digits.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }
