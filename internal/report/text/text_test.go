package text_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/text"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func written(t *testing.T, run result.Run, opts text.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.Write(&b, report.New(run, report.Options{Seed: 1}), opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, c := range map[string]struct {
		run  result.Run
		opts text.Options
	}{
		"sample-100": {reporttest.Sample(), text.Options{Width: 100}},
		"sample-80":  {reporttest.Sample(), text.Options{Width: 80}},
		"engines":    {reporttest.Engines(), text.Options{Width: 100}},
		"suite":      {reporttest.Suite(), text.Options{Width: 80}},
		"small":      {reporttest.Small(), text.Options{}},
		"color":      {reporttest.Small(), text.Options{Color: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := written(t, c.run, c.opts)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the report differs from %s (-want +got); if it should, run go test -update:\n%s", golden, diff)
			}
		})
	}
}

// TestFits holds what can be broken to the terminal's width.
func TestFits(t *testing.T) {
	models := map[string]report.Model{}
	for name, run := range map[string]result.Run{"sample": reporttest.Sample(), "engines": reporttest.Engines(), "suite": reporttest.Suite()} {
		models[name] = report.New(run, report.Options{Seed: 1})
	}
	for _, width := range []int{60, 80, 100, 120, 160} {
		for name, m := range models {
			var b bytes.Buffer
			if err := text.Write(&b, m, text.Options{Width: width}); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(b.String(), "\n") {
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%s: at a width of %d a line has %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

// TestStepsStandBehindTheirPhase holds that steps which are no metrics have columns of their own.
func TestStepsStandBehindTheirPhase(t *testing.T) {
	run := reporttest.Engines()
	for i := range run.Trials {
		tr := &run.Trials[i]
		for j := range tr.Phases {
			tr.Phases[j].Name = strings.Replace(tr.Phases[j].Name, "/RunPodSandbox", "/Sandbox", 1)
		}
	}
	got := written(t, run, text.Options{Width: 160})
	_, table, _ := strings.Cut(got, "Phases, median")
	for _, line := range strings.Split(table, "\n") {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "create" {
			if f[1] != "/Sandbox" || f[2] != "start" {
				t.Errorf("the columns of the phases are %q", f)
			}
			return
		}
	}
	t.Errorf("there is no table of phases:\n%s", got)
}

func TestNoControlCharacterOfTheRunReachesTheTerminal(t *testing.T) {
	run := reporttest.Small()
	bad := "\x1b]0;owned\a\x1b[2J\u009b"
	run.Name += bad
	run.Host.CPU += bad
	run.Bench[0].Summary += bad
	run.Targets[1].Name += bad
	run.Limits = []string{bad}
	run.Images = []result.Image{{Name: bad, Digest: bad}, {Name: bad + "2", Unavailable: bad}}
	run.Bench[0].Metrics[0].Bound = result.Bound{Most: -1, Broken: bad}
	for i := range run.Trials {
		run.Trials[i].Conditions = map[string]string{bad: bad}
		if run.Trials[i].Target != "native" {
			run.Trials[i].Target += bad
		}
	}
	run.Trials[8].Status, run.Trials[8].Reason, run.Trials[8].Samples = result.Failed, bad, nil
	for _, r := range written(t, run, text.Options{}) {
		if r < ' ' && r != '\n' || 0x7f <= r && r < 0xa0 {
			t.Fatalf("the report has the control character %U", r)
		}
	}
}

func TestOddRuns(t *testing.T) {
	for name, run := range reporttest.Odd() {
		t.Run(name, func(t *testing.T) {
			got := written(t, run, text.Options{})
			if !strings.Contains(got, "Findings") || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("the report of it is\n%s", got)
			}
		})
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteGivesTheWritersError(t *testing.T) {
	if err := text.Write(broken{}, report.Model{}, text.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
}
