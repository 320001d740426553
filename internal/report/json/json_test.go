package reportjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/report"
	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// single is the report of one run, with the same bootstraps whatever the seed of the run.
func single(run result.Run) report.Report {
	run.Seed = 1
	return report.New([]result.Run{run}, report.Options{})
}

func written(t *testing.T, run result.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := reportjson.Write(&b, single(run)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	const golden = "testdata/small.golden.json"
	got := written(t, reporttest.Small())
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

// The number of CPUs changes the time of a report, and no number in it.
func TestDocumentIsTheSameOnOneCPU(t *testing.T) {
	documents := map[int][]byte{}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, cpus := range []int{1, 4} {
		runtime.GOMAXPROCS(cpus)
		documents[cpus] = written(t, reporttest.Sample())
	}
	if diff := cmp.Diff(string(documents[1]), string(documents[4])); diff != "" {
		t.Errorf("4 CPUs change the report (-1 +4):\n%s", diff)
	}
}

func TestDocumentAgreesWithTheReport(t *testing.T) {
	var doc struct {
		Schema     int    `json:"schema_version"`
		Kind       string `json:"kind"`
		Benchmarks []struct {
			Name    string
			Metrics []struct {
				Name  string
				Cells []struct {
					Target     string
					Reason     string
					Median     *float64
					Comparison *struct{ Verdict, Word string }
				}
			}
		}
	}
	if err := json.Unmarshal(written(t, reporttest.Sample()), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != reportjson.SchemaVersion || doc.Kind != reportjson.Kind {
		t.Errorf("the document is version %d of %q", doc.Schema, doc.Kind)
	}
	var medians, reasons, more int
	for _, b := range doc.Benchmarks {
		for _, m := range b.Metrics {
			for _, c := range m.Cells {
				if (c.Median == nil) != (c.Reason != "") {
					t.Errorf("%s %s on %s has the median %v and the reason %q; it must have one of them", b.Name, m.Name, c.Target, c.Median, c.Reason)
				}
				if c.Median != nil {
					medians++
				} else {
					reasons++
				}
				if c.Comparison != nil && c.Comparison.Verdict == "slower" && c.Comparison.Word == "more" {
					more++
				}
			}
		}
	}
	if medians == 0 || reasons == 0 || more == 0 {
		t.Errorf("there are %d medians, %d reasons and %d cells with more bytes; want some of each", medians, reasons, more)
	}
}

// Results in words are beside the conditions.
func TestStatements(t *testing.T) {
	var doc struct {
		Benchmarks []struct{ Statements, Conditions []report.Condition }
	}
	if err := json.Unmarshal(written(t, reporttest.Stated()), &doc); err != nil {
		t.Fatal(err)
	}
	b := doc.Benchmarks[0]
	if len(b.Conditions) != 1 || len(b.Statements) != 2 || b.Statements[0].Name != "outcome" || len(b.Statements[0].Values) != 2 {
		t.Errorf("the statements are %+v, the conditions %+v", b.Statements, b.Conditions)
	}
}

// Documents have breaches, conditions and unmeasured benchmarks, like the other reports.
func TestSuite(t *testing.T) {
	var doc struct {
		Run      struct{ Images []result.Image }
		Findings struct {
			Breaches []struct {
				Benchmark, Params, Target, Metric, Unit, Text string
				Median, Most                                  float64
				Trials                                        int
			} `json:"broken_bounds"`
		}
		Benchmarks []struct {
			Name, Params string
			Conditions   []report.Condition
			Metrics      []struct {
				Name  string
				Bound result.Bound
				Cells []struct {
					Target   string
					Breached bool `json:"bound_broken"`
				}
			}
		}
		Unmeasured []report.Unmeasured          `json:"not_measured"`
		Missing    []struct{ Benchmark string } `json:"without_a_number"`
	}
	if err := json.Unmarshal(written(t, reporttest.Suite()), &doc); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reporttest.Suite().Images, doc.Run.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if len(doc.Findings.Breaches) != 2 {
		t.Fatalf("broken are %+v", doc.Findings.Breaches)
	}
	b := doc.Findings.Breaches[0]
	if b.Benchmark != "limits.cpu.time" || b.Params != "quota=0.1" || b.Target != "containerd/runsc" || b.Metric != "CPULimitUse" || b.Unit != "ratio" ||
		b.Most != 1.1 || b.Median < 9 || b.Trials != 10 || !strings.HasPrefix(b.Text, "limits.cpu.time quota=0.1: containerd/runsc does not hold its CPU limit: CPULimitUse is 9") {
		t.Errorf("broken is %+v", b)
	}
	breached, bounds := 0, 0
	for _, b := range doc.Benchmarks {
		for _, m := range b.Metrics {
			if m.Bound.Broken != "" {
				bounds++
			}
			for _, c := range m.Cells {
				if c.Breached {
					breached++
				}
			}
		}
		if b.Name == "performance.network.bandwidth" && len(b.Conditions) != 3 {
			t.Errorf("the conditions of %s are %+v", b.Name, b.Conditions)
		}
	}
	if breached != 2 || bounds != 2 {
		t.Errorf("%d metrics have a bound, and %d cells break one; want 2 of both", bounds, breached)
	}
	if len(doc.Unmeasured) != 2 || len(doc.Unmeasured[0].Benchmarks) != 4 || len(doc.Missing) != 35 {
		t.Errorf("not measured are %+v; %d cells are without a number", doc.Unmeasured, len(doc.Missing))
	}
}

func TestEnginesHaveLayersAndComponents(t *testing.T) {
	type value struct {
		Median   *float64
		Interval *struct{ Lo, Hi float64 }
	}
	var doc struct {
		Findings struct {
			NotMeasured string `json:"not_measured"`
		}
		Benchmarks []struct {
			Unbased  []string `json:"without_baseline"`
			Outcomes []struct {
				Target string
				Phases []struct {
					Name  string
					Steps []struct{ Name string }
				}
			}
			Layers []struct {
				Metric  string
				Targets []struct {
					value
					Target    string
					Blocks    int
					Remainder *float64
					Parts     []struct {
						value
						Layers     []string
						Subtracted bool
					}
				}
			}
			Components []struct {
				Title   string
				Targets []struct {
					Target     string
					Together   value
					Components []struct {
						value
						Name, Metric string
					}
				}
			}
		}
	}
	if err := json.Unmarshal(written(t, reporttest.Engines()), &doc); err != nil {
		t.Fatal(err)
	}
	b := doc.Benchmarks[0]
	if len(b.Layers) != 2 || b.Layers[0].Metric != "CreateAndRun" || len(b.Layers[0].Targets) != 21 {
		t.Fatalf("the layers are %+v", b.Layers)
	}
	for _, s := range b.Layers[0].Targets {
		if s.Blocks != 10 || s.Median == nil || s.Interval == nil || s.Remainder == nil {
			t.Fatalf("%s is %+v", s.Target, s)
		}
		sum := *s.Remainder
		for _, p := range s.Parts {
			if p.Interval == nil || len(p.Layers) == 0 {
				t.Errorf("a part of %s is %+v", s.Target, p)
			}
			sum += *p.Median
		}
		if math.Abs(sum-*s.Median) > 1e-9 {
			t.Errorf("the parts of %s and the remainder are %v, want %v", s.Target, sum, *s.Median)
		}
		if s.Target == "docker/youki" {
			if want := []string{"runtime", "shim and engine"}; !slices.Equal(s.Parts[1].Layers, want) || !s.Parts[1].Subtracted {
				t.Errorf("the second part of docker/youki is %+v, want a difference of %q", s.Parts[1], want)
			}
		}
	}
	if len(b.Components) != 2 || len(b.Components[0].Targets) != 21 {
		t.Fatalf("the components are %+v", b.Components)
	}
	for _, r := range b.Components[0].Targets {
		if r.Together.Median == nil || len(r.Components) == 0 || !strings.HasPrefix(r.Components[0].Metric, "HostCPU") {
			t.Errorf("the CPU time of %s is %+v", r.Target, r)
		}
	}
	if !slices.Contains(b.Unbased, "RunPodSandbox") || !strings.Contains(doc.Findings.NotMeasured, "; crio/runsc@platform=ptrace, crio/runsc") {
		t.Errorf("without a baseline are %q, not measured is %q", b.Unbased, doc.Findings.NotMeasured)
	}
	for _, o := range b.Outcomes {
		if o.Target == "crio/runc" && (len(o.Phases) != 5 || len(o.Phases[0].Steps) != 2 || o.Phases[0].Steps[0].Name != "RunPodSandbox") {
			t.Errorf("the phases of crio/runc are %+v", o.Phases)
		}
	}
}

// TestOddRuns holds that what is no number is no reason to fail: encoding/json refuses NaN.
func TestOddRuns(t *testing.T) {
	for name, run := range reporttest.Odd() {
		t.Run(name, func(t *testing.T) {
			if got := written(t, run); !json.Valid(got) {
				t.Errorf("this is not JSON:\n%s", got)
			}
		})
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteReturnsTheErrorOfTheWriter(t *testing.T) {
	if err := reportjson.Write(broken{}, report.Report{}); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
}

func TestTimelines(t *testing.T) {
	run := reporttest.Small()
	for i := range run.Trials {
		if run.Trials[i].Status == result.OK {
			run.Trials[i].Timelines = []result.Timeline{{
				Group: "Memory", Name: "used", Unit: result.Bytes, At: []time.Duration{0, time.Second, 2 * time.Second}, Values: []float64{1, 5, 1},
			}}
		}
	}
	var out strings.Builder
	if err := reportjson.Write(&out, report.New([]result.Run{run}, report.Options{})); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Benchmarks []struct {
			Timelines []struct {
				Group, Unit string
				Targets     []struct {
					Target string
					Trial  int
					Lines  []map[string]any
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &document); err != nil {
		t.Fatal(err)
	}
	lines := document.Benchmarks[0].Timelines
	if len(lines) != 1 || lines[0].Group != "Memory" || lines[0].Unit != "B" || len(lines[0].Targets) != 2 || lines[0].Targets[0].Trial == 0 {
		t.Fatalf("timelines: %+v", lines)
	}
	want := map[string]any{"name": "used", "n": 3.0, "first": 1.0, "min": 1.0, "mean": 3.0, "max": 5.0, "last": 1.0}
	if diff := cmp.Diff([]map[string]any{want}, lines[0].Targets[0].Lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The document has the note on an emulated CPU, and no verdict or p-value of speed unless they are asked for.
func TestEmulated(t *testing.T) {
	run := reporttest.Sample()
	run.Host.Arch, run.Host.CPU, run.Host.Virtual = "amd64", "QEMU TCG CPU version 2.5+", "qemu (QEMU Standard PC)"
	var doc struct {
		Emulation struct {
			Runs          []int
			Certain       bool
			SpeedVerdicts bool `json:"speed_verdicts"`
			Note          string
		}
		Method     struct{ Withheld int }
		Findings   struct{ Withheld string }
		Benchmarks []struct {
			Metrics []struct {
				Unit  result.Unit
				Cells []struct {
					Comparison *struct {
						Ratio   *float64
						P       *float64
						Verdict string
						Word    string
					}
				}
			}
		}
	}
	read := func(opts report.Options) (verdicts map[string]int) {
		t.Helper()
		var b bytes.Buffer
		if err := reportjson.Write(&b, report.New([]result.Run{run}, opts)); err != nil {
			t.Fatal(err)
		}
		doc.Method.Withheld, doc.Findings.Withheld, doc.Benchmarks = 0, "", nil
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		verdicts = map[string]int{}
		for _, bench := range doc.Benchmarks {
			for _, m := range bench.Metrics {
				for _, c := range m.Cells {
					if k := c.Comparison; k != nil {
						if m.Unit != result.Bytes {
							verdicts[k.Verdict]++
						}
						if k.Verdict == "emulated" && (k.P != nil || k.Ratio == nil || k.Word != "emulated") {
							t.Errorf("a comparison is %+v", *k)
						}
					}
				}
			}
		}
		return verdicts
	}
	got := read(report.Options{})
	if got["emulated"] == 0 || got["emulated"] != doc.Method.Withheld || got["slower"]+got["faster"] > 0 || doc.Findings.Withheld == "" {
		t.Errorf("the verdicts are %v; withheld are %d, %q", got, doc.Method.Withheld, doc.Findings.Withheld)
	}
	if e := doc.Emulation; !slices.Equal(e.Runs, []int{0}) || !e.Certain || e.SpeedVerdicts || !strings.HasPrefix(e.Note, "The CPU of this machine is emulated") {
		t.Errorf("the emulation is %+v", e)
	}
	asked := read(report.Options{EmulatedVerdicts: true})
	if asked["emulated"] != 0 || asked["slower"] == 0 || !doc.Emulation.SpeedVerdicts || doc.Method.Withheld != 0 {
		t.Errorf("with EmulatedVerdicts the verdicts are %v, and the emulation is %+v", asked, doc.Emulation)
	}
}
