package managed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
)

// A private daemon can open each program that it is given, in each distribution: the hidden parts of its path stay visible.
//
// Invariant linked-programs.
func TestVisibleInLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		v := visible{private: m.Under(hiddenDirs("/none"))}
		for _, link := range m.Under(systemLinks) {
			v.addPath(link)
		}
		path := filepath.SplitList(os.Getenv("PATH"))
		for _, dir := range path {
			v.addPath(dir)
		}
		var programs []string
		for _, dir := range append(path, m.Under(engine.SystemDirs)...) {
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			programs = append(programs, files...)
		}
		for _, program := range programs {
			v.addPath(program)
		}
		isVisible := func(path string) bool {
			contains := func(parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }
			return !slices.ContainsFunc(v.private, contains) || slices.ContainsFunc(v.keep, contains)
		}
		for _, program := range programs {
			links, real, err := resolve(program)
			for _, path := range append(links, real) {
				if err != nil || !isVisible(path) {
					t.Errorf("%s of %s is hidden, %v", path, program, err)
				}
			}
		}
		for _, store := range m.Under([]string{"/nix/store", "/gnu/store"}) {
			if !isVisible(store) {
				t.Errorf("%s is hidden", store)
			}
		}
	})
}
