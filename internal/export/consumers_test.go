package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/perf/benchfmt"

	"github.com/touchstone-bench/touchstone/internal/benchfile"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

const lifecycle = "operations.container.lifecycle"

// TestBenchfmtHasALineForEachTrial: the reader of golang.org/x/perf finds no wrong line, each value of each trial that is ok, and the direction of each unit.
func TestBenchfmtHasALineForEachTrial(t *testing.T) {
	for _, run := range []result.Run{reporttest.Small(), reporttest.Sample(), hostile()} {
		files, _ := written(t, "benchfmt", run)
		reader := benchfmt.NewReader(strings.NewReader(files[""]), "export")
		lines := 0
		var got []float64
		for reader.Scan() {
			switch record := reader.Result().(type) {
			case *benchfmt.SyntaxError:
				t.Errorf("a line is wrong: %v", record)
			case *benchfmt.Result:
				lines++
				for _, v := range record.Values {
					if reader.Units().GetBetter(v.Unit) == 0 {
						t.Errorf("the unit %s has no direction", v.Unit)
					}
					if strings.HasPrefix(string(record.Name), "Operations.container.lifecycle") && record.GetConfig("target") == "oci/runc" && v.Unit == "CreateAndRun-sec" {
						got = append(got, v.Value)
					}
				}
			}
		}
		must.Do(t, reader.Err())
		ok, bad := 0, 0
		for i := range run.Trials {
			switch tr := &run.Trials[i]; {
			case tr.Warmup:
			case tr.Status == result.OK:
				ok++
			default:
				bad++
			}
		}
		if comments := strings.Count(files[""], "\n# no value: trial "); lines != ok || comments != bad {
			t.Errorf("%d lines and %d comments for %d trials that are ok and %d others", lines, comments, ok, bad)
		}
		if want := values(run, lifecycle, "oci/runc", "CreateAndRun"); len(want) > 0 && !slices.Equal(got, want) {
			t.Errorf("the values are %v, want %v", got, want)
		}
	}
}

// TestGoBenchKeepsItsUnits: the lines of an imported file have the units and the values of the file.
func TestGoBenchKeepsItsUnits(t *testing.T) {
	const text = "BenchmarkEncode-2 100 1234 ns/op 83.1 MB/s 2048 B/op 12 allocs/op\nBenchmarkEncode-2 100 1250 ns/op 82.2 MB/s 2048 B/op 12 allocs/op\n"
	valuesOf := func(text string) (list [][]benchfmt.Value) {
		reader := benchfmt.NewReader(strings.NewReader(text), "")
		for reader.Scan() {
			if record, ok := reader.Result().(*benchfmt.Result); ok {
				values := slices.Clone(record.Values)
				for i := range values {
					values[i].OrigValue, values[i].OrigUnit = 0, ""
				}
				list = append(list, values)
			}
		}
		must.Do(t, reader.Err())
		return list
	}
	runs, err := benchfile.Decode(textfile.GoBench, []byte(text), "go")
	must.Do(t, err)
	files, _ := written(t, "benchfmt", runs...)
	expect.Equal(t, "the values of the lines", valuesOf(text), valuesOf(files[""]))
}

// TestBenchstatReadsIt: benchstat compares the targets of an export, and two exports.
func TestBenchstatReadsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("building benchstat takes long")
	}
	files, _ := written(t, "benchfmt", reporttest.Small())
	path := filepath.Join(t.TempDir(), "run.txt")
	must.Do(t, os.WriteFile(path, []byte(files[""]), 0o600))
	for _, args := range [][]string{{"-col", "target", path}, {"old=" + path, "new=" + path}} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "benchstat"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), "CreateAndRun-sec") || strings.Contains(stderr.String(), "syntax") {
			t.Errorf("benchstat %v: %v: %s\n%s", args, err, stderr.String(), out)
		}
		if want := "oci/runc"; args[0] == "-col" && !strings.Contains(string(out), want) {
			t.Errorf("benchstat has no column %s:\n%s", want, out)
		}
	}
}

// TestPrometheusReadsIt: Prometheus's parser of OpenMetrics reads the families with their types and units, up to the end, and no series occurs twice.
func TestPrometheusReadsIt(t *testing.T) {
	for _, run := range []result.Run{reporttest.Small(), reporttest.Sample(), hostile()} {
		second := run
		second.ID = "another"
		files, _ := written(t, "openmetrics", run, second)
		p := textparse.NewOpenMetricsParser([]byte(files[""]), labels.NewSymbolTable())
		series := map[string]bool{}
		unit, medians := "", 0
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must.Do(t, err)
			switch entry {
			case textparse.EntryUnit:
				name, value := p.Unit()
				unit = string(value)
				if !strings.HasSuffix(string(name), "_"+unit) {
					t.Errorf("the family %s does not end in its unit %s", name, unit)
				}
			case textparse.EntrySeries:
				text, stamp, value := p.Series()
				if series[string(text)] {
					t.Errorf("the series %s occurs twice", text)
				}
				series[string(text)] = true
				var l labels.Labels
				p.Labels(&l)
				if stamp == nil || *stamp != second.Ended.UnixMilli() {
					t.Fatalf("the time of %s is %v, want the end of the run", text, stamp)
				}
				if l.Get("benchmark") == lifecycle && l.Get("target") == "oci/runc" && l.Get("metric") == "CreateAndRun" && l.Get("__name__") == "touchstone_median_seconds" {
					medians++
					if want := stats.Median(values(run, lifecycle, "oci/runc", "CreateAndRun")); !same(value, want) || unit != "seconds" {
						t.Errorf("the median is %v %s, want %v seconds", value, unit, want)
					}
				}
			case textparse.EntryType, textparse.EntryHelp, textparse.EntryComment, textparse.EntryHistogram, textparse.EntryInvalid:
			}
		}
		if !strings.HasSuffix(files[""], "\n# EOF\n") || len(series) == 0 || run.Bench[0].Name == lifecycle && medians != 2 {
			t.Errorf("%d series, %d medians of CreateAndRun, and the end %q", len(series), medians, files[""][max(0, len(files[""])-10):])
		}
	}
}

// TestShapes: the formats of services follow their documented shapes, in testdata. BMF's is Bencher's own schema; the others are written from the sources of the services.
func TestShapes(t *testing.T) {
	for format, parts := range map[string]map[string]string{
		"bmf":           {"": "bmf"},
		"github-action": {"-smaller-is-better.json": "github-action", "-bigger-is-better.json": "github-action"},
		"conbench":      {"": "conbench"},
	} {
		for _, run := range []result.Run{reporttest.Sample(), hostile()} {
			files, notes := written(t, format, run)
			for suffix, name := range parts {
				schema, err := jsonschema.NewCompiler().Compile("testdata/" + name + ".schema.json")
				must.Do(t, err)
				if files[suffix] == "" {
					if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "that file is not written") }) {
						t.Errorf("%s%s is empty, and the notes are %q", format, suffix, notes)
					}
					continue
				}
				count := 0
				for dec := json.NewDecoder(strings.NewReader(files[suffix])); dec.More(); count++ {
					var tree any
					must.Do(t, dec.Decode(&tree))
					if err := schema.Validate(tree); err != nil {
						t.Errorf("%s%s: %v", format, suffix, err)
					}
				}
				if count == 0 || format != "conbench" && count != 1 {
					t.Errorf("%s%s has %d documents", format, suffix, count)
				}
			}
		}
	}
}

// TestMediansOfServices: BMF and github-action-benchmark have the median of the values.
func TestMediansOfServices(t *testing.T) {
	run := reporttest.Small()
	want := stats.Median(values(run, lifecycle, "oci/runc", "CreateAndRun"))
	files, _ := written(t, "bmf", run)
	var benchmarks map[string]map[string]struct {
		Value, Lower, Upper float64
		LowerValue          float64 `json:"lower_value"`
		UpperValue          float64 `json:"upper_value"`
	}
	must.Do(t, json.Unmarshal([]byte(files[""]), &benchmarks))
	m := benchmarks[lifecycle+" on oci/runc"]["CreateAndRun (s)"]
	if !same(m.Value, want) || !(m.LowerValue < m.Value && m.Value < m.UpperValue) {
		t.Errorf("BMF has %+v, want the median %v between its ends", m, want)
	}
	files, _ = written(t, "github-action", run)
	var list []struct {
		Name, Unit string
		Value      float64
	}
	must.Do(t, json.Unmarshal([]byte(files["-smaller-is-better.json"]), &list))
	found := false
	for _, item := range list {
		if item.Name == lifecycle+" on oci/runc: CreateAndRun" {
			found = same(item.Value, want) && item.Unit == "s"
		}
	}
	if !found {
		t.Errorf("github-action-benchmark has no median %v of CreateAndRun: %+v", want, list)
	}
}
