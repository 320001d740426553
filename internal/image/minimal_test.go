package image

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// The kernel requires a segment whose offset equals its address modulo the size of a page, and an entry point in it.
func TestMinimalProgram(t *testing.T) {
	want := map[string]elf.Machine{
		"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm": elf.EM_ARM, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV,
	}
	if len(MinimalArchitectures()) != len(want) {
		t.Errorf("MinimalArchitectures() = %q", MinimalArchitectures())
	}
	for _, arch := range MinimalArchitectures() {
		program, err := MinimalProgram(arch)
		must.Do(t, err)
		f, err := elf.NewFile(strings.NewReader(string(program)))
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		if f.Machine != want[arch] || f.Type != elf.ET_EXEC || f.Data != elf.ELFDATA2LSB {
			t.Errorf("%s: %v, %v, %v", arch, f.Machine, f.Type, f.Data)
		}
		load := f.Progs[0]
		if load.Type != elf.PT_LOAD || load.Vaddr%load.Align != load.Off%load.Align || load.Filesz != uint64(len(program)) || load.Flags&elf.PF_W != 0 {
			t.Errorf("%s: the segment is %+v, and the file has %d bytes", arch, load.ProgHeader, len(program))
		}
		if code := len(machines[arch].code); f.Entry != load.Vaddr+uint64(len(program)-code) {
			t.Errorf("%s: the entry point %#x is not the beginning of the code", arch, f.Entry)
		}
	}
	if _, err := MinimalProgram("m68k"); err == nil || !strings.Contains(err.Error(), "arm64") {
		t.Errorf("MinimalProgram(m68k): %v, want the known architectures", err)
	}
}

// The host's kernel runs the program, with and without arguments.
func TestMinimalProgramRuns(t *testing.T) {
	program, err := MinimalProgram(runtime.GOARCH)
	must.Do(t, err)
	file := filepath.Join(t.TempDir(), "program")
	must.Do(t, os.WriteFile(file, program, 0o755))
	for _, args := range [][]string{nil, {"exit", "0"}} {
		var exit *exec.ExitError
		if err := exec.Command(file, args...).Run(); !errors.As(err, &exit) || exit.ExitCode() != MinimalCode {
			t.Errorf("with the arguments %q: %v, want exit code %d", args, err, MinimalCode)
		}
	}
}

// Engines read the platform from the configuration. Each call publishes a new image.
func TestMinimal(t *testing.T) {
	r := newRegistry(t)
	dir := filepath.Join(t.TempDir(), "rootfs")
	ref, program, err := r.Minimal(t.Context(), "arm", dir)
	must.Do(t, err)
	if content, err := os.ReadFile(filepath.Join(dir, ProbePath)); err != nil || string(content) != string(program) {
		t.Errorf("the directory has another program: %v", err)
	}
	parsed, err := name.ParseReference(ref, name.Insecure)
	must.Do(t, err)
	img, err := remote.Image(parsed)
	must.Do(t, err)
	config, err := img.ConfigFile()
	if err != nil || config.Platform().String() != "linux/arm/v7" {
		t.Errorf("the platform is %v, %v", config.Platform(), err)
	}
	second, _, err := r.Minimal(t.Context(), "arm", filepath.Join(t.TempDir(), "rootfs"))
	if err != nil || second == ref {
		t.Errorf("a second image is %s, %v", second, err)
	}
	if _, _, err := r.Minimal(t.Context(), "arm", dir); err == nil {
		t.Error("a used directory is accepted")
	}
	if _, _, err := r.Minimal(t.Context(), "m68k", filepath.Join(t.TempDir(), "rootfs")); err == nil {
		t.Error("an unknown architecture is accepted")
	}
}
