package ci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // changes samples

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/record"
)

// root is the project.
const root = "../.."

// base has the program, the release and the results of all tests.
var base string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) (code int) {
	var err error
	// go test removes the directory of the test program, also if a signal or a time limit ends the program before this function returns.
	if base, err = os.MkdirTemp(filepath.Dir(os.Args[0]), "data-"); err != nil {
		panic(err)
	}
	defer func() {
		if err := os.RemoveAll(base); err != nil {
			panic(err)
		}
	}()
	return m.Run()
}

// program builds touchstone.
var program = sync.OnceValues(func() (string, error) {
	file := filepath.Join(base, "touchstone")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./cmd/touchstone")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build touchstone: %w\n%s", err, text)
	}
	return file, nil
})

// needs skips the test without the programs of a runner.
func needs(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program, and executes jobs")
	}
	for _, name := range []string{"bash", "curl", "setsid", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			record.Skip(t, "no "+name+" is on PATH")
		}
	}
}

// version returns the version in scripts/ci.sh.
func version(t *testing.T) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^version=\$\{TOUCHSTONE_INPUT_VERSION:-(v[0-9.]+[-a-z0-9.]*)\}$`).FindStringSubmatch(read(t, "scripts/ci.sh"))
	if match == nil {
		t.Fatal("scripts/ci.sh has no version")
	}
	return match[1]
}

// read returns a file of the project.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	must.Do(t, err)
	return string(text)
}

// release is a release on a server: its files by their paths.
type release struct {
	files map[string][]byte
	// signers has the public key of the signature.
	signers string
}

// archiveName is the path of the archive for this machine.
func archiveName(version string) string {
	return fmt.Sprintf("%s/touchstone-%s-linux-%s.tar.gz", version, version, runtime.GOARCH)
}

// newRelease makes a signed release with a program.
func newRelease(t *testing.T, version, program string) *release {
	t.Helper()
	text, err := os.ReadFile(program)
	must.Do(t, err)
	name := archiveName(version)
	r := &release{files: map[string][]byte{name: archive(t, strings.TrimSuffix(path.Base(name), ".tar.gz"), text)}}
	r.sign(t, version)
	return r
}

// archive packs a program like scripts/dist.sh.
func archive(t *testing.T, name string, program []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	must.Do(t, err)
	w := tar.NewWriter(z)
	for _, f := range []struct {
		name string
		text []byte
		mode int64
	}{{"README.md", []byte("text\n"), 0o644}, {"touchstone", program, 0o755}} {
		must.Do(t, w.WriteHeader(&tar.Header{Name: name + "/" + f.name, Mode: f.mode, Size: int64(len(f.text))}))
		_, err := w.Write(f.text)
		must.Do(t, err)
	}
	must.Do(t, w.Close(), z.Close())
	return b.Bytes()
}

// sign writes SHA256SUMS and its signature by a new key.
func (r *release) sign(t *testing.T, version string) {
	t.Helper()
	dir := t.TempDir()
	key, sums := filepath.Join(dir, "key"), filepath.Join(dir, "SHA256SUMS")
	must.Do(t, exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	name := archiveName(version)
	r.files[version+"/SHA256SUMS"] = fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(r.files[name]), path.Base(name))
	must.Do(t, os.WriteFile(sums, r.files[version+"/SHA256SUMS"], 0o600))
	must.Do(t, exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "touchstone", sums).Run())
	signature, err := os.ReadFile(sums + ".sig")
	must.Do(t, err)
	r.files[version+"/SHA256SUMS.sig"] = signature
	public, err := os.ReadFile(key + ".pub")
	must.Do(t, err)
	r.signers = `release namespaces="touchstone" ` + string(public)
}

// clone returns a copy whose files can be replaced.
func (r *release) clone() *release { return &release{maps.Clone(r.files), r.signers} }

// serve starts the server of the releases, and returns its address.
func (r *release) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		text, ok := r.files[strings.TrimPrefix(request.URL.Path, "/releases/")]
		if !ok {
			http.NotFound(w, request)
			return
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/releases"
}

// signed is a release with the program of this project, which tests must not change.
func signed(t *testing.T) *release {
	t.Helper()
	file, err := program()
	must.Do(t, err)
	shared.once.Do(func() { shared.release = newRelease(t, version(t), file) })
	return shared.release
}

var shared struct {
	once    sync.Once
	release *release
}

// results are folders with runs of the fake engine: of an old build, of an equal one, of a slower and of a faster one, and of one run.
var results = sync.OnceValues(func() (string, error) {
	file, err := program()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "results")
	for name, runs := range map[string]int{"old": 6, "equal": 6, "one": 1} {
		for range runs {
			cmd := exec.Command(file, "benchmark", "-d", filepath.Join(dir, name), "--targets", "fake/candidate@jitter=0.02", "--filter", "operations.container.lifecycle",
				"--runs", "6", "--allow-concurrent")
			if text, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("measure %s: %w\n%s", name, err, text)
			}
		}
	}
	for name, factor := range map[string]float64{"slower": 1.1, "faster": 0.9} {
		twin := filepath.Join(dir, name)
		if text, err := exec.Command("cp", "-a", filepath.Join(dir, "equal"), twin).CombinedOutput(); err != nil { // with its modes, which touchstone checks
			return "", fmt.Errorf("copy to %s: %w\n%s", name, err, text)
		}
		if err := scale(twin, factor); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// scale multiplies the samples of the main metric.
func scale(dir string, factor float64) error {
	db, err := sql.Open("sqlite", filepath.Join(dir, "touchstone.db"))
	if err != nil {
		return err
	}
	_, err = db.Exec(`UPDATE sample SET value = value * ? WHERE metric = "CreateAndRun"`, factor)
	return errors.Join(err, db.Close())
}
