package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/record"
)

// compiler is the version of clang that builds the programs of the kernel: package clang-14 of Debian 12.
const compiler = "Debian clang version 14.0.6"

// The sources are unchanged since the build of the programs.
func TestObjectIsOfItsSources(t *testing.T) {
	sums, err := os.ReadFile("bpf.sum")
	must.Do(t, err)
	files, err := filepath.Glob("kernel/*")
	must.Do(t, err)
	objects, err := filepath.Glob("*_bpfel.*")
	must.Do(t, err)
	for _, file := range append(files, objects...) {
		content, err := os.ReadFile(file)
		must.Do(t, err)
		sum := sha256.Sum256(content)
		if !strings.Contains(string(sums), hex.EncodeToString(sum[:])+"  "+file+"\n") {
			t.Errorf("%s is not as it was when the programs were built: run make bpf", file)
		}
	}
}

// The compiler that built the programs builds the same bytes again, in another directory.
func TestObjectIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the programs")
	}
	version, _ := exec.CommandContext(t.Context(), "clang-14", "--version").Output() // empty without clang
	if !strings.HasPrefix(string(version), compiler+"\n") {
		record.Skip(t, "no "+compiler+"; scripts/setup.sh bpf installs it on Debian 12")
	}
	for file, object := range map[string]string{"trace.go": "bpf", "functions.go": "functions"} {
		out := t.TempDir()
		text, err := os.ReadFile(file)
		must.Do(t, err)
		_, line, _ := strings.Cut(string(text), "\n//go:generate go tool bpf2go ")
		line, _, _ = strings.Cut(line, "\n")
		flags, source, ok := strings.Cut(line, ` -cflags "`)
		options, source, isQuoted := strings.Cut(source, `" `)
		if !ok || !isQuoted {
			t.Fatalf("%s has no line for bpf2go with -cflags: %q", file, line)
		}
		args := append([]string{"tool", "bpf2go", "-output-dir", out, "-go-package", "trace"}, strings.Fields(flags)...)
		args = append(append(args, "-cflags", options), strings.Fields(source)...)
		if output, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
			t.Fatalf("build the programs: %v: %s", err, output)
		}
		for _, name := range []string{object + "_bpfel.go", object + "_bpfel.o"} {
			got, err := os.ReadFile(filepath.Join(out, name))
			must.Do(t, err)
			want, err := os.ReadFile(name)
			must.Do(t, err)
			if string(got) != string(want) {
				t.Errorf("the sources do not give the bytes of %s: run make bpf", name)
			}
		}
	}
}
