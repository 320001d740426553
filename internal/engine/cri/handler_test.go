package cri

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// identify finds the runtime behind a handler of the user's own engine.
func TestIdentify(t *testing.T) {
	l := enginetest.Launcher(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "some-runtime")
	must.Do(t, os.WriteFile(binary, []byte("#!/bin/sh\necho runsc version 7\n"), 0o700))
	s := engine.Session{State: dir, Launcher: l}
	for _, tt := range []struct {
		handler   configured
		isolation engine.Isolation
		version   string
		gVisor    bool
	}{
		{configured{name: "mine", binary: binary}, engine.UserKernel, "runsc version 7", true},
		{configured{name: "mine", shim: shimRunc, binary: binary}, engine.UserKernel, "runsc version 7", true},
		{configured{name: "mine", shim: shimRunc, binary: binary + "x"}, engine.Unknown, "", false},
		{configured{name: "mine", shim: shimRunsc, config: "/etc/runsc.toml"}, engine.UserKernel, shimRunsc, true},
		{configured{name: "mine", shim: "io.containerd.kata.v2"}, engine.VM, "io.containerd.kata.v2", false},
		// The engine does not tell: a runtime of that name on PATH need not be it.
		{configured{name: "runc"}, engine.Unknown, "", false},
	} {
		h := identify(t.Context(), s, enginetest.Parse(t, "mine/"+tt.handler.name), tt.handler)
		if h.Isolation != tt.isolation || h.version != tt.version || h.isGVisor() != tt.gVisor || h.name != tt.handler.name {
			t.Errorf("%+v is %+v", tt.handler, h)
		}
		if len(h.notes) != 1 || !strings.Contains(h.notes[0], tt.handler.name) || !strings.Contains(h.notes[0], tt.handler.shim) || !strings.Contains(h.notes[0], tt.handler.config) {
			t.Errorf("%+v has the notes %q", tt.handler, h.notes)
		}
	}
}

// An unknown error has the advice of its handler or of its engine.
func TestAdvice(t *testing.T) {
	for want, e := range map[string]*Engine{
		"shim=runc":                        {service: &service{client: &client{about: about{engine: "containerd"}}}, handler: handler{configured: configured{shim: shimRunsc}}},
		diagnosis.ServiceLog("containerd"): {service: &service{client: &client{about: about{engine: "containerd"}}}},
		diagnosis.ServiceLog("crio"):       {service: &service{client: &client{about: about{engine: "cri-o"}}}},
		"-t oci/crun":                      {service: &service{client: &client{}, private: &managed.Daemon{}}, info: engine.Info{Target: enginetest.Parse(t, "crio/crun")}},
		"-t oci/runsc":                     {service: &service{client: &client{}, private: &managed.Daemon{}}, info: engine.Info{Target: enginetest.Parse(t, "containerd/runsc")}},
	} {
		if got := e.advice(); !strings.Contains(got, want) {
			t.Errorf("the advice is %q, want it to contain %s", got, want)
		}
	}
}

// The test container of a target has another name than the one before, which may hang.
func TestTryID(t *testing.T) {
	s := &service{name: "containerd"}
	if first, second := s.tryID("r"), s.tryID("r"); first == second || !strings.HasPrefix(first, engine.Prefix+"r-try-containerd-") {
		t.Errorf("IDs %q and %q", first, second)
	}
}

// notify sends a message as a service does.
func notify(path, text string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return errors.Join(err, conn.Close())
}

// wait finds the message of readiness among other messages in systemd's form.
func TestNotify(t *testing.T) {
	n, err := newNotifySocket(filepath.Join(t.TempDir(), "notify"))
	must.Do(t, err)
	t.Cleanup(func() { enginetest.Check(t, n.close()) })
	say := func(text string) {
		t.Helper()
		must.Do(t, notify(n.path, text))
	}
	for range 2 { // it can be started again
		say("STATUS=READY=1")
		say("MAINPID=7\nREADY=1\n")
		enginetest.Check(t, n.wait(t.Context()))
	}
	deadCtx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.wait(deadCtx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait in a cancelled context: %v", err)
	}
}

func TestNetworkPlugins(t *testing.T) {
	partDir, fullDir := t.TempDir(), t.TempDir()
	for _, plugin := range []string{"bridge", "host-local", "loopback"} {
		for _, dir := range []string{partDir, fullDir} {
			if dir == partDir && plugin == "loopback" {
				continue
			}
			must.Do(t, os.WriteFile(filepath.Join(dir, plugin), nil, 0o700))
		}
	}
	defer func(dirs, files []string) { cniDirs, crioFiles = dirs, files }(cniDirs, crioFiles)
	crioFiles = nil
	cniDirs = []string{"/no/such", partDir}
	for _, c := range []struct{ name, given, program, path, want string }{
		{"a usual directory", "", "/usr/bin/containerd", "/usr/bin:/bin", "of the list"},
		{"on PATH", "", "/usr/bin/containerd", "/no/such:" + fullDir, fullDir},
		{"beside the engine", "", filepath.Join(fullDir, "containerd"), "", fullDir},
		{"the folder of --engine-bin", fullDir, "/usr/bin/containerd", "", fullDir},
		{"a folder without all of them", partDir, filepath.Join(fullDir, "containerd"), fullDir, ""},
		{"a folder that is missing", "/no/such", "/usr/bin/containerd", fullDir, ""},
		{"nowhere", "", "/usr/bin/containerd", "/usr/bin", ""},
	} {
		t.Setenv("PATH", c.path)
		want := c.want
		if want == "of the list" {
			cniDirs, want = []string{"/no/such", partDir, fullDir}, fullDir
		} else {
			cniDirs = []string{"/no/such", partDir}
		}
		s := engine.Session{Engines: map[string]string{engine.CNI: c.given}}
		dir, err := networkPlugins(s, c.program)
		if dir != want || (err == nil) != (want != "") {
			t.Errorf("%s: networkPlugins = %q, %v; want %q", c.name, dir, err, want)
		}
		if err != nil && (!strings.Contains(err.Error(), "loopback") || !strings.Contains(err.Error(), cmp.Or(c.given, partDir))) {
			t.Errorf("%s: %v; want the plug-ins and the place", c.name, err)
		}
	}
}

// A private engine has handlers for targets whose requirements the host does not meet: they are checked when the target is opened.
func TestPrivateHandlerChecksTheHost(t *testing.T) {
	kataTarget := target.Target{Engine: "containerd", Runtime: "kata"}
	svc := &service{entries: map[string]entry{
		kataTarget.String(): {target: kataTarget, runtime: runtimes.Runtime{Name: "kata", Guest: &kata.Config{Program: "/no/such/hypervisor"}}},
	}}
	_, err := NewContainerd().privateHandler(t.Context(), kataTarget, engine.Session{}, svc)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), "containerd/kata: the hypervisor /no/such/hypervisor does not exist") {
		t.Errorf("a handler without its hypervisor: %v", err)
	}
}

// Without the cgroup of a pod nothing proves the platform, so a start on the platform kvm fails.
func TestNoProofOfKVM(t *testing.T) {
	if err := (&container{}).proveKVM(); !errors.Is(err, runtimes.ErrNoProofOfKVM) {
		t.Errorf("proveKVM without a cgroup: %v", err)
	}
}

// containerd finds the shims by their names, also if their files have others.
func TestShimsAreFoundByName(t *testing.T) {
	dir := t.TempDir()
	p := programs{engine: "/opt/containerd/bin/containerd", runc: "/opt/shims/runc-shim-2.1", runsc: "/opt/gvisor/shim"}
	entries := []entry{
		{runtime: runtimes.Runtime{Type: "io.containerd.kata.v2", Shim: "/opt/kata/bin/shim-go"}},
		{runtime: runtimes.Runtime{Type: "io.containerd.kata-qemu.v2", Shim: "/opt/kata/bin/shim-qemu"}},
		{runtime: runtimes.Runtime{Type: "io.containerd.unknown.v1"}},
	}
	path, err := shimPath(filepath.Join(dir, "bin"), p, entries)
	if err != nil || !strings.HasPrefix(path, filepath.Join(dir, "bin")+":/opt/containerd/bin:/opt/kata/bin:") {
		t.Errorf("shimPath = %q, %v", path, err)
	}
	for name, want := range map[string]string{
		"containerd-shim-runc-v2": p.runc, "containerd-shim-runsc-v1": p.runsc, "containerd-shim-kata-v2": "/opt/kata/bin/shim-go",
		"containerd-shim-kata-qemu-v2": "/opt/kata/bin/shim-qemu", "containerd-shim-unknown-v1": "",
	} {
		if destination, err := os.Readlink(filepath.Join(dir, "bin", name)); destination != want || (err == nil) != (want != "") {
			t.Errorf("%s leads to %q, %v; want %q", name, destination, err, want)
		}
	}
}

// A helper is beside its engine, also behind a link, in the engine's libexec or on PATH, unless the session has its path.
func TestHelpers(t *testing.T) {
	dirs := map[string]string{}
	for _, name := range []string{"engine", "path", "given"} {
		dirs[name] = t.TempDir()
	}
	prefix := t.TempDir()
	dirs["link"], dirs["libexec"] = filepath.Join(prefix, "bin"), filepath.Join(prefix, "libexec/crio")
	must.Do(t, os.MkdirAll(dirs["link"], 0o700), os.MkdirAll(dirs["libexec"], 0o700))
	write := func(dir, name string, mode os.FileMode) string {
		path := filepath.Join(dirs[dir], name)
		must.Do(t, os.WriteFile(path, nil, mode))
		return path
	}
	p := programs{engine: filepath.Join(dirs["link"], "crio")}
	must.Do(t, os.Symlink(write("engine", "crio-1.34", 0o700), p.engine))
	t.Setenv("PATH", dirs["path"])
	inLink, linkTarget, inLibexec, onPath := write("link", "a", 0o700), write("engine", "b", 0o700), write("libexec", "c", 0o700), write("path", "d", 0o700)
	write("path", "a", 0o700)
	write("path", "b", 0o700)
	write("link", "d", 0o600) // it cannot be executed
	override := write("given", "another-name", 0o700)
	for _, c := range []struct{ name, given, want, err string }{
		{"a", "", inLink, ""},
		{"b", "", linkTarget, ""},
		{"c", "", inLibexec, ""},
		{"d", "", onPath, ""},
		{"a", override, override, ""},
		{"e", "", "", "e, which it needs, is neither beside " + p.engine + " nor on PATH; install it, or name it with --engine-bin e=PATH"},
		{"a", dirs["given"], "", "is not a file; correct --engine-bin a=PATH"},
		{"a", filepath.Join(dirs["link"], "d"), "", "is not executable; correct --engine-bin a=PATH"},
		{"a", "/no/such", "", "no such file or directory; correct --engine-bin a=PATH"},
	} {
		s := engine.Session{Engines: map[string]string{c.name: c.given}}
		path, err := p.helper(s, "CRI-O", c.name)
		if path != c.want || c.err == "" && err != nil || c.err != "" && (!engine.Unsupported(err) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("helper(%q) with %q = %q, %v; want %q, %q", c.name, c.given, path, err, c.want, c.err)
		}
	}
	if path, err := p.optional(engine.Session{}, "containerd", "e"); path != "" || err != nil {
		t.Errorf("a program that may be missing: %q, %v", path, err)
	}
	if path, err := p.optional(engine.Session{Engines: map[string]string{"e": "/no/such"}}, "containerd", "e"); !engine.Unsupported(err) {
		t.Errorf("a path that does not exist: %q, %v", path, err)
	}
}

// The option copy of a target is no setting of gVisor's shim.
func TestCopyIsNoSetting(t *testing.T) {
	copyTarget := enginetest.Parse(t, "containerd/runsc@platform=ptrace,copy=system")
	e, err := fitContainerd(engine.Session{}, programs{runsc: "/usr/bin/containerd-shim-runsc-v1"}, runtimes.Runtime{Kind: runtimes.KindOf("runsc")}, copyTarget)
	if err != nil || len(e.settings) != 1 || e.settings[0].Name != "platform" || e.target.String() != copyTarget.String() {
		t.Errorf("the handler is %+v, %v", e, err)
	}
	if e, err = fitBinary(runtimes.Runtime{Kind: runtimes.KindOf("runc")}, enginetest.Parse(t, "crio/runc@copy=system")); err != nil || len(e.flags) > 0 {
		t.Errorf("the flags are %q, %v", e.flags, err)
	}
}

// The user's own engine calls the system's runtimes, and no part of touchstone setup.
func TestUsersEngineCallsTheSystem(t *testing.T) {
	l := enginetest.Launcher(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	for version, sub := range map[string]string{"2": "store/runc/2/bin", "1": "usr"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o755),
			os.WriteFile(filepath.Join(dir, sub, "runc"), []byte("#!/bin/sh\necho runc version "+version+"\n"), 0o755))
	}
	t.Setenv(parts.Variable, filepath.Join(dir, "store"))
	t.Setenv("PATH", filepath.Join(dir, "store/runc/2/bin")+":"+filepath.Join(dir, "usr"))
	s := engine.Session{State: t.TempDir(), Launcher: l}
	for _, c := range []configured{{name: "mine", shim: shimRunc}, {name: "mine", shim: shimRunc, binary: "runc"}, {name: "mine", binary: "runc"}} {
		if h := identify(t.Context(), s, enginetest.Parse(t, "containerd/mine"), c); h.binary != filepath.Join(dir, "usr/runc") || h.version != "runc version 1" {
			t.Errorf("%+v calls %s, %s", c, h.binary, h.version)
		}
	}
}
