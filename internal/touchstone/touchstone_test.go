package touchstone_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/touchstone"
)

// descriptions are the descriptions of TouchStone's benchmarks in the catalogue.
var descriptions = sync.OnceValue(func() map[string]result.Benchmark {
	benchmarks := map[string]result.Benchmark{}
	for _, name := range append(touchstone.Benchmarks(), "operations.container.exec") {
		if b, ok := (catalogue.Catalogue{}).Lookup(name); ok {
			benchmarks[name] = b.Recorded()
		}
	}
	return benchmarks
})

func describe(name string) (result.Benchmark, bool) {
	b, ok := descriptions()[name]
	return b, ok
}

// TestCatalogueHasTouchStonesNames checks that each benchmark and each metric of TouchStone is in the catalogue, with a time as its unit.
func TestCatalogueHasTouchStonesNames(t *testing.T) {
	names := touchstone.Benchmarks()
	if len(names) != 12 {
		t.Errorf("TouchStone has %d benchmarks, want 12", len(names))
	}
	for _, name := range names {
		b, ok := describe(name)
		if !ok {
			t.Errorf("the catalogue has no %s", name)
			continue
		}
		for _, metric := range touchstone.Metrics(name) {
			if !slices.ContainsFunc(b.Metrics, func(m result.Metric) bool { return m.Name == metric && m.Unit == result.Seconds && !m.Series }) {
				t.Errorf("%s has no time %s", name, metric)
			}
		}
	}
}

func run() result.Run {
	memory, _ := describe("performance.memory.minavglatency")
	benchmark, _ := describe("operations.container.exec")
	trial := func(seq int, target string, change func(*result.Trial)) result.Trial {
		t := result.Trial{Seq: seq, Cell: result.Cell{Benchmark: memory.Name, Target: target}, Block: seq, Status: result.OK, Samples: []result.Sample{
			{Metric: "MinLatency", Value: 0.00025 * float64(seq)}, {Metric: "AvgLatency", Value: 0.0005},
		}}
		change(&t)
		return t
	}
	noChange := func(*result.Trial) {}
	return result.Run{
		ID: "r", Name: "n", State: result.Complete, Targets: []result.Target{{Name: "native"}, {Name: "containerd/runc"}, {Name: "crio/runsc@platform=systrap"}},
		Bench: []result.Benchmark{benchmark, memory},
		Trials: []result.Trial{
			trial(1, "containerd/runc", func(t *result.Trial) { t.Warmup = true }),
			trial(2, "containerd/runc", noChange),
			trial(3, "containerd/runc", func(t *result.Trial) { t.Status, t.Samples = result.Failed, nil }),
			trial(4, "containerd/runc", noChange),
			trial(5, "crio/runsc@platform=systrap", func(t *result.Trial) { t.Status, t.Samples = result.Skipped, nil }),
			trial(6, "native", noChange),
		},
	}
}

func TestEncode(t *testing.T) {
	got, left, err := touchstone.Encode(run())
	must.Do(t, err)
	const want = `[{"cri":"containerd","oci":"runc","results":[{"name":"performance.memory.minavglatency",` +
		`"aggregated":{"AvgLatency":0.5,"MinLatency":0.75},"reports":[{"AvgLatency":0.5,"MinLatency":0.5},{"AvgLatency":0.5,"MinLatency":1}]}]},` +
		`{"cri":"crio","oci":"runsc@platform=systrap","results":[{"name":"performance.memory.minavglatency","aggregated":null,"reports":[]}]}]` + "\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(left, []string{"operations.container.exec"}) {
		t.Errorf("left out %q", left)
	}
}

// TestDecodeReadsWhatEncodeWrites also checks that an imported run is valid, and that equal entries have different IDs.
func TestDecodeReadsWhatEncodeWrites(t *testing.T) {
	line, _, err := touchstone.Encode(run())
	must.Do(t, err)
	line = []byte(strings.Replace(string(line), `,{"cri":"crio"`, "]\n"+`[{"cri":"crio"`, 1)) // two lists
	line = bytes.Replace(line, []byte(`"aggregated":null,"reports":[]`), []byte(`"reports":[{"MinLatency":2}]`), 1)
	runs, err := touchstone.Decode(slices.Concat(line, line), "name", describe)
	must.Do(t, err)
	var got []string
	ids := map[string]bool{}
	for _, r := range runs {
		must.Do(t, r.Validate())
		if ids[r.ID] || r.Host.Hostname != result.UnknownHost || len(r.Caveats) != 1 {
			t.Errorf("run %s of %s has the caveats %q", r.ID, r.Host.Hostname, r.Caveats)
		}
		ids[r.ID] = true
		for _, trial := range r.Trials {
			got = append(got, fmt.Sprint(trial.Target, " ", trial.Status, " ", trial.Block, " ", trial.Values("MinLatency"), trial.Values("AvgLatency")))
		}
	}
	lines := []string{"containerd/runc ok 0 [0.0005] [0.0005]", "containerd/runc ok 1 [0.001] [0.0005]", "crio/runsc@platform=systrap ok 0 [0.002] []"}
	if diff := cmp.Diff(slices.Concat(lines, lines), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeBoundsAFile(t *testing.T) {
	entries := strings.Repeat(`{"cri":"a","oci":"b","results":[{"name":"performance.cpu.time","reports":[{"TotalTime":1}]}]},`, 1001)
	reports := strings.Repeat(`{},`, 100_001)
	for _, c := range []struct{ name, text, want string }{
		{"entries", "[" + strings.TrimSuffix(entries, ",") + "]", "more than 1000 entries"},
		{"reports", `[{"cri":"a","oci":"b","results":[{"name":"performance.cpu.time","reports":[` + strings.TrimSuffix(reports, ",") + `]}]}]`, "more than 100000 reports"},
		{"size", "[" + strings.Repeat(" ", touchstone.MaxSize) + "]", "longer than"},
		{"depth", strings.Repeat("[", 100_000), "TouchStone's JSON"},
		{"a number beyond all numbers", `[{"cri":"a","oci":"b","results":[{"name":"performance.cpu.time","reports":[{"TotalTime":1e999}]}]}]`, "cannot unmarshal number"},
	} {
		if _, err := touchstone.Decode([]byte(c.text), "n", describe); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.want)
		}
	}
}

// FuzzDecode checks that each file is refused, or gives valid runs.
func FuzzDecode(f *testing.F) {
	line, _, err := touchstone.Encode(run())
	must.Do(f, err)
	f.Add(line)
	f.Add([]byte(`[{"CRI":"containerd","OCI":"runc","Results":[{"Name":"operations.container.lifecycle","Reports":[{"Create":0,"Start":1}]}]}][]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, err := touchstone.Decode(data, "n", describe)
		if err != nil {
			return
		}
		for _, r := range runs {
			must.Do(t, r.Validate())
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		}
	})
}
