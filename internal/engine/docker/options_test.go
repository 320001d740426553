package docker

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// TestContainersAreUnconfined: a container of Docker has no profile of AppArmor, like the containers of the other engines, with each filter
// of system calls.
//
// Invariant apparmor.
func TestContainersAreUnconfined(t *testing.T) {
	for _, seccomp := range []engine.Seccomp{engine.Unconfined, engine.EnginesSeccomp, engine.DefaultSeccomp} {
		options := securityOptions(seccomp)
		if !slices.Contains(options, "apparmor=unconfined") || !slices.Contains(options, "label=disable") || slices.Contains(options, "seccomp=unconfined") != (seccomp == engine.Unconfined) {
			t.Errorf("with the filter %q the options are %q", seccomp, options)
		}
	}
}
