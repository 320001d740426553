package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/trace"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/record"
)

// beforeCreate is a shell script that executes a runtime. work comes before it if the runtime creates a container.
func beforeCreate(t *testing.T, dir, name, binary, work string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	text := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" create \"*) %s ;; esac\nexec %s \"$@\"\n", work, binary)
	must.Do(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

// needTracer skips the test on a machine that cannot trace.
func needTracer(t *testing.T) {
	t.Helper()
	if err := trace.Check(); err != nil {
		record.Skip(t, err.Error())
	}
}

// TestRealCounts compares builds of crun by their counts: an equal one, and one with a mount more, which fails in one pass. A file of expected counts shows
// the same.
func TestRealCounts(t *testing.T) {
	needRoot(t, "crun")
	needTracer(t)
	t.Parallel()
	binary, err := exec.LookPath("crun")
	must.Do(t, err)
	dir := t.TempDir()
	point := filepath.Join(dir, "point")
	must.Do(t, os.Mkdir(point, 0o700))
	base, equal := beforeCreate(t, dir, "base", binary, "mount --version >/dev/null"), beforeCreate(t, dir, "same", binary, "mount --version >/dev/null")
	mounting := beforeCreate(t, dir, "more", binary, "mount --make-private "+point+" 2>/dev/null || :")

	p := start(t, dir, "ab", "--a", "oci/crun="+base, "--b", "oci/crun="+equal, "--first", "counts", "--fail-on", "counts:all>0")
	p.ends(0)
	p.says(`^No stable count differs, so no time was measured\.$`)
	p = start(t, dir, "ab", "--a", "oci/crun="+base, "--b", "oci/crun="+mounting, "--first", "counts", "--fail-on", "counts:mount>0")
	p.ends(4)
	p.says(` create +runtime +mount +`, `^B is worse than a gate by counts allows\.$`)
	document, err := os.ReadFile(filepath.Join(dir, "out", "ab.json"))
	must.Do(t, err, followsSchema("../..", "ab", document))

	p = start(t, dir, "counts", "record", "counts.txt", "--build", "oci/crun="+base)
	p.ends(0)
	p = start(t, dir, "counts", "check", "counts.txt", "--build", "oci/crun="+equal)
	p.ends(0)
	p = start(t, dir, "counts", "check", "counts.txt", "--build", "oci/crun="+mounting)
	p.ends(4)
	p.says(`^    [+]create: runtime: mount = `)
}

// countPasses is the number of comparisons of equal builds in make test-all.
const countPasses = 200

// TestRealCountsEqual compares equal builds many times beside a process that uses a CPU. No pass may have an alarm.
func TestRealCountsEqual(t *testing.T) {
	cells.Need(t, "cli/counts")
	needRoot(t, "crun", "runc")
	needTracer(t)
	dir := t.TempDir()
	load := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	must.Do(t, load.Start())
	t.Cleanup(func() {
		_ = load.Process.Kill() // the context may have ended it
		_ = load.Wait()
	})
	for n := range countPasses {
		name := []string{"crun", "runc"}[n%2]
		binary, err := exec.LookPath(name)
		must.Do(t, err)
		data, err := os.ReadFile(binary)
		must.Do(t, err)
		builds := [2]string{filepath.Join(dir, name+"-old"), filepath.Join(dir, name+"-new")}
		for _, path := range builds {
			must.Do(t, os.WriteFile(path, data, 0o755))
		}
		p := start(t, dir, "ab", "--a", "oci/"+name+"="+builds[0], "--b", "oci/"+name+"="+builds[1], "--first", "counts", "--fail-on", "counts:all>0")
		p.ends(0)
		if text := p.stdout.String(); !strings.Contains(text, "No stable count differs") {
			t.Fatalf("pass %d has an alarm:\n%s", n, text)
		}
	}
}

// TestRealCountsOfVersions compares the versions of Debian 12 with the pinned ones, whose additional calls are known from their sources: crun mounts more when it
// creates a container, and runc uses the newer calls for mounts. Each gate finds them.
func TestRealCountsOfVersions(t *testing.T) {
	cells.Need(t, "cli/counts")
	needRoot(t, "crun", "runc")
	needTracer(t)
	for _, tt := range []struct{ name, old, latest, gate, line string }{
		{"crun", "1.8.1", "1.21", "counts:mount>0", ` create +runtime +mount +[0-9]+ +[0-9]+`},
		{"runc", "1.1.5", "1.5.2", "counts:fsopen>0", ` create +runtime +fsopen +0 +[1-9]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			latest, err := exec.LookPath(tt.name)
			must.Do(t, err)
			packaged := filepath.Join("/usr/bin", tt.name)
			for binary, version := range map[string]string{packaged: tt.old, latest: tt.latest} {
				output, err := exec.CommandContext(t.Context(), binary, "--version").Output()
				if want := tt.name + " version " + version; err != nil || !strings.HasPrefix(string(output), want) {
					record.Skip(t, fmt.Sprintf("%s is not %s (%v): install the package %s of Debian 12, and run scripts/runtimes.sh %s", binary, want, err, tt.name, tt.name))
				}
			}
			p := start(t, t.TempDir(), "ab", "--a", "oci/"+tt.name+"="+packaged, "--b", "oci/"+tt.name+"="+latest, "--first", "counts", "--fail-on", tt.gate)
			p.ends(4)
			p.says(tt.line, `^B is worse than a gate by counts allows\.$`)
		})
	}
}
