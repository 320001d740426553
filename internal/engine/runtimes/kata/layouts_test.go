package kata

import (
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
)

// Invariant layouts.
func TestLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		if !m.Has(Shim) {
			return
		}
		m.Redirect(t, &engine.SystemDirs)
		m.Redirect(t, &shimDirs)
		m.Redirect(t, &configDirs)
		shim := FindShim(Type)
		m.Expect(t, Shim, shim, nil)
		file, err := find(dirsFor(shim), "", "")
		m.Expect(t, defaultFile, file, err)
	})
}

// The administrator's file precedes the file in the shim's installation, and another installation comes last.
func TestConfigurationOfTheShim(t *testing.T) {
	dir := installed(t, map[string]string{"etc/" + defaultFile: "", "snap/share/defaults/kata-containers/" + defaultFile: "", "opt/" + defaultFile: "", "snap/bin/" + Shim: ""})
	original := configDirs
	t.Cleanup(func() { configDirs = original })
	file := func(name string) string { return filepath.Join(dir, name, defaultFile) }
	for _, c := range []struct{ first, shim, want string }{
		{"etc", filepath.Join(dir, "snap/bin", Shim), file("etc")},
		{"none", filepath.Join(dir, "snap/bin", Shim), file("snap/share/defaults/kata-containers")},
		{"none", "", file("opt")},
	} {
		configDirs = []string{filepath.Join(dir, c.first), filepath.Join(dir, "opt")}
		if got, err := find(dirsFor(c.shim), "", ""); got != c.want || err != nil {
			t.Errorf("after %s with the shim %q: %q, %v; want %q", c.first, c.shim, got, err, c.want)
		}
	}
}
