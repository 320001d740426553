package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// guestsVariable selects benchmarks for TestGuests: names or their first components, with commas.
const guestsVariable = "LAB_GUESTS"

// guestsItem is a line of the plan with the name of a benchmark.
var guestsItem = regexp.MustCompile(`^  - (?:\{name: )?([a-z0-9.]+)`)

// selected returns the plan with the benchmarks that match one of the filters. --filter would drop their parameters.
func selected(text []byte, filters []string) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		name := guestsItem.FindSubmatch(line)
		// A name can be the beginning of another one: isolation.memory.
		matches := func(f string) bool { return bench.Matches(f, string(name[1])) || bench.Matches(string(name[1]), f) }
		if name == nil || slices.ContainsFunc(filters, matches) {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// The plan has every benchmark once, and a part of it is a plan.
func TestGuestsPlan(t *testing.T) {
	text := read(t, filepath.Join("testdata", guestsPlan))
	names := func(text []byte) (all []string) {
		p, err := plan.Parse(guestsPlan, text)
		if err != nil {
			t.Fatal(err)
		}
		work, err := p.Resolve(catalogue.Catalogue{})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range work {
			all = append(all, w.Benchmark.Name)
		}
		return all
	}
	var want []string
	for _, b := range (catalogue.Catalogue{}).All() {
		want = append(want, b.Name)
	}
	if diff := cmp.Diff(want, names(text)); diff != "" {
		t.Errorf("the benchmarks of the plan (-want +got):\n%s", diff)
	}
	part := names(selected(text, []string{"limits", "performance.cpu.time"}))
	if want := []string{"performance.cpu.time", "limits.cpu.time", "limits.cpu.scaling", "limits.memory.oom"}; !slices.Equal(part, want) {
		t.Errorf("the part has the benchmarks %q, want %q", part, want)
	}
}

const (
	guestsPlan = "guests.yaml"
	// guestsMemory is in MiB. Eight guests run at once.
	guestsMemory = 6144
	// guestsLimit is for all benchmarks on two CPUs.
	guestsLimit = 3 * time.Hour
)

// TestGuests runs benchmarks of the plan guests.yaml, which has all of them, on the targets with virtual machines, and keeps the export
// for the matrix in docs/benchmarks.md. It takes more than an hour, so that only scripts/workload-matrix.sh runs it. A failed trial is a
// result with its reason.
func TestGuests(t *testing.T) {
	filter := os.Getenv(guestsVariable)
	if filter == "" {
		t.Skipf("runs every benchmark in a virtual machine, but %s is not set: run scripts/workload-matrix.sh guests", guestsVariable)
	}
	dir := built(t)
	withKata(t, dir)
	l, m := open(t), V2()
	m.Memory = guestsMemory
	image, err := l.Build(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	work := append(installKata(), loadImage(dir, m)...)
	work = append(work, exported("guests", guestsLimit, "-f", job.Dir+"/"+guestsPlan)...)
	files := inputs(t, dir, m, work)
	addKata(t, l, dir, image, files)
	files[guestsPlan] = filepath.Join(t.TempDir(), guestsPlan)
	if err := os.WriteFile(files[guestsPlan], selected(read(t, filepath.Join("testdata", guestsPlan)), strings.Split(filter, ",")), 0o644); err != nil {
		t.Fatal(err)
	}
	out := outOf(t, "guests")
	report, err := l.Boot(t.Context(), m, image, nestedJob("guests", work), files, Options{Out: out, Emulated: true, Limit: guestsLimit + usualLimit})
	if err != nil {
		t.Fatal(err)
	}
	const someFailed = 3
	if run := report.Step("guests"); run.Code == someFailed && run.Error == "" {
		t.Log(run.Output)
		run.Code = 0
	}
	checkSteps(t, report)
	for _, trial := range decode(t, filepath.Join(out, "guests.json")).Trials {
		t.Logf("%s on %s is %s %s", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
	}
}
