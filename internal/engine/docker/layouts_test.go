package docker

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
)

// A private daemon finds its programs in each distribution, and a run the sockets of the system's daemon and of a user's.
//
// Invariant layouts.
func TestLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		m.Redirect(t, &engine.SystemDirs)
		paths, err := locate(engine.Session{})
		for _, program := range programs {
			if m.Has("dockerd") && m.Has("containerd-shim-runc-v2") {
				m.Expect(t, program, paths[program], err)
			}
		}
		if got, want := exists(m.At(defaultSocket)), m.HasPath("/run/docker.sock"); got != want {
			t.Errorf("%s exists: %v, want %v", defaultSocket, got, want)
		}
		defer func(pattern string) { usersSockets = pattern }(usersSockets)
		usersSockets = m.At(usersSockets)
		if got, has := othersDaemon(), len(m.Paths("/run/user")) > 0; has && got != m.At("/run/user/1000/docker.sock") || !has && got != "" {
			t.Errorf("a user's socket is %q", got)
		}
	})
}
