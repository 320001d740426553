package doctor

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
)

// A report contains each configuration file of a distribution.
//
// Invariant layouts.
func TestLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		var found []string
		for _, file := range Configuration(m.Root) {
			real, err := filepath.EvalSymlinks(m.At(file.Path))
			if err != nil {
				t.Error(err)
			}
			found = append(found, real)
		}
		for _, dir := range []string{"/etc", "/usr/share/containers", "/var/lib/rancher", "/var/snap"} {
			for _, path := range m.Paths(dir) {
				if extension := filepath.Ext(path); (extension == ".toml" || extension == ".conf" || extension == ".json") && !slices.Contains(found, m.At(path)) {
					t.Errorf("%s is not among %q", path, found)
				}
			}
		}
	})
}
