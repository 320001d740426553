package cri

import (
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
)

// The private engines find their helpers and the network plug-ins in each distribution, and an engine of the user its usual socket.
//
// Invariant layouts.
func TestLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		m.Redirect(t, &engine.SystemDirs)
		m.Redirect(t, &cniDirs)
		m.Redirect(t, &crioFiles)
		for name, helpers := range map[string][]string{"containerd": {runcShim}, "crio": {"conmon", "pinns"}} {
			path, err := engine.Session{}.Program(name)
			if err != nil {
				continue // the tests of engine prove that each installed engine is found
			}
			p := programs{engine: path}
			for _, helper := range helpers {
				path, err := p.helper(engine.Session{}, name, helper)
				m.Expect(t, helper, path, err)
			}
			dir, err := networkPlugins(engine.Session{}, path)
			for _, plugin := range pluginNames {
				if m.Has(plugin) {
					m.Expect(t, plugin, filepath.Join(dir, plugin), err)
				}
			}
		}
	})
}

// The sockets of clusters are in no list: their kubelets stop the pods of others.
func TestSocketsOfLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		for _, b := range []product{containerd, crio} {
			want := ""
			if m.HasPath(b.socket) {
				want = m.At(b.socket)
			}
			b.socket = m.At(b.socket)
			d := Driver{product: &b}
			if socket, must := d.address(engine.Session{}); socket != want || must {
				t.Errorf("the socket of %s is %q, %v; want %q", b.title, socket, must, want)
			}
		}
	})
}
