package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// EnergyMetrics are the metrics that RecordEnergy records. The operation is spelled like "a search for primes".
func EnergyMetrics(operation string) []result.Metric {
	metric := func(name, help string) result.Metric {
		return result.Metric{Name: name, Unit: result.Joules, Better: result.Lower, Consumed: true, Help: help}
	}
	return []result.Metric{
		metric("Energy", "energy of "+operation+": GrossEnergy without IdleEnergy"),
		metric("GrossEnergy", "energy that the machine takes for "+operation),
		metric("IdleEnergy", "energy that the idle machine would take in the same time, from its power right before"),
	}
}

// IdleParam is the parameter for the time of the measurement of the idle machine by RecordEnergy.
func IdleParam(quick, paper time.Duration) Param {
	return Param{
		Name: "idle", Help: "time to measure the power of the idle machine, right before the work",
		Quick: quick.String(), Paper: paper.String(), Check: TimeRange(100*time.Millisecond, time.Minute),
	}
}

// RecordEnergy measures the machine while it idles for a time, and then while work does some operations, which it counts. The
// energy is the machine's, so other programs disturb it.
func RecordEnergy(ctx context.Context, t Trial, idle time.Duration, work func(context.Context) (operations int, err error)) error {
	if _, err := t.Energy.Joules(); err != nil { // before the time passes
		return err
	}
	baseline, err := now(ctx, t, 0)
	if err != nil {
		return err
	}
	start, err := now(ctx, t, idle)
	if err != nil {
		return err
	}
	operations, err := work(ctx)
	if err != nil {
		return err
	}
	finish, err := now(ctx, t, 0)
	if err != nil {
		return err
	}
	rest := start.joules - baseline.joules
	if rest <= 0 {
		return coarse(t, start.at-baseline.at, "idleness", "a longer idle time")
	}
	gross := finish.joules - start.joules
	if gross <= 0 {
		return coarse(t, finish.at-start.at, "work", "parameters for more work")
	}
	rest *= (finish.at - start.at).Seconds() / (start.at - baseline.at).Seconds()
	n := float64(operations)
	t.Record("Energy", (gross-rest)/n)
	t.Record("GrossEnergy", gross/n)
	t.Record("IdleEnergy", rest/n)
	t.Condition("energy", t.Energy.Source())
	return nil
}

// coarse is the error of a gauge that counted no energy in a time. The energy of that time is unknown and not zero.
func coarse(t Trial, in time.Duration, activity, remedy string) error {
	return fmt.Errorf("the gauge of energy (%s) did not rise in %v of %s: it is too coarse, so set %s", t.Energy.Source(), in, activity, remedy)
}

// reading is the gauge at a time.
type reading struct {
	at     time.Duration
	joules float64
}

// now reads the gauge after a time.
func now(ctx context.Context, t Trial, delay time.Duration) (reading, error) {
	moment, err := t.Sleep(ctx, delay)
	if err != nil {
		return reading{}, err
	}
	joules, err := t.Energy.Joules()
	return reading{moment, joules}, err
}
