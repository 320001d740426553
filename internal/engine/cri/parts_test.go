package cri_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
)

// addPart copies programs of this machine into a store.
func addPart(t *testing.T, root, name string, programs ...string) {
	t.Helper()
	part := parts.Part{Name: name, Version: "1", Dir: filepath.Join(root, name, "1")}
	must.Do(t, os.MkdirAll(part.Bin(), 0o755))
	for _, program := range programs {
		path, err := exec.LookPath(program)
		enginetest.Require(t, "containerd/runc", missing(program, err))
		bytes, err := os.ReadFile(path)
		must.Do(t, err, os.WriteFile(filepath.Join(part.Bin(), program), bytes, 0o755))
		part.Programs = append(part.Programs, parts.Program{Name: program})
	}
	record, err := json.Marshal(part)
	must.Do(t, err, os.WriteFile(filepath.Join(part.Dir, parts.Record), record, 0o644), os.Symlink("1", filepath.Join(root, name, parts.Current)))
}

func missing(program string, err error) error {
	if err == nil {
		return nil
	}
	return &engine.UnsupportedError{What: program, Reason: err.Error()}
}

// A private containerd sees an empty /var/lib, where the store of touchstone setup is. It and its runtime start from there all the same, beside the
// system's copy of the runtime.
//
// Invariant store-path.
func TestEngineOfStore(t *testing.T) {
	s := session(t, "", "containerd/runc", "containerd/runc@copy=system")
	root := "/var/lib/touchstone-test-" + s.RunID
	t.Cleanup(func() { enginetest.Check(t, os.RemoveAll(root)) })
	addPart(t, root, "containerd", "containerd", "containerd-shim-runc-v2")
	addPart(t, root, "runc", "runc")
	t.Setenv(parts.Variable, root)
	t.Setenv("PATH", os.Getenv("PATH")) // the end of the test restores it
	must.Do(t, parts.Prepend())
	d := cri.NewContainerd()
	enginetest.Hold(t, d, "containerd/runc", s)
	for name, isOurs := range map[string]bool{"containerd/runc": true, "containerd/runc@copy=system": false} {
		e := enginetest.Open(t, d, name, s)
		provider, ok := e.(engine.Installed)
		if !ok {
			t.Fatal("the programs of a private engine are not known")
		}
		programs, err := provider.Programs()
		must.Do(t, err)
		uses, err := parts.Uses(programs)
		must.Do(t, err)
		var list []string
		for _, u := range uses {
			list = append(list, u.Program.Name)
		}
		want := "containerd containerd-shim-runc-v2"
		if isOurs {
			want += " runc"
		}
		if strings.HasPrefix(e.Info().Binary, root+"/") != isOurs || strings.Join(list, " ") != want {
			t.Errorf("%s runs %s with the installed programs %q, want %s", name, e.Info().Binary, list, want)
		}
	}
}
