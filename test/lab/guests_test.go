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
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// guestsVariable selects benchmarks for TestGuests: names or their first components, with commas.
const guestsVariable = "LAB_GUESTS"

// guestsItem is a line of the plan with the name of a benchmark.
var guestsItem = regexp.MustCompile(`^  - (?:\{name: )?([a-z0-9.]+)`)

// selected returns the plan with the benchmarks that match a filter. --filter would drop their parameters.
func selected(text []byte, filter string) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		name := guestsItem.FindSubmatch(line)
		// A name can be the beginning of another one: isolation.memory.
		if name == nil || bench.Matches(filter, string(name[1])) || bench.Matches(string(name[1]), filter) {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// The plan has every benchmark once, and a part of it is a plan.
func TestGuestsPlan(t *testing.T) {
	text := read(t, filepath.Join("testdata", guestsPlan))
	names := func(text []byte) (list []string) {
		p, err := plan.Parse(guestsPlan, text)
		must.Do(t, err)
		work, err := p.Resolve(catalogue.Catalogue{})
		must.Do(t, err)
		for _, w := range work {
			list = append(list, w.Benchmark.Name)
		}
		return list
	}
	var want []string
	for _, b := range (catalogue.Catalogue{}).All() {
		if !strings.HasPrefix(b.Name, "pods.") { // they need a cluster
			want = append(want, b.Name)
		}
	}
	if diff := cmp.Diff(want, names(text)); diff != "" {
		t.Errorf("the benchmarks of the plan (-want +got):\n%s", diff)
	}
	for filter, want := range map[string][]string{
		"limits":                   {"limits.cpu.time", "limits.cpu.scaling", "limits.memory.oom"},
		"performance.cpu.time":     {"performance.cpu.time"},
		"isolation.memory.reclaim": {"isolation.memory", "isolation.memory.reclaim"},
	} {
		if part := names(selected(text, filter)); !slices.Equal(part, want) {
			t.Errorf("the part for %s has the benchmarks %q, want %q", filter, part, want)
		}
	}
}

const (
	guestsPlan = "guests.yaml"
	// guestsMemory is in MiB. Eight guests run at once.
	guestsMemory = 6144
	// guestsLimit is for the longest suite on two CPUs.
	guestsLimit = 3 * time.Hour
)

// TestGuests runs benchmarks of the plan guests.yaml, which has all of them, on the targets with virtual machines, and keeps the exports
// for the matrix in docs/benchmarks/matrix.md. Each item of the filter has a boot and an export of its own, so that the others survive the loss of
// a machine. It takes hours, so that only scripts/workload-matrix.sh runs it. A failed trial is a result with its reason.
func TestGuests(t *testing.T) {
	filter := os.Getenv(guestsVariable)
	if filter == "" {
		t.Skipf("runs every benchmark in a virtual machine, but %s is not set: run scripts/workload-matrix.sh guests", guestsVariable)
	}
	dir := built(t)
	kata := withKata(t, dir)
	// Ten guests boot at once on two emulated CPUs.
	mergeTables(kata.values, map[string]any{"agent": map[string]any{"kata": map[string]any{"dial_timeout": int64(600)}}})
	l := open(t)
	for item := range strings.SplitSeq(filter, ",") {
		t.Run(item, func(t *testing.T) { guests(t, l, dir, kata, item) })
	}
}

// guests runs the benchmarks of an item of the filter in a machine.
func guests(t *testing.T, l *Lab, dir string, kata kataParts, item string) {
	m := nestedMachine()
	m.Memory = guestsMemory
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	work := append(kata.install(), loadImage(dir, m)...)
	work = append(work, exported("guests", guestsLimit, "-f", job.Dir+"/"+guestsPlan)...)
	files := inputs(t, dir, m, work)
	kata.add(t, files)
	files[guestsPlan] = filepath.Join(t.TempDir(), guestsPlan)
	must.Do(t, os.WriteFile(files[guestsPlan], selected(read(t, filepath.Join("testdata", guestsPlan)), item), 0o644))
	out := outOf(t, "guests-"+item)
	report, err := l.Boot(t.Context(), m, image, nestedJob("guests", work), files, Options{Out: out, Emulated: true, Limit: guestsLimit + usualLimit})
	must.Do(t, err)
	t.Log(report.Step("guests").Output)
	allowFailures(report, "guests")
	checkSteps(t, report)
	for _, trial := range decode(t, filepath.Join(out, "guests.json")).Trials {
		t.Logf("%s on %s is %s %s", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
	}
}
