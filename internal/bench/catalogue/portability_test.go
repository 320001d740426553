package catalogue_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

const imageRun = "portability.image.run"

// porter is an engine that pulls images. The first image is the control and runs. The methods below decide about the second.
type porter struct {
	scripted
	pull, create, start error
	pulled, created     int
	isolation           engine.Isolation
}

func (e *porter) Info() engine.Info { return engine.Info{Isolation: e.isolation} }

func (e *porter) Pull(context.Context, string) error {
	e.pulled++
	return e.refuse(e.pulled, e.pull)
}

func (e *porter) RemoveImage(context.Context, string) error { return nil }

// refuse returns an error of the second image.
func (*porter) refuse(number int, err error) error {
	if number == 2 {
		return err
	}
	return nil
}

func (e *porter) Create(ctx context.Context, s engine.Spec) (engine.Container, error) {
	e.created++
	if err := e.refuse(e.created, e.create); err != nil {
		return nil, err
	}
	script := e.scripted
	if e.created == 1 {
		script = scripted{exit: engine.Exit{Code: bench.MinimalCode}}
	}
	c, err := script.Create(ctx, s)
	return &ported{c, e.refuse(e.created, e.start)}, err
}

type ported struct {
	engine.Container
	err error
}

func (c *ported) Start(ctx context.Context) error {
	if c.err != nil {
		return c.err
	}
	return c.Container.Start(ctx)
}

// Only an outcome that the architecture explains is a result. All other failures fail the trial.
//
// Invariant foreign-image: A failure of a foreign image is an outcome only if the architecture explains it: the same image of the host's
// architecture ran before.
func TestForeignImage(t *testing.T) {
	runs := engine.Exit{Code: bench.MinimalCode}
	fixed, emulator := bench.Emulator{Name: "qemu-aarch64", Interpreter: "/usr/bin/qemu", Fixed: true}, bench.Emulator{Name: "qemu-aarch64", Interpreter: "/usr/bin/qemu"}
	noFile := errors.New(`exec: "/probe": stat /probe: no such file or directory`)
	for _, tt := range []struct {
		name     string
		engine   porter
		emulator bench.Emulator
		outcome  string // empty for a trial that fails
		text     string // a part of the engine's words, or of the reason
	}{
		{"runs", porter{scripted: scripted{exit: runs}}, bench.Emulator{}, "runs", ""},
		{"emulation", porter{scripted: scripted{exit: runs}}, fixed, "runs by emulation", ""},
		{"emulation not known", porter{scripted: scripted{exit: runs}}, bench.Emulator{Unknown: "not mounted"}, "runs, perhaps by emulation", ""},
		{"refused at pull", porter{pull: errors.New("no match for platform in manifest: not found")}, bench.Emulator{}, "refused at pull", "no match"},
		{"at create", porter{create: errors.New("exec /probe: exec format error")}, bench.Emulator{}, "exec format error at create", "exec /probe"},
		{"at start", porter{start: errors.New("Exec Format Error: OCI runtime error")}, bench.Emulator{}, "exec format error at start", "OCI runtime"},
		{"after start", porter{scripted: scripted{exit: engine.Exit{Code: 1}, stderr: "exec container process `/probe`: Exec format error\n"}}, bench.Emulator{}, "exec format error at exec, after start", "`/probe`"},
		{"emulator not in the container", porter{start: noFile}, emulator, "emulator not found in the container", "no such file"},
		{"illegal instruction", porter{scripted: scripted{exit: engine.Exit{Signal: syscall.SIGILL}}}, fixed, "starts, but fails: killed by signal 4 (illegal instruction)", "signal 4"},

		{"exec error of an agent", porter{scripted: scripted{exit: engine.Exit{Code: 2}}, isolation: engine.VM}, fixed, "does not start in the guest: exit code 2", "exit code 2"},
		{"emulation in a guest", porter{scripted: scripted{exit: runs}, isolation: engine.VM}, fixed, "runs, perhaps by emulation", ""},

		{"the exit code without a guest", porter{scripted: scripted{exit: engine.Exit{Code: 2}}}, fixed, "", "its architecture does not explain"},
		{"another exit code of a guest", porter{scripted: scripted{exit: engine.Exit{Code: 1}}, isolation: engine.VM}, fixed, "", "its architecture does not explain"},
		{"a message in a guest", porter{scripted: scripted{exit: engine.Exit{Code: 2}, stderr: "usage"}, isolation: engine.VM}, fixed, "", "usage"},
		{"missing file without an emulator", porter{start: noFile}, bench.Emulator{}, "", "its architecture does not explain"},
		{"missing file with an open emulator", porter{start: noFile}, fixed, "", "no such file"},
		{"killed", porter{scripted: scripted{exit: engine.Exit{Signal: syscall.SIGKILL}}}, bench.Emulator{}, "", "signal 9"},
		{"other exit code", porter{scripted: scripted{exit: engine.Exit{Code: 1}, stderr: "out of memory"}}, bench.Emulator{}, "", "exit code 1: out of memory"},
		{"program that exits with 0", porter{}, bench.Emulator{}, "", "exit code 0"},
		{"unexpected output", porter{scripted: scripted{exit: runs, stdout: "hello"}}, bench.Emulator{}, "", `the output "hello"`},
		{"full disk", porter{pull: errors.New("write layer: no space left on device")}, bench.Emulator{}, "", "no space left"},
		{"create fails", porter{create: errors.New("broken")}, bench.Emulator{}, "", "broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trial := runOn(t, imageRun, &tt.engine, still{}, bench.Params{"architecture": "other"}, func(c *runner.Config) {
				c.Emulator = func([]byte) bench.Emulator { return tt.emulator }
			})
			words := trial.Conditions["in the engine's words"]
			if tt.outcome == "" {
				checkEnd(t, tt.name, trial, result.Failed, tt.text)
				return
			}
			if trial.Status != result.OK || trial.Conditions["outcome"] != tt.outcome || !strings.Contains(words, tt.text) {
				t.Errorf("%s because %q, outcome %q, words %q; want %q, %q", trial.Status, trial.Reason, trial.Conditions["outcome"], words, tt.outcome, tt.text)
			}
			if v := trial.Values("TimeToExit"); len(v) > 1 || (len(v) == 1) != strings.HasPrefix(tt.outcome, "runs") {
				t.Errorf("the samples are %v", trial.Samples)
			}
		})
	}
}

// If the host's own image does not run either, the architecture explains nothing.
//
// Invariant foreign-image.
func TestForeignImageNeedsTheControl(t *testing.T) {
	for name, e := range map[string]engine.Engine{
		"wrong exit code":   scripted{exit: engine.Exit{Code: 1}, stderr: "Exec format error"},
		"unexpected output": scripted{exit: engine.Exit{Code: bench.MinimalCode}, stdout: "x"},
	} {
		checkEnd(t, name, runOn(t, imageRun, directories{e}, still{}, nil), result.Failed, "the host's own architecture")
	}
}

// directories is an engine that pulls no images.
type directories struct{ engine.Engine }

func (directories) Supports(c engine.Capability) error {
	if c == engine.CanPull {
		return &engine.UnsupportedError{What: string(c), Reason: "it takes directories"}
	}
	return nil
}

// The words of the same failure are the same in each trial: they contain no name of the trial's container, image or registry.
func TestForeignImageWords(t *testing.T) {
	trial := run(t, imageRun, "fake/a@fail=start#2", nil)
	if trial.Status != result.Failed { // a scripted fault is no matter of the architecture
		t.Fatalf("%s because %q", trial.Status, trial.Reason)
	}
	for message, want := range map[string]string{
		"pull image minimal-arm64 with containerd/runc: no match for platform of 0123456789abcdef0123": "no match for platform of …",
		"pull image minimal-arm64: no matching manifest at 127.0.0.1:43210/minimal-arm64":              "no matching manifest at …/IMAGE",
		`no matching manifest {"time":"2026-11-22T20:42:10.349875Z"}`:                                  `no matching manifest {"time":"…"}`,
	} {
		e := &porter{pull: errors.New(message)}
		if words := runOn(t, imageRun, e, still{}, bench.Params{"architecture": "arm64"}).Conditions["in the engine's words"]; words != want {
			t.Errorf("the words of %q are %q, want %q", message, words, want)
		}
	}
	e := &porter{}
	e.start = errors.New(`start container "touchstone-20260101-000000-test-t1-00002" with docker/runc: exec format error in touchstone-20260101-000000-test-t1-00002`)
	words := runOn(t, imageRun, e, still{}, nil).Conditions["in the engine's words"]
	if want := "exec format error in ID"; words != want {
		t.Errorf("the words are %q, want %q", words, want)
	}
	runFailure := &porter{scripted: scripted{exit: engine.Exit{Code: 1}, stderr: "exec /probe: exec format error\n"}}
	if words := runOn(t, imageRun, runFailure, still{}, nil).Conditions["in the engine's words"]; words != "exec /probe: exec format error" {
		t.Errorf("the words of a program that ended are %q", words)
	}
}

// A hanging engine is a timeout, and no outcome.
func TestForeignImageTimeout(t *testing.T) {
	for _, fault := range []string{"hang=start#2", "hang=create#2", "hang=pull#2", "hang=wait#2"} {
		checkEnd(t, fault, run(t, imageRun, "fake/a@"+fault, nil), result.Timeout, "")
	}
}

// The benchmark knows the architectures and the exit code of package image, which it cannot import.
func TestForeignImageMatchesThePackage(t *testing.T) {
	if bench.MinimalCode != image.MinimalCode {
		t.Errorf("the exit code is %d, and the program's is %d", bench.MinimalCode, image.MinimalCode)
	}
	b := find(t, imageRun)
	for _, arch := range image.MinimalArchitectures() {
		if _, err := b.Resolve(bench.Params{"architecture": arch}, false); err != nil {
			t.Error(err)
		}
	}
}
