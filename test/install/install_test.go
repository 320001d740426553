// Package install installs Touchstone with Go alone, and measures with the installed program. The package has only tests.
package install

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// root is the top of the source tree.
const root = "../.."

// release is the version that the proxy serves.
var release = module.Version{Path: "github.com/touchstone-bench/touchstone", Version: "v0.0.1"}

// source is a file of the source tree, for a module's archive.
type source struct{ name string }

func (s source) Path() string                 { return s.name }
func (s source) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(root, s.name)) }
func (s source) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(root, s.name)) }

// proxy writes the files of a module proxy that serves the files under version control, and returns its address.
func proxy(t *testing.T) string {
	t.Helper()
	tracked, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	must.Do(t, err)
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimRight(string(tracked), "\x00"), "\x00") {
		files = append(files, source{name})
	}
	base := t.TempDir()
	dir := filepath.Join(base, release.Path, "@v")
	must.Do(t, os.MkdirAll(dir, 0o755))
	archive, err := os.Create(filepath.Join(dir, release.Version+".zip"))
	must.Do(t, err)
	must.Do(t, zip.Create(archive, release, files))
	must.Do(t, archive.Close())
	description, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must.Do(t, err)
	must.Do(t, os.WriteFile(filepath.Join(dir, "list"), []byte(release.Version+"\n"), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(dir, release.Version+".mod"), description, 0o644))
	must.Do(t, os.WriteFile(filepath.Join(dir, release.Version+".info"), fmt.Appendf(nil, `{"Version": %q}`, release.Version), 0o644))
	return "file://" + base
}

// With go install and nothing else, the program measures a real runtime: it embeds the programs that run in containers. The folder of Go's modules is
// empty at first; the proxies are the source tree, and the modules that this machine has downloaded before.
func TestGoInstall(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("builds the program and makes containers; needs root")
	}
	_, err := exec.LookPath("runc")
	if err != nil {
		err = &engine.UnsupportedError{What: "oci/runc", Reason: err.Error()}
	}
	enginetest.Require(t, "oci/runc", err)
	modules, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	must.Do(t, err)
	downloads := filepath.Join(strings.TrimSpace(string(modules)), "cache/download")
	address := proxy(t)
	path, results := t.TempDir(), t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = path
		// With -trimpath the build uses the objects of other builds.
		cmd.Env = append(os.Environ(), "GOPATH="+path, "GOMODCACHE=", "GOBIN=", "GOFLAGS=-trimpath -modcacherw", "GOWORK=off", "GOSUMDB=off", "CGO_ENABLED=0",
			"GOPROXY="+address+",file://"+downloads)
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
		}
		return string(output)
	}
	run("go", "install", release.Path+"/cmd/touchstone@"+release.Version)
	program := filepath.Join(path, "bin/touchstone")
	if output := run(program, "version"); !strings.Contains(output, release.Version) {
		t.Errorf("the version is not %s:\n%s", release.Version, output)
	}
	run(program, "benchmark", "-d", results, "--targets", "native,oci/runc", "--filter", "operations.container.lifecycle", "--runs", "2", "--warmup", "0")
	table := run(program, "export", "-d", results, "--format", "tsv")
	for _, name := range []string{"native", "oci/runc"} {
		if !strings.Contains(table, name+"\t") {
			t.Errorf("the results have nothing of %s:\n%s", name, table)
		}
	}
}
