package docker_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
)

// The CPUs of the daemon and its containerd do not apply to containers.
func TestEngineCPUs(t *testing.T) {
	s, _ := private(t)
	e := enginetest.EngineCPUs(t, docker.NewDriver(), "docker/runc", s)
	if notes := strings.Join(e.Info().Notes, "; "); !strings.Contains(notes, "stay on CPUs 0") {
		t.Errorf("the notes do not mention the CPUs: %s", notes)
	}
}
