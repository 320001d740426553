package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestFilesArePrivate: other users cannot read results, reports and exports, whatever the umask.
//
// Invariant private-files: Other users cannot read results, reports and exports.
func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir() // a folder that all users can change is refused
	defer unix.Umask(unix.Umask(0))
	plan := "version: 1\ntargets: [fake/a]\nbenchmarks: [operations.container.lifecycle]\nblocks: 1\nwarmup: 0\nexport: run.json\n"
	file := filepath.Join(t.TempDir(), "plan.yaml")
	must.Do(t, os.WriteFile(file, []byte(plan), 0o600))
	// Files of an earlier version are replaced.
	must.Do(t, os.WriteFile(filepath.Join(dir, "report.html"), nil, 0o644))
	for _, args := range [][]string{
		{"benchmark", "-f", file},
		{"report", "-O", filepath.Join(dir, "report.txt")},
		{"report", "-o", "json", "-O", filepath.Join(dir, "report.json")},
		{"export", "-O", filepath.Join(dir, "export.json")},
	} {
		var out bytes.Buffer
		app := New(Environment{Stdout: &out, Stderr: &out, RunID: func() string { return "a" }})
		if code := app.Run(t.Context(), append(args, "-d", dir)); code != ExitOK {
			t.Fatalf("touchstone %q: exit code %d\n%s", args, code, out.String())
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 6 {
		t.Fatalf("the folder has %v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		must.Do(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
}
