package runner

import (
	"cmp"
	"time"

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
	if err := t.engine.Supports(engine.OnMachine); err != nil {
		return 0, err
	}
	return t.r.Energy.Joules()
}

// gaugeEvery is the interval of the readings of followGauge. Many counters of RAPL hold 65 kJ, which 1 kW fills in a minute.
const gaugeEvery = 30 * time.Second

// followGauge reads the gauge at intervals until stop is called, if the benchmark measures energy: a counter of RAPL may wrap around
// more than once between two readings of the benchmark.
func (t *trial) followGauge() (stop func()) {
	if t.r.Energy == nil || !t.work.Needs().Energy {
		return func() {}
	}
	return t.r.Clock.Every(gaugeEvery, func() { _, _ = t.r.Energy.Joules() }) // the benchmark's next reading returns a lasting error
}

// hasEnergy returns an *engine.UnsupportedError if the host has no gauge.
func (r *run) hasEnergy() error {
	if r.Energy != nil {
		return nil
	}
	return &engine.UnsupportedError{What: "energy", Reason: cmp.Or(r.NoEnergy, "the targets are not on this host")}
}
