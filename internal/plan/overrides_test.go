package plan

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestApply(t *testing.T) {
	p := mustParse(t, "p", whole)
	original := mustParse(t, "p", whole)
	seed := uint64(7)
	got, err := p.Apply(Overrides{
		Targets:   []string{"native", "oci/mycrun", "*/runc"},
		Filters:   []string{"performance.syscall"},
		Blocks:    new(40),
		Warmup:    new(0),
		Precision: new("0.5%"),
		Budget:    new(time.Hour),
		Timeout:   new(time.Minute),
		Seed:      &seed,
		Runtimes:  []string{"other=/bin/o=x", "kata=/bin/kata"},
		CRI:       []string{"containerd=/run/c.sock", "mine=unix:///run/other.sock"},
		Binaries:  []string{"cni=/usr/lib/cni", "conmon=/opt/conmon"},
		Managed:   new(false),

		TracePaths: new(true),
	})
	must.Do(t, err)
	want := original
	want.TracePaths = true
	want.Targets = mustPatterns(t, "native", "oci/mycrun", "*/runc")
	want.Benchmarks = []Item{{Name: "performance.syscall"}}
	want.Blocks, want.Warmup = 40, 0
	want.Precision = 0.005
	want.Budget, want.Timeout.Trial = time.Hour, time.Minute
	want.Seed = &seed
	want.Runtimes = maps.Clone(original.Runtimes)
	want.Runtimes["other"] = target.Runtime{Path: "/bin/o=x"}
	want.Runtimes["kata"] = target.Runtime{Path: "/bin/kata"} // with nothing of the plan's
	want.Engines = Engines{
		Sockets: map[string]string{
			"docker": "tcp://127.0.0.1:2375", "containerd": "/run/c.sock", "mine": "unix:///run/other.sock",
		},
		Binaries: map[string]string{"containerd": "/opt/containerd/bin/containerd", "cni": "/usr/lib/cni", "conmon": "/opt/conmon"},
	}
	expect.Equal(t, "the result", want, got, same)
	expect.Equal(t, "Apply has changed the plan it is called on", original, p, same)
}

func TestApplyUntil(t *testing.T) {
	p := mustParse(t, "p", "version: 1\ntargets: [native, oci/runc]\n")
	if _, err := p.Apply(Overrides{MaxBlocks: new(40)}); err == nil || !strings.Contains(err.Error(), "--max-blocks: 40 has no effect without --precision or --until") {
		t.Errorf("--max-blocks alone: %v", err)
	}
	got, err := p.Apply(Overrides{Until: new("decided"), Blocks: new(10), MaxBlocks: new(200)})
	must.Do(t, err)
	if got.Until != Decided || got.Blocks != 10 || got.BlockLimit() != 200 {
		t.Errorf("until %q, %d to %d blocks", got.Until, got.Blocks, got.BlockLimit())
	}
	if echo := mustParse(t, "p", string(got.YAML())); echo.Until != Decided || echo.MaxBlocks != 200 {
		t.Errorf("the written plan has until %q and at most %d blocks", echo.Until, echo.MaxBlocks)
	}
}

func TestApplyWithoutOverrides(t *testing.T) {
	p := mustParse(t, "p", whole)
	got, err := p.Apply(Overrides{})
	must.Do(t, err)
	expect.Equal(t, "the result", p, got, same)
}

// A flag also replaces the values of single benchmarks.
func TestApplyToBenchmarks(t *testing.T) {
	const text = "version: 1\nbenchmarks: [operations, {name: performance, blocks: 3, monitor: memory}]\n"
	p := mustParse(t, "p", text)
	got, err := p.Apply(Overrides{Blocks: new(1), Monitor: new("memory=50ms")})
	must.Do(t, err)
	if item := got.Benchmarks[1]; got.Blocks != 1 || item.Blocks != 0 || item.Monitor != (Monitor{}) {
		t.Errorf("with --runs 1 and --monitor memory=50ms, the plan has %d blocks, and %+v", got.Blocks, item)
	}
	expect.Equal(t, "Apply has changed the plan it is called on", mustParse(t, "p", text), p, same)
}

func TestApplyRefuses(t *testing.T) {
	p := mustParse(t, "p", whole)
	for _, c := range []struct {
		name string
		o    Overrides
		want []string
	}{
		{"targets", Overrides{Targets: []string{"native", "runc", "native"}}, []string{
			`--targets: "runc" is not a target: the runtime is missing; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`,
			`--targets: "native" is given twice; leave one out`,
		}},
		{"targets without the baseline", Overrides{Targets: []string{"oci/runc"}}, []string{`--targets: baseline "native" is not among the targets; add it to targets`}},
		{"nothing", Overrides{Targets: []string{}, Filters: []string{}}, []string{
			`--targets: no target is given; give targets, or leave the flag out for all targets found`,
			`--filter: no benchmark is given; give names, or leave the flag out`,
		}},
		{"an option without a target", Overrides{Targets: []string{"native", "start=5ms"}}, []string{
			`--targets: "start=5ms" is not a target: the engine's name "start=5ms" is not a name; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`,
		}},
		{"filters", Overrides{Filters: []string{"a b"}}, []string{`--filter: "a b" is not the name of a benchmark; write whole components, such as operations or scalability.runtime.5`}},
		{"numbers", Overrides{Blocks: new(0), Warmup: new(-1), Trace: new(-2), Precision: new("2"), Budget: new(time.Duration(0)), Timeout: new(-time.Second)}, []string{
			`--precision: "2" is not a percentage above 0 % and up to 100 %; write it like 2%`,
			`--runs: 0 is not a whole number from 1 to 100000`,
			`--warmup: -1 is not a whole number from 0 to 100000`,
			`--trace: -2 is not a whole number from 0 to 100000`,
			`--budget: 0s is not a duration; write a number above 0 with a unit, such as 30s or 10m`,
			`--timeout: -1s is not a duration; write a number above 0 with a unit, such as 30s or 10m`,
		}},
		{"more than the plan's limit", Overrides{Blocks: new(61)}, []string{`--runs: 61 is more than max-blocks (60) of the plan; give less, or raise max-blocks in the plan`}},
		{"more blocks than the greatest number", Overrides{Blocks: new(20), MaxBlocks: new(10)}, []string{`--max-blocks: 10 is less than the number of blocks (20); raise it, or lower --runs`}},
		{"no greatest number", Overrides{MaxBlocks: new(0)}, []string{`--max-blocks: 0 is not a whole number from 1 to 100000`}},
		{"a decision about one target", Overrides{Until: new("decided"), Targets: []string{"native"}}, []string{`--until: decided compares targets with the baseline, and the plan has only the target "native"; add a target, or leave until out`}},
		{"runtimes", Overrides{Runtimes: []string{"crun", "a/b=/x", "c=bin/c"}}, []string{
			`--runtime: "crun" is not name=path; write it like mycrun=/opt/crun/bin/crun`,
			`--runtime: "a/b" is not a name for a runtime; use letters, digits and . _ -`,
			`--runtime: the binary "bin/c" of c is not an absolute path; write it from the root, such as /usr/bin/crun`,
		}},
		{"sockets", Overrides{CRI: []string{"/run/c.sock", "a/b=/x", "containerd=c.sock", "docker=/x", "podman=/x", "oci=/x"}, Engines: someEngines}, []string{
			`--cri: "/run/c.sock" is not name=socket; write it like containerd=/run/containerd/containerd.sock`,
			`--cri: "a/b" is not a name for an engine; use letters, digits and . _ -`,
			`--cri: "c.sock" is not an address of containerd; write the absolute path of a socket, or a URL that begins with unix:// or tcp://`,
			`--cri: docker does not speak CRI; give its address in DOCKER_HOST`,
			`--cri: podman does not speak CRI; give its socket in a plan, as engines: {sockets: {podman: /run/podman/podman.sock}}`,
			`--cri: "oci" is an engine without a daemon; leave it out`,
		}},
		{"binaries", Overrides{Binaries: []string{"containerd", "a b=/x", "crio=bin/crio"}}, []string{
			`--engine-bin: "containerd" is not name=path; write it like containerd=/usr/local/bin/containerd`,
			`--engine-bin: "a b" is not the name of a program; use letters, digits and . _ -, as in containerd-shim-runc-v2`,
			`--engine-bin: the binary "bin/crio" of crio is not an absolute path; write it from the root, such as /usr/bin/crun`,
		}},
		{"unused binaries", Overrides{Binaries: []string{"runc=/x", "containerd-shim=/x", "cni-plugins=/x", "cni=/x"}, Engines: someEngines}, []string{
			`--engine-bin: "runc" is not a program of an engine; name one of cni, containerd, podman, or a runtime with --runtime`,
			`--engine-bin: "containerd-shim" is not a program of an engine; name one of cni, containerd, podman, or a runtime with --runtime`,
			`--engine-bin: "cni-plugins" is not a program of an engine; name one of cni, containerd, podman, or a runtime with --runtime`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := p.Apply(c.o)
			checkLines(t, err, c.want)
			if e := (*Error)(nil); !errors.As(err, &e) {
				t.Errorf("%T is no *Error", err)
			}
		})
	}
}

// someEngines are engines of each sort.
var someEngines = []engine.Description{
	{Name: "native", Kind: engine.HostProcess},
	{Name: "oci", Kind: engine.BareRuntime},
	{Name: "containerd", Kind: engine.FullEngine, Socket: true, CRI: true, Binaries: []string{"containerd", "cni"}},
	{Name: "docker", Kind: engine.FullEngine, Socket: true, AddressVariable: "DOCKER_HOST"},
	{Name: "podman", Kind: engine.FullEngine, Socket: true, Binaries: []string{"podman"}},
}

// The plan's own programs and sockets are checked as soon as the engines are known.
func TestEnginesOfThePlan(t *testing.T) {
	p := mustParse(t, "p", "version: 1\nengines:\n  sockets: {oci: /x, native: /x, podman: /x, mine: /x}\n  binaries: {podman: /x, netavark: /x}\n")
	_, err := p.Apply(Overrides{Engines: someEngines})
	checkLines(t, err, []string{
		`p:3:22: engines.sockets: "native" is an engine without a daemon; leave it out`,
		`p:3:13: engines.sockets: "oci" is an engine without a daemon; leave it out`,
		`p:4:26: engines.binaries: "netavark" is not a program of an engine; name one of cni, containerd, podman, or a runtime with --runtime`,
	})
}

func TestJoinOptions(t *testing.T) {
	for _, c := range []struct{ list, want []string }{
		{[]string{"fake/a@create=10ms", "start=5ms", "fake/b"}, []string{"fake/a@create=10ms,start=5ms", "fake/b"}},
		{[]string{"native", "fake/a@x=1", "fake/b@y=2", "z=3"}, []string{"native", "fake/a@x=1", "fake/b@y=2,z=3"}},
		{[]string{"fake/a@x=1", "y=a/b"}, []string{"fake/a@x=1,y=a/b"}},
	} {
		p, err := Quick().Apply(Overrides{Targets: c.list})
		if err != nil {
			t.Errorf("%q: %v", c.list, err)
			continue
		}
		var got []string
		for _, target := range p.Targets {
			got = append(got, target.String())
		}
		expect.Equal(t, fmt.Sprintf("%q", c.list), c.want, got)
	}
}
