package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Kata Containers are found by their shim, unless the user defines the runtime.
func TestKataIsFoundByItsShim(t *testing.T) {
	l, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
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
	if f := find(); !engine.Unsupported(f.Err) || f.Err.Error() != "containerd/kata: containerd-shim-kata-v2 is not on PATH; install Kata Containers 3, on a machine with KVM" {
		t.Errorf("without the shim: %v", f.Err)
	}
	if err := os.WriteFile(filepath.Join(dir, "containerd-shim-kata-v2"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if f := find(); f.Err != nil || f.Type != "io.containerd.kata.v2" || f.Isolation != engine.VM || f.Binary != "" {
		t.Errorf("with the shim: %+v, %v", f.Runtime, f.Err)
	}
	s.Runtimes = map[string]target.Runtime{"kata": {Type: "io.containerd.kata-qemu.v2"}}
	if f := find(); f.Err != nil || f.Type != "io.containerd.kata-qemu.v2" {
		t.Errorf("with the user's type: %+v, %v", f.Runtime, f.Err)
	}
}
