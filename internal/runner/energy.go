package runner

import (
	"cmp"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Energy is a gauge of the host's energy.
type Energy interface {
	// Source describes the gauge.
	Source() string
	// Joules returns the energy since some moment before the run.
	Joules() (float64, error)
}

// trialEnergy implements bench.Energy.
type trialEnergy struct{ *trial }

func (t trialEnergy) Source() string {
	if t.r.Energy == nil {
		return ""
	}
	return t.r.Energy.Source()
}

func (t trialEnergy) Joules() (float64, error) {
	if err := t.r.hasEnergy(); err != nil {
		return 0, err
	}
	return t.r.Energy.Joules()
}

// hasEnergy returns an *engine.UnsupportedError if the host has no gauge.
func (r *run) hasEnergy() error {
	if r.Energy != nil {
		return nil
	}
	return &engine.UnsupportedError{What: "energy", Reason: cmp.Or(r.NoEnergy, "the targets are not on this host")}
}
