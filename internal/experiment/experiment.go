// Package experiment executes series of runs that answer one question: is a build worse than another ([AB]), which differences can this machine
// show ([Selfcheck]), and which claims of a study hold here ([Study])?
//
// An [Executor] executes the runs. The command line executes them on this machine. An agent of a cluster or a server can execute them elsewhere, and
// a test makes them up. A [Series] has the budget of all runs together, and a rule decides on the next run and on the end. The
// executor measures the time of a run, so this package needs no clock.
//
// The package prints nothing and reads no flags. It refuses a budget that is too short for an answer, a target that does not work, and runs of several
// machines.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Executor executes one plan at a time. It has an observer for the progress within a run.
type Executor interface {
	// Execute executes a plan and returns its record. A run that ended with an error may have a record too. A cancelled ctx ends the run in
	// order, without an error: its record is then interrupted.
	Execute(ctx context.Context, r Request) (Run, error)
}

// Request is a run to execute.
type Request struct {
	Plan plan.Plan
	// Earlier is the run to resume, with its trials; nil starts a new run.
	Earlier *result.Run
	// Wait is set if the run waits for the end of another run on the machine, which began between two runs of the series.
	Wait bool
	// share is the number of runs that share the rest of the budget; 0 is 1. setUp is the part of a share that is not for trials.
	share int
	setUp time.Duration
}

// Run is the record of a run, without the values of environment variables, and its end.
type Run struct {
	result.Run
	execution.Outcome
	// Took is the time of the run with its set-up and clean-up.
	Took time.Duration
}

// trialTime returns the time of all trials that were not skipped.
func (r *Run) trialTime() time.Duration {
	var sum time.Duration
	for _, t := range r.Trials {
		if t.Status != result.Skipped {
			sum += t.Elapsed
		}
	}
	return sum
}

// setUp returns the time of a run without its trials.
func (r *Run) setUp() time.Duration { return max(0, r.Took-r.trialTime()) }

// UnavailableError is the end of an experiment whose targets do not work.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }

func (e *UnavailableError) Unwrap() error { return e.Err }

// checkTargets returns an error for the targets of a calibration that do not work.
func checkTargets(run result.Run) error {
	var errs []error
	for _, t := range run.Targets {
		if t.Unavailable != "" {
			errs = append(errs, fmt.Errorf("%s is not available: %s", t.Name, t.Unavailable))
		}
	}
	if errs == nil {
		return nil
	}
	return &UnavailableError{errors.Join(errs...)}
}

// refuse returns the error of a request that cannot be fulfilled.
func refuse(format string, args ...any) error {
	return &execution.UsageError{Err: fmt.Errorf(format, args...)}
}
