package image

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/record"
)

// root is the top of the source tree.
const root = "../.."

// architectures have programs under version control.
var architectures = []string{"amd64", "arm64", "riscv64"}

// recorded returns the record of the programs that are under version control: the compiler of each architecture, and the checksum of each file.
func recorded(t *testing.T) (compilers, sums map[string]string) {
	t.Helper()
	text, err := os.ReadFile("programs.sum")
	must.Do(t, err)
	compilers, sums = map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if arch, compiler, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok && slices.Contains(architectures, arch) {
			compilers[arch] = compiler
		} else if sum, file, ok := strings.Cut(line, "  "); ok {
			sums[file] = sum
		}
	}
	return compilers, sums
}

// The sources are unchanged since the build of the programs that go install embeds.
func TestProgramsAreOfTheirSources(t *testing.T) {
	_, sums := recorded(t)
	var files []string
	for _, pattern := range []string{
		"scripts/build-probe.sh", "probe/*.[chS]", "linpack/*.c", "internal/image/probe/probe-*", "internal/image/debian/linpack/linpack-*",
	} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		must.Do(t, err)
		for _, match := range matches {
			file, err := filepath.Rel(root, match)
			must.Do(t, err)
			files = append(files, file)
			program, err := os.ReadFile(match)
			must.Do(t, err)
			if sum := sha256.Sum256(program); sums[file] != hex.EncodeToString(sum[:]) {
				t.Errorf("%s is not as it was when the programs were built: run make probes", file)
			}
		}
	}
	for file := range sums {
		if !slices.Contains(files, file) {
			t.Errorf("programs.sum has %s, which does not exist: run make probes", file)
		}
	}
	if n := 2 * len(architectures); len(files) < n+40 {
		t.Errorf("only %d files are compared, and %d of them are programs", len(files), n)
	}
}

// The compiler that built the programs builds the same bytes again, in another directory.
func TestProgramsAreReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the programs")
	}
	want, _ := recorded(t)
	for arch, compiler := range map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"} {
		t.Run(arch, func(t *testing.T) {
			if arch == runtime.GOARCH {
				compiler = "gcc"
			}
			version, err := exec.CommandContext(t.Context(), compiler, "--version").Output()
			if err != nil {
				record.Skip(t, "no compiler "+compiler+"; scripts/setup.sh build cross installs it")
			}
			head, _, _ := strings.Cut(string(version), "\n")
			if _, has, _ := strings.Cut(head, " "); has != want[arch] {
				record.Skip(t, "the programs were built by gcc "+want[arch]+", and this is "+has)
			}
			out := t.TempDir()
			cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/build-probe.sh"), arch)
			cmd.Env = append(os.Environ(), "PROBE_OUT="+out)
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("build the programs: %v: %s", err, output)
			}
			for _, file := range []string{"probe/probe-" + arch, "debian/linpack/linpack-" + arch} {
				program, err := os.ReadFile(filepath.Join(out, filepath.Base(file)))
				must.Do(t, err)
				embedded, err := os.ReadFile(file)
				must.Do(t, err)
				if string(program) != string(embedded) {
					t.Errorf("the sources do not give the bytes of %s: run make probes", file)
				}
			}
		})
	}
}
