package summary_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/summary"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/text"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// written is the summary of a run for a terminal of a width.
func written(t *testing.T, run result.Run, width int) string {
	t.Helper()
	run.Seed = 1 // the same bootstraps whatever the seed of the run
	r := report.New([]result.Run{run}, analysis.Options{})
	var b bytes.Buffer
	must.Do(t, text.Write(&b, summary.Document(&r, summary.Options{Width: width, Command: "touchstone report", Page: "out/report.html"}), text.Options{Width: width}))
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, run := range map[string]result.Run{
		"sample": reporttest.Sample(), "engines": reporttest.Engines(), "suite": reporttest.Suite(), "small": reporttest.Small(), "stated": reporttest.Stated(),
		"emulated": reporttest.Machines()[1],
	} {
		t.Run(name, func(t *testing.T) {
			file, got := filepath.Join("testdata", name+".golden"), written(t, run, 80)
			if *update {
				must.Do(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the summary differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
			}
		})
	}
}

// Invariant one-screen: The summary of the demo fits 24 lines of 80 columns.
func TestOneScreen(t *testing.T) {
	run := reporttest.Engines()
	targets := []string{"native", "oci/runc", "oci/crun", "oci/runsc@platform=systrap", "containerd/runc", "crio/runc", "docker/runc", "podman/runc"}
	run.Targets = slices.DeleteFunc(run.Targets, func(t result.Target) bool { return !slices.Contains(targets, t.Name) })
	run.Trials = slices.DeleteFunc(run.Trials, func(t result.Trial) bool { return !slices.Contains(targets, t.Target) })
	run.Host.Warnings = []string{"the load average is 6.32 on 2 CPUs before the run: other programs are busy and take CPU time; stop them or wait"}
	got := written(t, run, 80)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("the summary has %d lines, and a terminal 24:\n%s", len(lines), got)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("a line has %d columns, and a terminal 80: %s", n, line)
		}
	}
	for _, target := range targets {
		if !strings.Contains(got, "\n"+target+" ") {
			t.Errorf("the summary has no row of %s:\n%s", target, got)
		}
	}
	for _, part := range []string{"! The load average is 6.32 on 2 CPUs", "touchstone report", "page out/report.html"} {
		if !strings.Contains(got, part) {
			t.Errorf("the summary lacks %q:\n%s", part, got)
		}
	}
}

// The legend has the number of blocks that cells without a verdict need, and the reason of cells without a ratio.
func TestMissingVerdicts(t *testing.T) {
	for want, change := range map[string]func(*result.Trial) bool{
		"? too few blocks, needs 10": func(trial *result.Trial) bool { return trial.Block >= 7 },
		"÷ no ratio, a value is not positive": func(trial *result.Trial) bool {
			for i := range trial.Samples {
				if trial.Target == "oci/crun" {
					trial.Samples[i].Value = 0
				}
			}
			return false
		},
	} {
		run := reporttest.Engines()
		run.Trials = slices.Clone(run.Trials)
		for i := range run.Trials {
			run.Trials[i].Samples = slices.Clone(run.Trials[i].Samples)
		}
		run.Trials = lists.Filter(run.Trials, func(trial result.Trial) bool { return !change(&trial) })
		if got := written(t, run, 120); !strings.Contains(got, want) {
			t.Errorf("the summary lacks %q:\n%s", want, got)
		}
	}
}
