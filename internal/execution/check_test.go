package execution

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
)

// Work that does not fit on the machine is named before anything is opened.
func TestLackIsNamedBeforeTheRun(t *testing.T) {
	needs := func(n bench.Needs) func(bench.Params) bench.Needs { return func(bench.Params) bench.Needs { return n } }
	work := []plan.Work{
		{Benchmark: bench.Benchmark{Name: "a.fits.x", Needs: needs(bench.Needs{Memory: 1 << 30, CPUs: 2})}},
		{Benchmark: bench.Benchmark{Name: "a.large.x", Needs: needs(bench.Needs{Memory: 8 << 30})}, Params: bench.Params{"n": "9"}},
		{Benchmark: bench.Benchmark{Name: "a.nothing.x"}},
		{Benchmark: bench.Benchmark{Name: "a.wide.x", Needs: needs(bench.Needs{CPUs: 3})}},
	}
	got := lacking(work, guard.Supply{
		CPUs:   2,
		Memory: func() (guard.Amount, error) { return guard.Amount{Free: 6 << 30, Total: 8 << 30}, nil },
	})
	want := []string{
		"a.large.x n=9 is skipped: memory: it needs 8.0 GiB (programs with 8.0 GiB), and the host has 5.6 GiB above its reserve of 409.6 MiB: 2.4 GiB are missing; " +
			"free memory, or set smaller parameters",
		"a.wide.x is skipped: CPUs: it needs 3, and containers have 2; pin less, set smaller parameters, or use a larger machine",
	}
	expect.Equal(t, "notes", want, got)
}

func TestResumeRequiresSameImages(t *testing.T) {
	images := []result.Image{{Name: "workload", Digest: "sha256:1"}, {Name: "mine", Unavailable: "no"}}
	for name, tt := range map[string]struct {
		now []result.Image
		err string
	}{
		"the same":         {slices.Clone(images), ""},
		"one more":         {append(slices.Clone(images), result.Image{Name: "more"}), ""},
		"another digest":   {[]result.Image{{Name: "workload", Digest: "sha256:2"}}, "image workload was sha256:1 when the run started and is sha256:2 now"},
		"none":             {nil, "image workload was available when the run started and is not available now"},
		"unavailable":      {[]result.Image{{Name: "workload", Unavailable: "no"}}, "is not available now"},
		"available now":    {[]result.Image{images[0], {Name: "mine", Digest: "sha256:3"}}, ""},
		"in another order": {[]result.Image{images[1], images[0]}, ""},
	} {
		err := sameImages(images, tt.now)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
	}
}

// A run is not continued under other settings of the machine.
func TestResumeOnATunedMachine(t *testing.T) {
	if !isRoot() {
		t.Skip("only root can read the tuning of a machine")
	}
	facts := host.Facts("/")
	run := result.Run{ID: "x", State: result.Interrupted, Host: facts, Plan: "version: 1\ntargets: [native]\nbenchmarks: [operations]\n"}
	if _, err := ResumedPlan(run); err != nil {
		t.Errorf("with equal settings: %v", err)
	}
	run.Host.Tuned = []result.Tuned{{Setting: "ksm", Before: "1", After: "3"}}
	if _, err := ResumedPlan(run); err == nil || !strings.Contains(err.Error(), "was made tuned (ksm from 1 to 3), and the machine is now ") {
		t.Errorf("with another setting: %v", err)
	}
	run.Host.Root = false
	if _, err := ResumedPlan(run); err != nil {
		t.Errorf("a run without root, whose tuning is unknown: %v", err)
	}
}
