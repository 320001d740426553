package engines_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// guideDriver is an engine as the guide in CONTRIBUTING.md describes it: a driver with a description, candidates and Open.
// Its containers are the fake engine's.
type guideDriver struct{ containers *fake.Driver }

func (guideDriver) Describe() engine.Description {
	return engine.Description{
		Name: "guide", Kind: engine.FullEngine, Socket: true, CRI: true, AddressVariable: "GUIDE_HOST",
		Programs: monitor.Programs{monitor.Daemon: {"guided"}, monitor.Shim: {"guide-shim*"}},
	}
}

func (guideDriver) Candidates(context.Context, engine.Session) []engine.Candidate {
	return []engine.Candidate{{Info: engine.Info{Target: target.Target{Engine: "guide", Runtime: "runc"}}, Default: true}}
}

func (d guideDriver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	inner := target.Target{Engine: fake.Name, Runtime: t.Runtime}.With("no", "pull")
	e, err := d.containers.Open(ctx, inner, s)
	if err != nil {
		return nil, err
	}
	return guideEngine{e, t}, nil
}

type guideEngine struct {
	engine.Engine
	target target.Target
}

func (e guideEngine) Info() engine.Info {
	info := e.Engine.Info()
	info.Target = e.target
	return info
}

// newEngines adds the guide's engine to the list of all engines, which takes one line.
func newEngines() (engines.Drivers, *fake.Driver) {
	containers := fake.NewDriver(fake.NewClock())
	return append(engines.All(fake.NewClock(), nil), guideDriver{containers}), containers
}

func TestNewEnginePassesTheConformanceSuite(t *testing.T) {
	drivers, containers := newEngines()
	open := func(t *testing.T) engine.Engine {
		e, err := drivers.Open(t.Context(), target.Target{Engine: "guide", Runtime: "runc"}, engine.Session{RunID: "run1"})
		must.Do(t, err)
		return e
	}
	enginetest.Run(t, open, enginetest.Options{RunID: "run1", Rootfs: "/rootfs", Leftovers: containers.Leftovers})
}

// The socket in a plan, the flag --cri, the environment variable and the default selection work by the description alone.
func TestNewEngineIsSelectedByItsDescription(t *testing.T) {
	drivers, _ := newEngines()
	parsed, err := plan.Parse("p", []byte("version: 1\nengines: {sockets: {guide: /run/plan.sock}}\n"))
	must.Do(t, err)
	variable := func(name string) string {
		return map[string]string{"GUIDE_HOST": "/run/variable.sock"}[name]
	}
	for _, c := range []struct {
		name      string
		plan      plan.Plan
		overrides plan.Overrides
		socket    string
	}{
		{"plan", parsed, plan.Overrides{Getenv: variable}, "/run/plan.sock"},
		{"flag", parsed, plan.Overrides{Getenv: variable, CRI: []string{"guide=/run/flag.sock"}}, "/run/flag.sock"},
		{"environment", plan.Quick(), plan.Overrides{Getenv: variable}, "/run/variable.sock"},
	} {
		c.overrides.Engines = drivers.Descriptions()
		got, err := c.plan.Apply(c.overrides)
		if err != nil || got.Engines.Sockets["guide"] != c.socket {
			t.Errorf("%s: sockets %v, %v; want %s", c.name, got.Engines.Sockets, err, c.socket)
		}
	}

	d := drivers.Describe("guide")
	candidate := guideDriver{}.Candidates(t.Context(), engine.Session{})[0]
	managed := plan.Plan{Engines: plan.Engines{Managed: true}}
	if execution.IsDefault(plan.Plan{}, d, candidate) || execution.IsDefault(parsed, d, candidate) || !execution.IsDefault(managed, d, candidate) {
		t.Error("only private daemons make the engine a default: its address may come from the environment")
	}
}

// The engine's processes count as its declared components.
func TestNewEngineIsAccountedByItsDescription(t *testing.T) {
	drivers, _ := newEngines()
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip(err)
	}
	binary, err := os.ReadFile(cat)
	must.Do(t, err)
	dir := t.TempDir()
	var pids []int
	for _, name := range []string{"guided", "guide-shim-v1"} {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, binary, 0o700))
		cmd := exec.CommandContext(context.Background(), path) // the test's own context ends before its clean-up
		in, err := cmd.StdinPipe()
		must.Do(t, err)
		must.Do(t, cmd.Start())
		t.Cleanup(func() {
			_ = in.Close()
			enginetest.Check(t, cmd.Wait())
		})
		pids = append(pids, cmd.Process.Pid)
	}
	account := monitor.Begin(monitor.Target{Programs: drivers.Programs(), Procs: func() ([]int, error) { return pids, nil }})
	t.Cleanup(func() { enginetest.Check(t, account.Close()) })
	census, err := account.Census()
	memory := census.ByComponent()
	if err != nil || len(memory) != 2 || memory[monitor.Daemon] == 0 || memory[monitor.Shim] == 0 {
		t.Errorf("memory by component = %v, %v; want the daemon's and the shim's", memory, err)
	}
}
