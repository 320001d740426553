package runtimes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/vmhost"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Kata Containers are found by their shim, unless the user defines the runtime.
func TestKataIsFoundByItsShim(t *testing.T) {
	l := launcher(t)
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	s := engine.Session{Launcher: l, State: t.TempDir()}
	find := func() Found {
		t.Helper()
		found := Find(t.Context(), s, "containerd")
		if slices.ContainsFunc(found, func(f Found) bool { return f.Name == "kata-runtime" }) {
			t.Error("kata-runtime, a utility, is among the runtimes")
		}
		i := slices.IndexFunc(found, func(f Found) bool { return f.Name == "kata" })
		if i < 0 {
			t.Fatal("kata is not among the runtimes")
		}
		return found[i]
	}
	if kata.FindShim(kata.Type) == "" { // this host has none elsewhere
		if f := find(); !engine.Unsupported(f.Err) || !strings.Contains(f.Err.Error(), "containerd/kata: containerd-shim-kata-v2 is neither on PATH nor in /opt/kata/bin; install Kata") {
			t.Errorf("without the shim: %v", f.Err)
		}
	}
	defer func(was func(engine.Session) vmhost.Host) { hostOf = was }(hostOf)
	root := t.TempDir()
	for _, file := range []string{"dev/kvm", "dev/vhost-vsock"} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Join(root, "dev"), 0o700), os.WriteFile(filepath.Join(root, file), nil, 0o600)))
	}
	hostOf = func(engine.Session) vmhost.Host {
		return vmhost.Host{Root: root, Arch: "amd64", Guest: func(context.Context, string) error { return nil }}
	}
	config := filepath.Join(dir, "kata.toml")
	must.Do(t, os.WriteFile(config, []byte("[hypervisor.qemu]\ndefault_memory = 300\n[agent.kata]\ndial_timeout = 70\n"), 0o600))
	shim := "#!/bin/sh\n[ \"$*\" = --version ] && echo 'Kata Containers containerd shim (Golang): id: \"io.containerd.kata.v2\", version: 3.32.0, commit: x'\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "containerd-shim-kata-v2"), []byte(shim), 0o700))
	s.Runtimes = map[string]target.Runtime{"kata": {Options: []target.Option{{Name: "config", Value: config}}}}
	f := find()
	if f.Err != nil || f.Type != "io.containerd.kata.v2" || f.Isolation != engine.VM || f.Binary != "" || f.Version != "Kata Containers 3.32.0" {
		t.Errorf("with the shim: %+v, %v", f.Runtime, f.Err)
	}
	if f.Shim != filepath.Join(dir, "containerd-shim-kata-v2") || f.Guest == nil || f.Guest.MemoryMiB != 300 || f.TryLimit() != AnswerLimit+70*time.Second {
		t.Errorf("with the shim: %+v, %v", f.Runtime, f.TryLimit())
	}
	s.Runtimes = map[string]target.Runtime{"kata": {Type: "io.containerd.kata-qemu.v2", Options: s.Runtimes["kata"].Options}}
	if f := find(); f.Err != nil || f.Type != "io.containerd.kata-qemu.v2" || f.Version != f.Type {
		t.Errorf("with the user's type: %+v, %v", f.Runtime, f.Err)
	}
	parsed := target.Target{Engine: "containerd", Runtime: "kata"}
	// A user's daemon needs the host's syslog too.
	if err := find().CheckUser(t.Context(), s, parsed); !engine.Unsupported(err) || !strings.Contains(err.Error(), "the shim does not start without syslog") {
		t.Errorf("with the user's daemon: %v", err)
	}
	must.Do(t, os.Remove(filepath.Join(root, "dev/vhost-vsock")))
	for hypervisor, want := range map[string]string{"qemu": "/dev/vhost-vsock does not exist", "clh": ""} {
		must.Do(t, os.WriteFile(config, []byte("[hypervisor."+hypervisor+"]\n"), 0o600))
		_, err := Get(t.Context(), s, parsed)
		if want == "" && err != nil || want != "" && (!engine.Unsupported(err) || !strings.Contains(err.Error(), "containerd/kata: "+want)) {
			t.Errorf("%s without vsock: %v, want %q", hypervisor, err, want)
		}
	}
	s.Runtimes = map[string]target.Runtime{"kata": {Options: []target.Option{{Name: "colour", Value: "red"}}}}
	if f := find(); !engine.Unsupported(f.Err) || !strings.HasPrefix(f.Err.Error(), "containerd/kata: it has no option colour") {
		t.Errorf("with an unknown option: %v", f.Err)
	}
}

// The system's copy of a runtime is a target beside the copy of touchstone setup, and the option is no flag of the runtime.
func TestSystemCopy(t *testing.T) {
	l := launcher(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	write := func(path, version string) string {
		t.Helper()
		path = filepath.Join(dir, path)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho runsc version "+version+"\n"), 0o755))
		return path
	}
	copyPath, system := write("store/runsc/2/bin/runsc", "2"), write("usr/bin/runsc", "1")
	t.Setenv(parts.Variable, filepath.Join(dir, "store"))
	t.Setenv("PATH", filepath.Dir(copyPath)+":"+filepath.Dir(system))
	s := engine.Session{Launcher: l, State: t.TempDir()}
	base := target.Target{Engine: "oci", Runtime: "runsc"}
	for want, searched := range map[string]target.Target{copyPath: base, system: base.With(CopyOption, "system").With("network", "host")} {
		r, err := Get(t.Context(), s, searched)
		if err != nil || r.Binary != want {
			t.Errorf("%s is %s, %v, want %s", searched, r.Binary, err, want)
		}
	}
	if flags, err := Flags(base.With(CopyOption, "system").With("network", "host")); err != nil || !slices.Equal(flags, []string{"--network=host"}) {
		t.Errorf("the flags are %q, %v", flags, err)
	}
	for want, searched := range map[string]target.Target{
		"unknown value copy=mine":                base.With(CopyOption, "mine"),
		"the system has no copy of crun":         target.Target{Engine: "oci", Runtime: "crun"}.With(CopyOption, "system"),
		"is given for runc, and the option copy": target.Target{Engine: "oci", Runtime: "runc"}.With(CopyOption, "system"),
	} {
		s.Runtimes = map[string]target.Runtime{"runc": {Path: copyPath}}
		if _, err := Get(t.Context(), s, searched); !engine.Unsupported(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", searched, err, want)
		}
	}
	s.Runtimes = map[string]target.Runtime{"runsc": {Options: []target.Option{{Name: CopyOption, Value: "system"}}}}
	if r, err := Get(t.Context(), s, base); err != nil || r.Binary != system {
		t.Errorf("with the option as a default: %s, %v", r.Binary, err)
	}
}
