package runs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// jsonOf is the JSON of the report of one run.
func jsonOf(t *testing.T, run result.Run) []byte { return jsonOfReport(t, single(run)) }

func jsonOfReport(t *testing.T, r report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, writeJSON(&b, r))
	return b.Bytes()
}

func writeJSON(w io.Writer, r report.Report) error {
	formats := render.Formats()
	f := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == "json" })
	return formats[f].Write(w, runs.Document(&r), render.Options{})
}

// Invariant same-report.
func TestGoldenJSON(t *testing.T) {
	machine, board := reporttest.Small(), reporttest.Small()
	board.ID = "board"
	board.Host.Hostname, board.Host.Arch = "board", "arm64"
	for golden, got := range map[string][]byte{
		"testdata/small.golden.json":    jsonOf(t, machine),
		"testdata/machines.golden.json": jsonOfReport(t, report.New([]result.Run{machine, board}, analysis.Options{AcrossMachines: true})),
	} {
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("the report differs from %s (-want +got); if it should, run go test -update:\n%s", golden, diff)
		}
	}
}

func parsed(t *testing.T, document []byte) any {
	t.Helper()
	v, err := oj.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// values are the values at a path of a parsed document.
func values(document any, path string) []any { return jp.MustParseString(path).Get(document) }

// The documents have what the model has, at its place. The goldens have the rest.
func TestJSONContent(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		if run.Trials[i].Status == result.OK {
			run.Trials[i].Timelines = []result.Timeline{{
				Group: "Memory", Name: "used", Unit: result.Bytes, At: []time.Duration{0, time.Second, 2 * time.Second}, Values: []float64{1, 5, 1},
			}}
		}
	}
	const metric = "benchmarks[0].metrics[0]"
	worst := func(target string) string { return metric + ".cells[?(@.target == '" + target + "')].worst_case" }
	for name, c := range map[string]struct {
		document []byte
		want     map[string]string // the values at a path
	}{
		"results in words": {jsonOfReport(t, reportOf("stated")), map[string]string{
			"benchmarks[0].conditions[*].name":                 "cpus",
			"benchmarks[0].statements[*].name":                 "outcome, words",
			"benchmarks[0].statements[0].values[*].value":      "runs, exec format error",
			"benchmarks[0].statements[0].values[1].targets[*]": "oci/runc",
		}},
		"suite": {jsonOfReport(t, reportOf("suite")), map[string]string{
			"run.images[*].name": "workload, mine.tar",
			"findings.broken_bounds[0]['benchmark','params','target','metric','unit','most','trials']": "limits.cpu.time, quota=0.1, containerd/runsc, CPULimitUse, ratio, 1.1, 10",
			"benchmarks[*].metrics[?(@.bound.most > 0)].name":                                          "CPULimitUse, Kill",
			"benchmarks[*].metrics[*].cells[?(@.bound_broken == true)].target":                         "containerd/runsc, containerd/runsc",
			"benchmarks[?(@.name == 'performance.network.bandwidth')].conditions[*].name":              "cpus, mtu, path, cpus, mtu, path",
			"not_measured[*].reasons[*].text":                                                          "bridged network: this host's kernel has no veth; load the module veth, image workload: no mirror answers; make it with touchstone image build, or load one",
		}},
		"engines": {jsonOfReport(t, reportOf("engines")), map[string]string{
			"benchmarks[0].layers[*].metric": "CreateAndRun, HostCPU",
			"benchmarks[0].layers[0].targets[?(@.target == 'docker/youki')].parts[1].layers[*]":    "runtime, shim and engine",
			"benchmarks[0].layers[0].targets[?(@.target == 'docker/youki')].parts[*].subtracted":   "false, true",
			"benchmarks[0].layers[0].targets[?(@.target == 'crio/runc')].blocks":                   "10",
			"benchmarks[0].components[0].targets[?(@.target == 'docker/runc')].components[*].name": "daemon, shim, runtime, network, container, other",
			"benchmarks[0].components[1].targets[?(@.target == 'oci/runc')].components[0].metric":  "PSSContainer",
			"benchmarks[0].outcomes[?(@.target == 'crio/runc')].phases[0].steps[*].name":           "RunPodSandbox, CreateContainer",
			"benchmarks[0].without_baseline[0]":                                                    "RunPodSandbox",
		}},
		"timelines": {jsonOf(t, run), map[string]string{
			"benchmarks[0].timelines[0]['group','unit']":                                                   "Memory, B",
			"benchmarks[0].timelines[0].targets[*].target":                                                 "native, oci/runc",
			"benchmarks[0].timelines[0].targets[0].lines[0]['name','n','first','min','mean','max','last']": "used, 3, 1, 1, 3, 5, 1",
		}},
		"trend": {jsonOfReport(t, reportOf("load")), map[string]string{
			metric + ".trend_per":                            "running container",
			metric + ".cells[0].trend.places":                "50",
			metric + ".cells[?(@.trend.knee.at > 0)].target": reporttest.KneeTarget,
		}},
		"worst case": {jsonOfReport(t, reportOf("latencies")), map[string]string{
			metric + ".cells[?(@.worst_case.samples > 0)].target":      "native, " + reporttest.BoundedTarget + ", " + reporttest.DriftingTarget + ", " + reporttest.ShortTarget,
			worst(reporttest.BoundedTarget) + ".samples":               "30000",
			worst(reporttest.BoundedTarget) + ".bounds[*].probability": "1e-05, 1e-06",
			worst(reporttest.BoundedTarget) + ".rarer_refusal":         "",
			worst(reporttest.ShortTarget) + ".refusal['test']":         "exceedances",
			worst(reporttest.ShortTarget) + ".bounds":                  "",
		}},
		// Bounds stay if rarer values have none. The reason has a field of its own: a document with refusal has no bounds.
		"rarer values without a bound": {jsonOfReport(t, reporttest.PartlyBounded()), map[string]string{
			worst(reporttest.BoundedTarget) + ".bounds[*].probability":                                    "1e-05",
			worst(reporttest.BoundedTarget) + ".refusal":                                                  "",
			worst(reporttest.BoundedTarget) + ".rarer_refusal['test','reason','advice','samples_needed']": "tail weight, " + reporttest.RarerRefused + ", take more samples, 60000",
		}},
	} {
		tree := parsed(t, c.document)
		for path, want := range c.want {
			var got []string
			for _, v := range values(tree, path) {
				got = append(got, fmt.Sprint(v))
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("%s: %s is %q, want %q", name, path, text, want)
			}
		}
	}
}

// The medians of the parts of a stack and the remainder add up to the whole.
func TestJSONOfLayersAddsUp(t *testing.T) {
	for _, stack := range values(parsed(t, jsonOfReport(t, reportOf("engines"))), "benchmarks[0].layers[0].targets[*]") {
		number := func(path string) (sum float64) {
			for _, v := range values(stack, path) {
				n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
				if err != nil {
					t.Fatal(err)
				}
				sum += n
			}
			return sum
		}
		if sum, total := number("parts[*].median")+number("remainder"), number("median"); math.Abs(sum-total) > 1e-9 || total == 0 {
			t.Errorf("the parts of %v and the remainder are %v, want %v", stack, sum, total)
		}
	}
}

// A cell has a median, or the reason for its absence.
func TestJSONOfGapsHasReasons(t *testing.T) {
	for path, document := range map[string][]byte{
		"benchmarks[*].metrics[*].cells[*]":           jsonOfReport(t, reportOf("sample")),
		"benchmarks[*].metrics[*].targets[*].runs[*]": jsonOfReport(t, reportOf("machines")),
	} {
		medians, reasons := 0, map[any]int{}
		for _, v := range values(parsed(t, document), path) {
			cell := v.(map[string]any)
			if (cell["median"] == nil) == (cell["reason"] == nil) {
				t.Errorf("a cell is %v; it must have a median or a reason", cell)
			}
			if cell["to_first_run"] != nil {
				t.Errorf("the absolute value of %v is compared without AcrossMachines", cell)
			}
			if cell["median"] != nil {
				medians++
			}
			reasons[cell["reason"]]++
		}
		if medians == 0 || len(reasons) < 3 {
			t.Errorf("there are %d medians, and the reasons %v", medians, reasons)
		}
	}
}

// The document has the note on an emulated CPU, and no verdict or p-value of speed unless they are asked for.
func TestJSONOfEmulatedCPU(t *testing.T) {
	run := reporttest.Sample()
	run.Host.Arch, run.Host.CPU, run.Host.Virtual = "amd64", "QEMU TCG CPU version 2.5+", "qemu (QEMU Standard PC)"
	for _, verdicts := range []bool{false, true} {
		got := parsed(t, jsonOfReport(t, report.New([]result.Run{run}, analysis.Options{EmulatedVerdicts: verdicts})))
		withheld := values(got, "benchmarks[*].metrics[*].cells[?(@.comparison.verdict == 'emulated')].comparison")
		slowdowns := values(got, "benchmarks[*].metrics[?(@.unit != 'B')].cells[?(@.comparison.verdict == 'slower')]")
		if (len(withheld) == 0) != verdicts || (len(slowdowns) > 0) != verdicts {
			t.Errorf("asked for %v: %d comparisons are withheld, and %d slower", verdicts, len(withheld), len(slowdowns))
		}
		for _, v := range withheld {
			if c := v.(map[string]any); c["p"] != nil || c["ratio"] == nil || c["word"] != "emulated" {
				t.Errorf("a comparison is %v", c)
			}
		}
		if e := fmt.Sprint(values(got, "emulation['certain','speed_verdicts']")); e != fmt.Sprint([]bool{true, verdicts}) {
			t.Errorf("asked for %v: the emulation is %s", verdicts, e)
		}
		if n := fmt.Sprint(values(got, "method.withheld")); !verdicts && n != fmt.Sprint([]int{len(withheld)}) {
			t.Errorf("withheld are %s, want %d", n, len(withheld))
		}
	}
}

// The number of CPUs changes the time of a report, and no number in it.
func TestJSONIsTheSameOnOneCPU(t *testing.T) {
	documents := map[int][]byte{}
	limit := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(limit)
	for _, cpus := range []int{1, 4} {
		runtime.GOMAXPROCS(cpus)
		documents[cpus] = jsonOf(t, reporttest.Sample())
	}
	if diff := cmp.Diff(string(documents[1]), string(documents[4])); diff != "" {
		t.Errorf("4 CPUs change the report (-1 +4):\n%s", diff)
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestJSONReturnsTheErrorOfTheWriter(t *testing.T) {
	if err := writeJSON(broken{}, single(reporttest.Small())); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v, want %v", err, errBroken)
	}
}

// Traces change no number of a report.
//
// Invariant traces-apart: No number of a report but the counts depends on a trace.
func TestTracesChangeNoNumber(t *testing.T) {
	var traced, reference map[string]any
	must.Do(t, json.Unmarshal(jsonOfReport(t, reportOf("traced")), &traced), json.Unmarshal(jsonOf(t, reporttest.Small()), &reference))
	if traced["traces"] == nil || reference["traces"] != nil {
		t.Errorf("the traces are %v and %v", traced["traces"], reference["traces"])
	}
	delete(traced, "traces")
	if diff := cmp.Diff(reference, traced); diff != "" {
		t.Errorf("traces change the report:\n%s", diff)
	}
}
