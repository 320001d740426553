package podman

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
)

// Invariant layouts.
func TestLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		if !m.Has(name) {
			return
		}
		m.Redirect(t, &engine.SystemDirs)
		m.Redirect(t, &conmonDirs)
		p, err := locate(engine.Session{})
		m.Expect(t, name, p.podman, err)
		m.Expect(t, conmon, p.conmon, err)
	})
}
