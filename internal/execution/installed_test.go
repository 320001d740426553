package execution

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// listed is an engine with a runtime and further programs.
type listed struct {
	engine.Engine
	binary   string
	programs []string
	err      error
}

func (l listed) Info() engine.Info           { return engine.Info{Binary: l.binary} }
func (l listed) Programs() ([]string, error) { return l.programs, l.err }

// TestInstalledPrograms: the record of a target has the origin and the checksum of each program from the store, once.
func TestInstalledPrograms(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	t.Setenv(parts.Variable, root)
	part := parts.Part{
		Name: "runc", Version: "1.5.2", Programs: []parts.Program{{Name: "runc"}},
		Origin: parts.Origin{Kind: parts.Build, Source: "example.com/runc@v1.5.2", Digest: "h1:x="},
	}
	program := filepath.Join(root, "runc/1.5.2/bin/runc")
	text, err := json.Marshal(part)
	must.Do(t, err, os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, []byte("abc"), 0o755),
		os.WriteFile(filepath.Join(root, "runc/1.5.2", parts.Record), text, 0o644))
	want := []result.Installed{{
		Program: "runc", Part: "runc", Version: "1.5.2", Origin: "build of example.com/runc@v1.5.2 (h1:x=)",
		Digest: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	}}
	for name, e := range map[string]engine.Engine{
		"a private engine":    listed{binary: program, programs: []string{"/usr/bin/containerd", program}},
		"the user's own one":  listed{binary: program, err: os.ErrNotExist},
		"without the runtime": listed{programs: []string{program}},
	} {
		list, err := installedPrograms(e)
		must.Do(t, err)
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if list, err := installedPrograms(listed{binary: "/usr/bin/runc"}); err != nil || list != nil {
		t.Errorf("the system's copy: %v, %v", list, err)
	}
}
