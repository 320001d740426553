package cri_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
)

// A CPU set of the engine does not apply to its containers.
func TestEngineCPUs(t *testing.T) {
	for _, d := range []*cri.Driver{cri.NewContainerd(), cri.NewCRIO()} {
		t.Run(d.Describe().Name, func(t *testing.T) {
			name := d.Describe().Name + "/runc"
			enginetest.EngineCPUs(t, d, name, session(t, "", name))
		})
	}
}
