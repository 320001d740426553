package runner

import "github.com/touchstone-bench/touchstone/internal/engine"

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
	if t.r.Energy == nil {
		reason := t.r.NoEnergy
		if reason == "" {
			reason = "the targets are not on this host"
		}
		return 0, &engine.UnsupportedError{What: "energy", Reason: reason}
	}
	return t.r.Energy.Joules()
}
