package catalogue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// placed is a fake engine with programs on the host. Without programs it is like bare metal.
type placed struct {
	engine.Engine
	programs []string
	err      error
}

func (e placed) Programs() ([]string, error) { return e.programs, e.err }

// daemonized is an engine with a daemon.
type daemonized struct {
	placed
	daemon engine.Daemon
}

func (e daemonized) Daemon() engine.Daemon { return e.daemon }

// installed executes footprint.install on an engine whose programs have a footprint.
func installed(t *testing.T, e func(engine.Engine) engine.Engine, f footprint.Footprint, err error) result.Trial {
	t.Helper()
	clock := fake.NewClock()
	opened, openErr := fake.NewDriver(clock).Open(t.Context(), target.Target{Engine: fake.Name, Runtime: "a"}, engine.Session{RunID: runID})
	if openErr != nil {
		t.Fatal(openErr)
	}
	return runOn(t, "footprint.install", e(opened), clock, nil, func(c *runner.Config) {
		c.Footprint = func(programs []string) (footprint.Footprint, error) {
			if len(programs) == 0 {
				return footprint.Footprint{}, nil
			}
			return f, err
		}
	})
}

func TestFootprintInstall(t *testing.T) {
	f := footprint.Footprint{
		Manager: "dpkg", Programs: footprint.Sum{Bytes: 10, Files: 1}, Minimal: footprint.Sum{Bytes: 2_345_678, Packages: 6, Files: 40},
		Recommended: &footprint.Sum{Bytes: 5_000_000}, Added: footprint.Sum{Bytes: 2_000_000},
		Packages:   []footprint.Package{{Name: "a", Bytes: 1_950_000}, {Name: "b", Bytes: 300_000}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"}},
		Unpackaged: []string{"/opt/my/tool"}, Notes: []string{"one", "two"},
	}
	on := func(programs ...string) func(engine.Engine) engine.Engine {
		return func(e engine.Engine) engine.Engine { return placed{Engine: e, programs: programs} }
	}
	t.Run("a runtime", func(t *testing.T) {
		trial := installed(t, on("/usr/bin/a"), f, nil)
		for name, want := range map[string]float64{
			"AddedBytes": 2e6, "InstallBytes": 2_345_678, "InstallBytesRecommended": 5e6, "BinaryBytes": 10, "Packages": 6, "Files": 40,
		} {
			if got := trial.Values(name); !slices.Equal(got, []float64{want}) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		for name, want := range map[string]string{
			"package manager": "dpkg", "largest packages": "a 1.9 MB, b 0.3 MB, c 0.0 MB, d 0.0 MB, e 0.0 MB and 1 smaller ones",
			"outside packages": "tool", "accuracy": "one; two", "daemon": "none",
		} {
			if got := trial.Conditions[name]; got != want {
				t.Errorf("the condition %s is %q, want %q", name, got, want)
			}
		}
	})
	t.Run("recommended packages are unknown", func(t *testing.T) {
		less := f
		less.Recommended = nil
		if trial := installed(t, on("/usr/bin/a"), less, nil); trial.Status != result.OK || len(trial.Values("InstallBytesRecommended")) > 0 {
			t.Errorf("the trial is %+v", trial)
		}
	})
	t.Run("bare metal", func(t *testing.T) {
		trial := installed(t, on(), f, nil)
		if got := trial.Values("AddedBytes"); trial.Status != result.OK || !slices.Equal(got, []float64{0}) {
			t.Errorf("%s with AddedBytes %v, want 0", trial.Status, got)
		}
	})
	t.Run("a daemon of the user's", func(t *testing.T) {
		trial := installed(t, func(e engine.Engine) engine.Engine {
			return daemonized{placed: placed{Engine: e, programs: []string{"/usr/bin/a"}}}
		}, f, nil)
		if trial.Status != result.OK || len(trial.Values("DaemonMemory")) > 0 || !strings.HasPrefix(trial.Conditions["daemon"], "its cost is unknown") {
			t.Errorf("%s with the conditions %q", trial.Status, trial.Conditions)
		}
	})
	for name, tt := range map[string]struct {
		engine func(engine.Engine) engine.Engine
		err    error
		status result.Status
		reason string
	}{
		"no programs on this host": {func(e engine.Engine) engine.Engine { return e }, nil, result.Skipped, "this target has no programs on this host"},
		"unknown programs": {func(e engine.Engine) engine.Engine {
			return placed{Engine: e, err: engine.UnknownPrograms(target.Target{Engine: fake.Name})}
		}, nil, result.Skipped, "the programs of a daemon that Touchstone has not started are unknown"},
		"a locked database": {on("/a"), &footprint.UnreadableError{Manager: "dpkg", Err: errors.New("it is locked"), Advice: "wait"}, result.Skipped, "the packages of dpkg: it is locked; wait"},
		"a missing library": {on("/a"), errors.New("no library"), result.Failed, "no library"},
	} {
		t.Run(name, func(t *testing.T) {
			trial := installed(t, tt.engine, f, tt.err)
			if trial.Status != tt.status || !strings.Contains(trial.Reason, tt.reason) || len(trial.Samples) > 0 {
				t.Errorf("%s because %q with %v, want %s because %q", trial.Status, trial.Reason, trial.Samples, tt.status, tt.reason)
			}
		})
	}
}
