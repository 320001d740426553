package enginetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/record"
)

// testPrograms checks that the programs of a target are executable files, and that the runtime is among them.
func (s *suite) testPrograms(t *testing.T) {
	lister, ok := s.engine.(engine.Installed)
	if !ok {
		record.Skip(t, "the engine has no programs on this host")
	}
	programs, err := lister.Programs()
	if engine.Unsupported(err) {
		record.Skip(t, err.Error())
	}
	must.Do(t, err)
	runtime := s.engine.Info().Binary
	for _, p := range programs {
		if info, err := os.Stat(p); err != nil || !filepath.IsAbs(p) || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			t.Errorf("the program %q is not the absolute path of an executable file: %v", p, err)
		}
		if p == runtime {
			runtime = ""
		}
	}
	if runtime != "" {
		t.Errorf("the programs %q lack the runtime %s", programs, runtime)
	}
}
