package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
)

// TestRealSetup: a part is installed after a container has run with it. A run then measures it beside the system's copy, and records its origin and
// checksum.
//
// Invariant store-path.
func TestRealSetup(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	system, err := exec.LookPath("runc")
	must.Do(t, err)
	system, err = filepath.EvalSymlinks(system)
	must.Do(t, err)
	bytes, err := os.ReadFile(system)
	must.Do(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	source, root := filepath.Join(dir, "source"), filepath.Join(dir, "runtimes")
	part := parts.Part{
		Name: "runc", Version: "1.5.2", Licence: "Apache-2.0", Dir: filepath.Join(source, "runc", "1.5.2"),
		Origin: parts.Origin{Kind: parts.Build, Source: "example.com/runc@v1.5.2", Digest: "h1:x="},
	}
	program := filepath.Join(part.Bin(), "runc")
	must.Do(t, os.MkdirAll(part.Bin(), 0o755), os.WriteFile(program, bytes, 0o755))
	sum, err := parts.Digest(program)
	must.Do(t, err)
	part.Programs = []parts.Program{{Name: "runc", SHA256: sum}}
	record, err := json.Marshal(part)
	must.Do(t, err, os.WriteFile(filepath.Join(part.Dir, parts.Record), record, 0o644))

	environment := parts.Variable + "=" + root
	p := startCommand(t, dir, "env", environment, "touchstone", "setup", "--yes", "--from", source, "runc")
	p.ends(0)
	destination := filepath.Join(root, "runc", "1.5.2")
	if p.says("running a container with runc@1.5.2"); !strings.Contains(p.stdout.String(), "installed runc@1.5.2 in "+destination) {
		t.Errorf("setup prints %s", p.stdout.String())
	}
	p = startCommand(t, dir, "env", environment, "touchstone", "benchmark", "--allow-concurrent", "-t", "oci/runc,oci/runc@copy=system", "-d", "out", "--filter", lifecycle, "-n", "2")
	p.ends(0)
	run := export(t, dir, "latest")
	for _, target := range run.Targets {
		switch target.Name {
		case "oci/runc":
			if target.Binary != filepath.Join(destination, "bin/runc") || len(target.Installed) != 1 || target.Installed[0].Digest != "sha256:"+sum ||
				target.Installed[0].Origin != "build of example.com/runc@v1.5.2 (h1:x=)" {
				t.Errorf("the part is recorded as %+v", target)
			}
		default:
			if strings.HasPrefix(target.Binary, root) || target.Installed != nil {
				t.Errorf("the system's copy is recorded as %+v", target)
			}
		}
	}
	if len(run.Targets) != 2 {
		t.Errorf("the run has %d targets", len(run.Targets))
	}
}
