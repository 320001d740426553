package monitor

import (
	"os"
	"testing"
)

func TestSpacesAreCountedOnce(t *testing.T) {
	self, other, shared := os.Getpid(), sleepers(t, 1)[0], spaces{}
	for _, step := range []struct {
		what   string
		pid    int
		extent string
		want   bool
	}{
		{"the first process", self, "a", false},
		{"another process with the same extent", other, "a", false},
		{"the first process again, in the place of one that shares its space", self, "a", true},
		{"a process with another extent", self, "b", false},
	} {
		t.Run(step.what, func(t *testing.T) {
			if got := shared.counted(step.pid, step.extent); got != step.want {
				t.Errorf("counted = %t, want %t", got, step.want)
			}
		})
	}
}

func TestExtentOfProcess(t *testing.T) {
	_, extent, err := rollup("/proc", os.Getpid())
	if err != nil || len(extent) < len("0-1") {
		t.Errorf("rollup() gives the extent %q, %v", extent, err)
	}
}
