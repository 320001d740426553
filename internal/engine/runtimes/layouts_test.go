package runtimes

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
)

// A runtime that an engine brings is found too.
//
// Invariant layouts.
func TestLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		m.Redirect(t, &engine.SystemDirs)
		for _, name := range []string{"runc", "crun"} {
			if path, err := find(name); m.Has(name) {
				m.Expect(t, name, path, err)
			}
		}
	})
}
