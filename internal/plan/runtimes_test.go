package plan

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestParseRuntimesFile(t *testing.T) {
	kata := map[string]target.Runtime{"kata": {Type: "io.containerd.kata.v2"}}
	for _, c := range []struct {
		name, text string
		want       map[string]target.Runtime
		errs       []string
	}{
		{"the section", "runtimes:\n  kata: {type: io.containerd.kata.v2}\n", kata, nil},
		{"with a version", "version: 1\nruntimes:\n  kata: {type: io.containerd.kata.v2}\n", kata, nil},
		{"empty", "", nil, nil},
		{"another version", "version: 2\n", nil, []string{`f:1:10: version "2" of the plan format is unknown; write "version: 1", or use a newer Touchstone`}},
		{"without the section's name", "kata: {type: io.containerd.kata.v2}\n", nil, []string{`f:1:1: unknown key "kata" in a file of runtimes; the keys are version, runtimes`}},
		{"a plan", "version: 1\nblocks: 3\n", nil, []string{`f: it is a plan; touchstone benchmark -f FILE executes it`}},
		{"another key", "runtimes: {}\nseed: 3\n", nil, []string{`f:2:1: unknown key "seed" in a file of runtimes; the keys are version, runtimes`}},
		{"a list", "- kata\n", nil, []string{`f:1:1: a file of runtimes is a mapping, not a list; begin with "runtimes:", and write names to paths below it`}},
		{"a broken entry", "runtimes:\n  a: /bin/a\n  b: bin/b\n", nil, []string{`f:3:6: runtimes: the binary "bin/b" of b is not an absolute path; write it from the root, such as /usr/bin/crun`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseRuntimes("f", []byte(c.text))
			checkLines(t, err, c.errs)
			if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The plan takes precedence over the user's environment, and flags take precedence over both.
func TestPrecedenceOfPlanFlagsAndEnvironment(t *testing.T) {
	p := mustParse(t, "p", "version: 1\nruntimes: {a: /plan/a, b: /plan/b}\nengines: {sockets: {crio: /plan/crio}}\n")
	users := map[string]target.Runtime{"b": {Path: "/user/b"}, "c": {Path: "/user/c"}, "d": {Type: "x.y"}}
	original := maps.Clone(users)
	got, err := p.WithRuntimes(users).Apply(Overrides{Runtimes: []string{"c=/flag/c"}, Engines: someEngines, Getenv: environment("unix:///user/docker")})
	must.Do(t, err)
	want := map[string]target.Runtime{"a": {Path: "/plan/a"}, "b": {Path: "/plan/b"}, "c": {Path: "/flag/c"}, "d": {Type: "x.y"}}
	expect.Equal(t, "runtimes", want, got.Runtimes)
	expect.Equal(t, "sockets", map[string]string{"crio": "/plan/crio", "docker": "unix:///user/docker"}, got.Engines.Sockets)
	if diff := cmp.Diff(original, users); diff != "" {
		t.Errorf("WithRuntimes has changed what it was given:\n%s", diff)
	}
	expect.Equal(t, "the recorded plan has not all of it", got, mustParse(t, "other", string(got.YAML())), same)
	if plan := Quick().WithRuntimes(nil); plan.Runtimes != nil {
		t.Errorf("nothing becomes %+v", plan)
	}

	p = mustParse(t, "p", "version: 1\nengines: {sockets: {docker: /plan/docker}}\n")
	if got, err := p.Apply(Overrides{Engines: someEngines, Getenv: environment("tcp://10.0.0.1:2375")}); err != nil || got.Engines.Sockets["docker"] != "/plan/docker" {
		t.Errorf("the plan's socket gives way to the variable: %+v, %v", got.Engines, err)
	}
}

// TestAddressesOfTheEnvironment: each value becomes an address that the recorded plan may have, and ends no run.
//
// Invariant daemon-address: A bad address of a daemon ends the targets of its engine, and no others.
func TestAddressesOfTheEnvironment(t *testing.T) {
	for value, want := range map[string]string{
		"":                             "",
		" \t\n":                        "",
		"unix:///run/docker.sock\n":    "unix:///run/docker.sock",
		" tcp://127.0.0.1:2375 ":       "tcp://127.0.0.1:2375",
		"127.0.0.1:2375":               "tcp://127.0.0.1:2375",
		"docker.sock":                  "tcp://docker.sock",
		"[::1]:2375":                   "tcp://[::1]:2375",
		"unix:/run/docker.sock":        "tcp://unix:/run/docker.sock",
		"/run/my docker.sock":          "/run/my docker.sock",
		"fd://":                        "fd://",
		"unix://":                      "unix://",
		"TCP://a":                      "unreadable://TCP:%2F%2Fa",
		"a b":                          "unreadable://a%20b",
		"unix:///run/\x1b[31m":         "unreadable://unix:%2F%2F%2Frun%2F%1B%5B31m",
		"://":                          "unreadable://:%2F%2F",
		strings.Repeat("x", 2*maxPath): "unreadable://" + strings.Repeat("x", 200),
	} {
		got, err := Quick().Apply(Overrides{Engines: someEngines, Getenv: environment(value)})
		if err != nil || got.Engines.Sockets["docker"] != want {
			t.Errorf("%.100q becomes %q, %v; want %q", value, got.Engines.Sockets["docker"], err, want)
			continue
		}
		if echo, err := Parse("run", got.YAML()); err != nil || echo.Engines.Sockets["docker"] != want {
			t.Errorf("%.100q: the recorded plan has %q, %v; want %q", value, echo.Engines.Sockets["docker"], err, want)
		}
	}
}

// environment has DOCKER_HOST alone.
func environment(dockerHost string) func(string) string {
	return func(name string) string {
		if name == "DOCKER_HOST" {
			return dockerHost
		}
		return ""
	}
}

// TestTooManyRuntimesTogether checks that plan, flags and environment together stay within the limits of a plan, since resumption
// parses the run's plan again.
func TestTooManyRuntimesTogether(t *testing.T) {
	runtimes := map[string]target.Runtime{}
	for _, e := range mustParse(t, "p", "version: 1\ntargets:\n"+numbered("  - oci/r", MaxTargets, "")).Targets {
		runtimes[e.Runtime] = target.Runtime{Path: "/x"}
	}
	p := Quick().WithRuntimes(runtimes)
	if _, err := p.Apply(Overrides{}); err != nil {
		t.Errorf("%d runtimes: %v", MaxRuntimes, err)
	}
	_, err := p.Apply(Overrides{Runtimes: []string{"more=/x"}})
	checkLines(t, err, []string{"--runtime: together with the plan there are more than 100; leave out unused entries"})
}

func FuzzParseRuntimes(f *testing.F) {
	f.Add([]byte("runtimes:\n  kata: {type: io.containerd.kata.v2, options: {config: /etc/kata.toml, n: 1}}\n  a: /bin/a\n"))
	f.Add([]byte("runtimes:\n 08: {options: {}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		runtimes, err := ParseRuntimes("f", text)
		if err != nil {
			return
		}
		p := Quick().WithRuntimes(runtimes)
		echo, err := Parse("other", p.YAML())
		if err != nil {
			t.Fatalf("the canonical plan is refused: %v\n%s", err, p.YAML())
		}
		if diff := cmp.Diff(p, echo, same); diff != "" {
			t.Fatalf("(-want +got):\n%s\n%s", diff, p.YAML())
		}
	})
}
