package cri

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The runtimes of these tests.
var (
	aRunc  = runtimes.Runtime{Kind: runtimes.KindOf("runc version 1.3.0"), Name: "runc", Binary: "/usr/sbin/runc", Version: "runc version 1.3.0"}
	aCrun  = runtimes.Runtime{Kind: runtimes.KindOf("crun version 1.21"), Name: "crun", Binary: "/opt/my \"crun\"", Version: "crun version 1.21"}
	aRunsc = runtimes.Runtime{Kind: runtimes.KindOf("runsc version 1"), Name: "runsc", Binary: "/usr/bin/runsc", Version: "runsc version 1"}
	aShim  = runtimes.Runtime{Name: "rune", Type: "io.containerd.rune.v2", Version: "io.containerd.rune.v2"}
	aKata  = runtimes.Runtime{Name: "kata", Type: "io.containerd.kata.v2", Shim: "/opt/kata/bin/shim", Guest: &kata.Config{File: "/etc/kata.toml"}}
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	must.Do(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestContainerdConfig(t *testing.T) {
	c := containerdConfig{
		root: "/var/ts/root", state: "/run/ts/state", opt: "/var/ts/opt", socket: "/run/ts/c.sock", pause: "127.0.0.1:5000/touchstone/probe:latest",
		plugins: "/usr/lib/cni", network: "/run/ts/cni", handlers: []containerdHandler{
			{name: "runc-0", shim: shimRunc, binary: aRunc.Binary},
			{name: "crun-1", shim: shimRunc, binary: aCrun.Binary},
			{name: "runsc-2", shim: shimRunsc, config: "/run/ts/runsc-2.toml"},
			{name: "kata-3", shim: aKata.Type, path: aKata.Shim, config: "/etc/kata.toml"},
		},
	}
	for _, version := range []string{"1.6.20~ds1", "1.7.35", "2.4.2"} {
		golden(t, "containerd-"+strings.TrimSuffix(version, "~ds1")+".toml", c.text(version))
	}
	text := containerdConfig{}.text("2.0.0")
	if strings.Contains(text, "default_runtime_name") {
		t.Errorf("a default without handlers:\n%s", text)
	}
}

func TestCRIOConfig(t *testing.T) {
	c := crioConfig{
		state: "/run/ts", data: "/var/ts", socket: "/run/ts/c.sock", network: "/run/ts/cni", registry: "127.0.0.1:5000",
		pause: "127.0.0.1:5000/touchstone/probe:latest", programs: programs{conmon: "/usr/bin/conmon", pinns: "/usr/bin/pinns", cni: "/usr/lib/cni"},
		handlers: []crioHandler{{name: "runc-0", binary: aRunc.Binary}, {name: "crun-1", binary: aCrun.Binary}},
	}
	golden(t, "crio.conf", c.text())
	golden(t, "storage.conf", c.storage())
	c.handlers, c.guests = append(c.handlers, crioHandler{name: "kata-2", binary: aKata.Shim, config: "/run/ts/kata-2.toml"}), true
	golden(t, "crio-kata.conf", c.text())
	golden(t, "storage-kata.conf", c.storage())
}

// fit describes the handler of a target, or refuses the target with the reason.
func TestFit(t *testing.T) {
	withShim, noShim := programs{runsc: "/usr/bin/containerd-shim-runsc-v1"}, programs{}
	for _, tt := range []struct {
		target   string
		runtime  runtimes.Runtime
		programs programs
		want     string // shim, flags, hidden, settings, config
		err      string
	}{
		{target: "containerd/runc", runtime: aRunc, want: "io.containerd.runc.v2"},
		{target: "containerd/crun@cgroup-manager=disabled", runtime: aCrun, want: "io.containerd.runc.v2 --cgroup-manager=disabled"},
		{target: "containerd/runsc", runtime: aRunsc, programs: withShim, want: "io.containerd.runsc.v1"},
		{target: "containerd/runsc@platform=ptrace", runtime: aRunsc, programs: withShim, want: "io.containerd.runsc.v1 @platform=ptrace"},
		{target: "containerd/runsc@platform=ptrace", runtime: aRunsc, programs: noShim, want: "io.containerd.runc.v2 --platform=ptrace hide io.kubernetes.cri"},
		{target: "containerd/runsc@platform=ptrace,shim=runc", runtime: aRunsc, programs: withShim, want: "io.containerd.runc.v2 --platform=ptrace hide io.kubernetes.cri"},
		{target: "containerd/kata", runtime: aKata, want: "io.containerd.kata.v2"},
		{target: "containerd/rune@config=/etc/rune.toml", runtime: aShim, want: "io.containerd.rune.v2 with /etc/rune.toml"},
		{target: "containerd/rune@enclave=sgx", runtime: aShim, err: "passes no option enclave to the shim io.containerd.rune.v2"},
		{target: "containerd/runc@shim=runc", runtime: aRunc, err: "unknown value shim=runc"},
		{target: "containerd/runsc@shim=kata", runtime: aRunsc, err: "unknown value shim=kata"},
		{target: "containerd/runsc@root=/x", runtime: aRunsc, programs: withShim, err: "the option root is set by Touchstone itself"},
		{target: "containerd/runc@root=/x", runtime: aRunc, err: "the option root is set by Touchstone itself"},
		{target: "crio/crun", runtime: aCrun, want: ""},
		{target: "crio/runsc", runtime: aRunsc, want: " --overlay2=root:memory hide io.kubernetes.cri"},
		{target: "crio/runsc@overlay2=none", runtime: aRunsc, want: " --overlay2=none hide io.kubernetes.cri"},
		{target: "crio/kata", runtime: aKata, want: ""},
		{target: "crio/rune", runtime: aShim, err: "CRI-O calls OCI runtimes and Kata's shim, not shims such as io.containerd.rune.v2"},
	} {
		fit := fitContainerd
		if strings.HasPrefix(tt.target, "crio/") {
			fit = fitCRIO
		}
		e, err := fit(engine.Session{}, tt.programs, tt.runtime, enginetest.Parse(t, tt.target))
		if tt.err != "" {
			if !engine.Unsupported(err) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v; want a refusal with %q", tt.target, err, tt.err)
			}
			continue
		}
		got := e.shim
		for _, f := range e.flags {
			got += " " + f
		}
		for _, h := range e.hide {
			got += " hide " + h
		}
		if len(e.settings) > 0 {
			got += " " + target.Target{Options: e.settings}.String()
		}
		if e.config != "" {
			got += " with " + e.config
		}
		if err != nil || got != tt.want || e.target.String() != tt.target || len(e.notes()) == 0 {
			t.Errorf("%s: %q, %v, %+v; want %q", tt.target, got, err, e, tt.want)
		}
	}
}

// The runtime's own options apply unless the target sets them.
func TestFitKeepsTheRuntimesOptions(t *testing.T) {
	r := aRunsc
	r.Options = []target.Option{{Name: "network", Value: "none"}, {Name: "platform", Value: "kvm"}}
	e, err := fitContainerd(engine.Session{}, programs{runsc: "/shim"}, r, enginetest.Parse(t, "containerd/runsc@platform=ptrace"))
	must.Do(t, err)
	if got, want := runscConfig(e), "binary_name = \"/usr/bin/runsc\"\n[runsc_config]\n  \"network\" = \"none\"\n  \"platform\" = \"ptrace\"\n"; got != want {
		t.Errorf("configuration %q, want %q", got, want)
	}
	e, err = fitCRIO(engine.Session{}, programs{}, r, enginetest.Parse(t, "crio/runsc"))
	if want := []string{"--network=none", "--platform=kvm", "--overlay2=root:memory"}; err != nil || !cmp.Equal(e.flags, want) {
		t.Errorf("flags %q, %v; want %q", e.flags, err, want)
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{"/usr/bin": `"/usr/bin"`, `a"b\c`: `"a\"b\\c"`, "<&>": `"<&>"`, "\n\x01": `"\n\u0001"`} {
		if got := quote(text); got != want {
			t.Errorf("quote(%q) = %s, want %s", text, got, want)
		}
	}
}

// The host's limits of a pod leave room for the virtual machine, and only for limits that exist.
func TestPodLimits(t *testing.T) {
	limits := engine.Resources{CPU: 0.5, Memory: 64 << 20, PIDs: 7}
	if got, want := (handler{}).podLimits(limits), (cgroup.Limits{CPU: 0.5, Memory: 64 << 20, PIDs: 7}); got != want {
		t.Errorf("without a virtual machine: %+v, want %+v", got, want)
	}
	for _, tt := range []struct {
		memory int64 // of the guest, in MiB
		limits engine.Resources
		want   cgroup.Limits
	}{
		{256, engine.Resources{CPU: 0.5, Memory: 64 << 20}, cgroup.Limits{CPU: 0.75, Memory: (64 + 160 + 256) << 20}},
		{0, engine.Resources{Memory: 64 << 20}, cgroup.Limits{Memory: (64 + 160 + 2048) << 20}},
		{256, engine.Resources{}, cgroup.Limits{}},
	} {
		h := handler{guest: &kata.Config{MemoryMiB: tt.memory}}
		if got := h.podLimits(tt.limits); got != tt.want {
			t.Errorf("%+v with %d MiB: %+v, want %+v", tt.limits, tt.memory, got, tt.want)
		}
	}
}
