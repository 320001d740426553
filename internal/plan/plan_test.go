package plan

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/bench/custom"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// same compares the content of plans and ignores their locations.
var same = cmp.Options{
	cmpopts.IgnoreUnexported(Item{}, Workload{}, Plan{}),
	cmpopts.IgnoreFields(Plan{}, "Notes"),
}

// whole has every key of the format.
const whole = `version: 1
name: crun-vs-runc
targets: [native, oci/runc, oci/crun, "oci/runsc@platform=systrap"]
baseline: native
benchmarks:
  - operations
  - {name: performance, image: probe, monitor: {memory: 50ms}}
  - name: scalability.runtime.5
    params: {mode: parallel, copies: 4, ratio: 0.50, on: true}
    limits: {cpus: none, memory: 524288KiB}
parameters: paper
limits: {cpus: 0.50, cpuset: "1,0", memory: 4GB, pids: 512}
blocks: 30
warmup: 2
until: decided
precision: 2%
max-blocks: 60
budget: 2h
timeout: {trial: 2m30s, call: 45s}
seed: 18446744073709551615
runtimes:
  mycrun: /opt/crun/bin/crun
  kata: {type: io.containerd.kata.v2, options: {config: /etc/kata/clh.toml, debug: false}}
  sandboxed: {path: /opt/gvisor/runsc, options: {platform: ptrace}}
  runsc: {options: {overlay2: "root:memory"}}
engines:
  managed: true
  sockets: {docker: "tcp://127.0.0.1:2375", mine: /run/mine.sock}
  binaries: {containerd: /opt/containerd/bin/containerd, cni: /opt/cni/bin}
seccomp: unconfined
pods: {pid: pod, grace: 10s}
pinning: {workload: "1-3,5", engines: 4, touchstone: "0"}
drop-caches: false
monitor: memory
trace: 3
trace-paths: true
workloads:
  - name: app.start.cold
    summary: "from nothing: to the first answer"
    image: /srv/images/app.tar
    argv: [/usr/bin/app, --bench, 5, "a b", 'it''s "$HOME"', true, ""]
    env: {LC_ALL: C, A: 5}
    from-env: [TOKEN, OTHER]
    writable: true
    network: host
    parse:
      - {metric: Rate, regex: 'rate: ([0-9.]+) "op"\/s #', unit: 1/s, better: higher}
      - {metric: P99, json: "$.latency['p-99']", unit: s, better: lower, scale: 1e-3}
      - {metric: Time, regex: 'time: ([0-9.]+)', unit: s, better: lower, scale: auto}
      - {metric: Sent, regex: '([0-9.]+) (?P<unit>\w+)', unit: B, better: lower, scale: auto-binary}
      - {metric: Size, json: size, unit: B, better: lower, scale: 1048576}
  - {name: app.stop.warm, image: workload, argv: [/usr/bin/busybox], network: bridge, parse: [{metric: A, json: a, unit: score, better: lower}]}
export: results.json
touchstone-output: performance.json
`

func mustTarget(t *testing.T, s string) target.Target {
	t.Helper()
	parsed, err := target.Parse(s)
	must.Do(t, err)
	return parsed
}

func mustPatterns(t *testing.T, list ...string) []Pattern {
	t.Helper()
	var patterns []Pattern
	for _, s := range list {
		p, f := parsePattern(s)
		if f != nil {
			t.Fatal(f.message)
		}
		patterns = append(patterns, p)
	}
	return patterns
}

func mustParse(t *testing.T, file, text string) Plan {
	t.Helper()
	p, err := Parse(file, []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func TestParse(t *testing.T) {
	seed := uint64(1<<64 - 1)
	want := Plan{
		Name:     "crun-vs-runc",
		Targets:  mustPatterns(t, "native", "oci/runc", "oci/crun", "oci/runsc@platform=systrap"),
		Baseline: mustTarget(t, "native"),
		Benchmarks: []Item{
			{Name: "operations"},
			{Name: "performance", Image: "probe", Monitor: Monitor{Memory: 50 * time.Millisecond}},
			{Name: "scalability.runtime.5", Params: bench.Params{"mode": "parallel", "copies": "4", "ratio": "0.50", "on": "true"}, Limits: Limits{CPUs: "none", Memory: "512MiB"}},
		},
		Parameters: PaperValues,
		Limits:     Limits{CPUs: "0.5", CPUSet: "0-1", Memory: "4GB", PIDs: "512"},
		Blocks:     30,
		Warmup:     2,
		Until:      Decided,
		Precision:  0.02,
		MaxBlocks:  60,
		Budget:     2 * time.Hour,
		Timeout:    Timeout{Trial: 150 * time.Second, Call: 45 * time.Second},
		Seed:       &seed,
		Runtimes: map[string]target.Runtime{
			"mycrun":    {Path: "/opt/crun/bin/crun"},
			"kata":      {Type: "io.containerd.kata.v2", Options: []target.Option{{Name: "config", Value: "/etc/kata/clh.toml"}, {Name: "debug", Value: "false"}}},
			"sandboxed": {Path: "/opt/gvisor/runsc", Options: []target.Option{{Name: "platform", Value: "ptrace"}}},
			"runsc":     {Options: []target.Option{{Name: "overlay2", Value: "root:memory"}}},
		},
		Engines: Engines{
			Managed:  true,
			Sockets:  map[string]string{"docker": "tcp://127.0.0.1:2375", "mine": "/run/mine.sock"},
			Binaries: map[string]string{"containerd": "/opt/containerd/bin/containerd", "cni": "/opt/cni/bin"},
		},
		Seccomp:    engine.Unconfined,
		Pods:       touchstonePods,
		Pinning:    Pinning{Workload: "1-3,5", Engines: "4", Touchstone: "0"},
		DropCaches: new(bool),
		Monitor:    Monitor{Memory: 100 * time.Millisecond},
		Trace:      3,
		TracePaths: true,
		Workloads: []Workload{
			{Workload: custom.Workload{
				Name: "app.start.cold", Summary: "from nothing: to the first answer", Image: "/srv/images/app.tar",
				Args: []string{"/usr/bin/app", "--bench", "5", "a b", `it's "$HOME"`, "true", ""}, Env: map[string]string{"LC_ALL": "C", "A": "5"}, FromEnv: []string{"TOKEN", "OTHER"},
				Writable: true, Network: "host",
				Metrics: []custom.Metric{
					{Name: "Rate", Unit: "1/s", Better: "higher", Regex: `rate: ([0-9.]+) "op"\/s #`},
					{Name: "P99", Unit: "s", Better: "lower", JSON: "$.latency['p-99']", Scale: custom.Scale{Factor: 0.001}},
					{Name: "Time", Unit: "s", Better: "lower", Regex: `time: ([0-9.]+)`, Scale: custom.Scale{Auto: "auto"}},
					{Name: "Sent", Unit: "B", Better: "lower", Regex: `([0-9.]+) (?P<unit>\w+)`, Scale: custom.Scale{Auto: "auto-binary"}},
					{Name: "Size", Unit: "B", Better: "lower", JSON: "size", Scale: custom.Scale{Factor: 1 << 20}},
				},
			}},
			{Workload: custom.Workload{
				Name: "app.stop.warm", Image: bench.WorkloadImage, Args: []string{"/usr/bin/busybox"}, Network: "bridge",
				Metrics: []custom.Metric{{Name: "A", Unit: "score", Better: "lower", JSON: "a"}},
			}},
		},
		Export: "results.json", TouchstoneOutput: "performance.json",
	}
	for name, text := range map[string]string{
		"as it is":          whole,
		"Windows line ends": strings.ReplaceAll(whole, "\n", "\r\n"),
		"byte order mark":   "\ufeff" + whole,
		"document marks":    "---\n" + whole + "...\n",
	} {
		expect.Equal(t, name, want, mustParse(t, "x.yaml", text), same)
	}
}

func TestParseFillsInDefaults(t *testing.T) {
	want := Plan{
		Name:       "nightly",
		Parameters: QuickValues,
		Blocks:     20,
		Warmup:     1,
		Timeout:    Timeout{Trial: 2 * time.Minute, Call: 30 * time.Second},
	}
	expect.Equal(t, "the result", want, mustParse(t, "plans/nightly.yaml", "version: 1\n"), same)
	if got := mustParse(t, "p", "version: 1\nparameters: paper\n").Timeout.Trial; got != 30*time.Minute {
		t.Errorf("with the paper's parameters a trial may take %v, want 30m", got)
	}
	if got := mustParse(t, "p", "version: 1\ntimeout: {trial: 1m}\nparameters: paper\n").Timeout.Trial; got != time.Minute {
		t.Errorf("a trial may take %v, want 1m as the plan says", got)
	}
	for file, name := range map[string]string{"": "plan", "-": "plan", "/dev/fd/63": "63", "a\x1bb.yml": "plan", "my plan.v2.yaml": "my plan.v2"} {
		if got := mustParse(t, file, "version: 1\n").Name; got != name {
			t.Errorf("a plan in %q is named %q, want %q", file, got, name)
		}
	}
}

func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) < 6 {
		t.Fatalf("found only %q: %v", paths, err)
	}
	for _, path := range paths {
		p, err := Load(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := p.Resolve(catalogue.Catalogue{}); err != nil {
			t.Error(err)
		}
	}
}

func TestBlockLimit(t *testing.T) {
	for _, c := range []struct {
		plan Plan
		want int
	}{
		{Plan{Blocks: 20}, 20},
		{Plan{Blocks: 20, Precision: 0.02}, 100},
		{Plan{Blocks: 20, Precision: 0.02, MaxBlocks: 30}, 30},
		{Plan{Blocks: 50_000, Precision: 0.02}, MaxBlocks},
		{Plan{Blocks: 20, Until: Decided}, 100},
		{Plan{Blocks: 20, Until: Decided, MaxBlocks: 200}, 200},
	} {
		if got := c.plan.BlockLimit(); got != c.want {
			t.Errorf("%+v: limit %d, want %d", c.plan, got, c.want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory is loaded")
	}
	file := filepath.Join(dir, "long.yaml")
	must.Do(t, os.WriteFile(file, []byte("version: 1\n"+strings.Repeat("#\n", MaxSize)), 0o600))
	_, err := Load(file)
	if e := (*Error)(nil); !errors.As(err, &e) || e.File != file || e.Line != 0 || !strings.Contains(e.Problem, "longer than 1048576 bytes") {
		t.Errorf("a file above MaxSize gives %v", err)
	}
}
