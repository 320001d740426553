package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestCheck: an error of one architecture in code, in a test or in an imported module is found there alone, and once.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.org/m\n\ngo 1.24\n\nrequire example.org/dep v0.0.0\n\nreplace example.org/dep => ./dep\n",
		"dep/go.mod":     "module example.org/dep\n\ngo 1.24\n",
		"dep/d.go":       "package dep\n\nconst A = \"A\"\n",
		"dep/d_arm64.go": "package dep\n\nfunc f() { var n int = A; _ = n }\n",
		"a.go":           "package m\n\nimport (\n\t\"strings\"\n\n\t\"example.org/dep\"\n)\n\nvar lower = strings.ToLower(dep.A)\n",
		"a_arm64.go":     "package m\n\nfunc f() int { return lower }\n",
		"a_test.go":      "package m\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Log(lower) }\n",
		"b_s390x.go":     "package m\n\nimport \"example.org/m/missing\"\n\nvar _ = missing.X\n",
		"c_arm64.go":     "package m\n\nconst word = 1 << 63\n",
		"c_test.go":      "//go:build arm64\n\npackage m\n\nvar number int = word\n",
		"sub/d.go":       "package sub\n",
		"sub/d_amd64.go": "package sub\n\nfunc g() int { return 1 }\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	// On arm64 the errors are in code, in a test and in the module. A missing package is an error, and so is its import.
	for arch, want := range map[string]int{"amd64": 0, "arm64": 3, "s390x": 2} {
		if got, err := check(dir, arch); err != nil || got != want {
			t.Errorf("%s: %d errors, want %d; %v", arch, got, want, err)
		}
	}
	if _, err := check(filepath.Join(dir, "none"), "amd64"); err == nil {
		t.Error("a missing module has no error")
	}
}
