package docker_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
)

// A daemon that is kept on CPUs, with its own containerd, keeps no container there.
func TestEngineCPUs(t *testing.T) {
	s, _ := private(t)
	e := enginetest.EngineCPUs(t, docker.NewDriver(), "docker/runc", s)
	if notes := strings.Join(e.Info().Notes, "; "); !strings.Contains(notes, "stay on CPUs 0") {
		t.Errorf("the notes say nothing of it: %s", notes)
	}
}
