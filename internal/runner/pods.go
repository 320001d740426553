package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

// clockStep is the change of the real-time clock against the monotonic one that fails a trial with times of other programs.
const clockStep = time.Millisecond

// trialPods implements bench.Pods.
type trialPods struct{ *trial }

func (t trialPods) Observe() (bench.Stages, error) {
	if _, err := t.stager(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clocks == nil {
		pair := meter.ReadPair(t.r.Clock)
		t.clocks = &pair
	}
	return &stages{trial: t.trial, moments: map[engine.Stage]time.Duration{}}, nil
}

func (t trialPods) Ping(ctx context.Context) (bench.Span, error) {
	e, err := t.stager()
	if err != nil {
		return bench.Span{}, err
	}
	return t.Time(ctx, "request", e.Ping)
}

// stager is the target's engine, if it reports stages.
func (t trialPods) stager() (engine.Stager, error) {
	if e, ok := t.engine.(engine.Stager); ok {
		return e, nil
	}
	return nil, &engine.UnsupportedError{
		What: "stages of a pod", Reason: "only the API server and the kubelet of a cluster report them", Advice: "measure pods with touchstone cluster run",
	}
}

// stages implements engine.Marker and bench.Stages for one pod.
type stages struct {
	*trial

	lock    sync.Mutex
	moments map[engine.Stage]time.Duration
}

func (s *stages) Within(ctx context.Context) context.Context { return engine.WithMarker(ctx, s) }

func (s *stages) Mark(stage engine.Stage) { s.set(stage, s.now()) }

func (s *stages) MarkAt(stage engine.Stage, real time.Time) {
	moment, elapsed := s.clocks.At(real).Sub(s.began), s.now()
	if moment < -clockStep || moment > elapsed+clockStep {
		s.mu.Lock()
		s.clockErr = fmt.Errorf("the node's time of the stage %s is outside of the trial: it is %v after the begin, and %v have passed; "+
			"the clock of this program must be the clock of the node, so its pod needs a runtime class without a clock of its own", stage, moment, elapsed)
		s.mu.Unlock()
	}
	s.set(stage, moment)
}

func (s *stages) set(stage engine.Stage, moment time.Duration) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if _, ok := s.moments[stage]; !ok {
		s.moments[stage] = moment
	}
}

func (s *stages) At(stage engine.Stage) (time.Duration, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	moment, ok := s.moments[stage]
	return moment, ok
}

// checkClocks returns an error if the times of other programs cannot be converted, because the clock was set during the trial.
//
// Invariant clock-step: A trial with times of the real-time clock fails if the clock was set during it.
func (t *trial) checkClocks() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clocks == nil {
		return nil
	}
	if step := t.clocks.Step(meter.ReadPair(t.r.Clock)); step.Abs() > clockStep {
		return errors.Join(fmt.Errorf("the real-time clock of the node was set by %v during the trial", step), t.clockErr)
	}
	return t.clockErr
}
