package docgen_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/docgen"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var (
	from = flag.String("from", "", "a pattern of the files with exported runs for the matrix; see scripts/workload-matrix.sh")
	kind = flag.String("kind", "programs", "the kind of the matrix of -from")
	part = flag.Bool("part", false, "the runs of -from have a part of the benchmarks; the others keep their rows")
)

// programs is the kind with the most rows.
func programs() docgen.Kind { return docgen.Kinds()[0] }

func TestMatrixIsFresh(t *testing.T) {
	for _, k := range docgen.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			if *from != "" && *kind == k.Name {
				writeMatrix(t, *from, k)
			}
			file := filepath.Join(docs, "benchmarks", "matrix.md")
			page, err := os.ReadFile(file)
			must.Do(t, err)
			want, err := docgen.WithMatrix(page, stored(t, k), k)
			must.Do(t, err)
			compare(t, file, want)
		})
	}
}

func stored(t *testing.T, k docgen.Kind) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", k.File))
	must.Do(t, err)
	return text
}

// exported reads the matrix of a file with a run.
func exported(t *testing.T, export string, k docgen.Kind) docgen.Matrix {
	t.Helper()
	f, err := os.Open(export)
	must.Do(t, err)
	defer func() { _ = f.Close() }() // it is only read from
	doc, err := result.Decode(f)
	if err != nil || len(doc.Runs) != 1 {
		t.Fatalf("%s has %d runs, want one: %v", export, len(doc.Runs), err)
	}
	m, err := docgen.MatrixOf(doc.Runs[0], k)
	must.Do(t, err)
	return m
}

func writeMatrix(t *testing.T, pattern string, k docgen.Kind) {
	t.Helper()
	exports, err := filepath.Glob(pattern)
	if err != nil || len(exports) == 0 {
		t.Fatalf("no exported run matches %s: %v", pattern, err)
	}
	var m docgen.Matrix
	if *part {
		m = storedMatrix(t, k)
	} else {
		m, exports = exported(t, exports[0], k), exports[1:]
	}
	for _, export := range exports {
		m, err = m.Update(exported(t, export, k))
		must.Do(t, err)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "\t")
	e.SetEscapeHTML(false)
	must.Do(t, e.Encode(m))
	must.Do(t, os.WriteFile(filepath.Join("testdata", k.File), text.Bytes(), 0o644))
}

func storedMatrix(t *testing.T, k docgen.Kind) (m docgen.Matrix) {
	t.Helper()
	must.Do(t, json.Unmarshal(stored(t, k), &m))
	return m
}

// A run with a part of the benchmarks replaces their rows, or adds them, and says so below the table.
func TestUpdateMatrix(t *testing.T) {
	m := storedMatrix(t, programs())
	row := docgen.Row{Benchmark: m.Rows[0].Benchmark, Reasons: make([]string, len(m.Targets))}
	newRow := docgen.Row{Benchmark: "performance.cpu.new", Reasons: make([]string, len(m.Targets))}
	newer := docgen.Matrix{Machine: "a CPU", Tool: "v9", Date: "2030-01-02", Targets: m.Targets, Rows: []docgen.Row{row, newRow}}
	got, err := m.Update(newer)
	must.Do(t, err)
	row.Seen = "on a CPU, by Touchstone v9 on 2030-01-02"
	newRow.Seen = row.Seen
	want := slices.Concat([]docgen.Row{row}, m.Rows[1:], []docgen.Row{newRow})
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got.Rows = got.Rows[:len(m.Rows)]
	text, err := json.Marshal(got)
	must.Do(t, err)
	page, err := docgen.WithMatrix([]byte("<!-- matrix -->\n<!-- end -->\n"), text, programs())
	if want := row.Benchmark + " was seen " + row.Seen + ".\n"; err != nil || !strings.Contains(string(page), want) {
		t.Errorf("%v, no %q in\n%s", err, want, page)
	}
	got.Rows[1].Seen = row.Seen
	text, err = json.Marshal(got)
	must.Do(t, err)
	page, err = docgen.WithMatrix([]byte("<!-- matrix -->\n<!-- end -->\n"), text, programs())
	if want := row.Benchmark + " and " + got.Rows[1].Benchmark + " were seen " + row.Seen + ".\n"; err != nil || !strings.Contains(string(page), want) {
		t.Errorf("%v, no %q in\n%s", err, want, page)
	}
	second := docgen.Matrix{Machine: m.Machine, Tool: m.Tool, Date: m.Date, Targets: m.Targets, Rows: []docgen.Row{{Benchmark: m.Rows[0].Benchmark}}}
	if got, err := m.Update(second); err != nil || got.Rows[0].Seen != "" {
		t.Errorf("a row of a second run of the same version, machine and day is %+v: %v", got.Rows, err)
	}
	newer.Targets = newer.Targets[1:]
	if got, err := m.Update(newer); err == nil {
		t.Errorf("a run of other targets is accepted: %v", got)
	}
}

// A benchmark that failed once does not work on the target. A benchmark that was not tried does not either. The lines of a system log are no
// part of a reason.
func TestMatrixOf(t *testing.T) {
	trial := func(benchmark, target string, status result.Status) result.Trial {
		out := result.Trial{Cell: result.Cell{Benchmark: benchmark, Target: target}, Status: status}
		if status != result.OK {
			out.Reason = "no such device; the last errors in its system log:\nkata[1]: no device"
		}
		return out
	}
	part := trial("performance.a.c", "oci/runc", result.OK)
	part.Conditions = map[string]string{"Bind on": "ext4", "Tmpfs on": "not measured: there is none"}
	run := result.Run{
		Targets: []result.Target{{Name: "native"}, {Name: "oci/runc"}, {Name: "oci/runsc"}},
		Bench:   []result.Benchmark{{Name: "operations.a.b"}, {Name: "performance.a.b"}, {Name: "performance.a.c"}, {Name: "limits.a.b"}},
		Trials: []result.Trial{
			trial("operations.a.b", "native", result.Failed),
			trial("performance.a.b", "native", result.OK), trial("performance.a.b", "native", result.OK),
			trial("performance.a.b", "oci/runc", result.OK), trial("performance.a.b", "oci/runc", result.Failed),
			trial("performance.a.b", "oci/runsc", result.Skipped),
			trial("performance.a.c", "native", result.OK), part, part, trial("performance.a.c", "oci/runsc", result.Skipped),
			trial("limits.a.b", "native", result.OK), trial("limits.a.b", "oci/runc", result.Timeout),
		},
	}
	m, err := docgen.MatrixOf(run, programs())
	must.Do(t, err)
	want := []docgen.Row{
		{Benchmark: "performance.a.b", Reasons: []string{"", "no such device", "no such device"}},
		{
			Benchmark: "performance.a.c", Reasons: []string{"", "", "no such device"},
			Lacks: []string{"", "Tmpfs is not measured: there is none", ""},
		},
		{Benchmark: "limits.a.b", Reasons: []string{"", "no such device", "the run ended before it"}},
	}
	if diff := cmp.Diff(want, m.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A benchmark with missing metrics "works in part"; the page lists the metrics and the reasons.
func TestMatrixWithParts(t *testing.T) {
	m := storedMatrix(t, programs())
	render := func(lacks ...string) ([]byte, error) {
		m.Rows[0].Lacks = lacks
		text, err := json.Marshal(m)
		must.Do(t, err)
		return docgen.WithMatrix([]byte("<!-- matrix -->\n<!-- end -->\n"), text, programs())
	}
	page, err := render(slices.Insert(make([]string, len(m.Targets)-1), 1, "Tmpfs is not measured: there is none")...)
	must.Do(t, err)
	for _, want := range []string{"| " + m.Rows[0].Benchmark + " | works | in part [1] | works |", "\n1. Tmpfs is not measured: there is none\n"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if _, err := render("of one target"); err == nil {
		t.Error("a row that lacks targets is accepted")
	}
}

func TestMatrixRefusesUnknownRows(t *testing.T) {
	matrix := stored(t, programs())
	page := []byte("<!-- matrix -->\n<!-- end -->\n")
	_, err := docgen.WithMatrix(page, matrix, programs())
	must.Do(t, err)
	for name, text := range map[string]string{
		"no JSON":       "{",
		"unknown":       strings.Replace(string(matrix), "performance.cpu.time", "performance.cpu.space", 1),
		"missing cells": strings.Replace(string(matrix), `"targets": [`, `"targets": ["fake/x",`, 1),
	} {
		if _, err := docgen.WithMatrix(page, []byte(text), programs()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := docgen.WithMatrix([]byte("a page"), matrix, programs()); err == nil {
		t.Error("a page without a place for the matrix is accepted")
	}
}
