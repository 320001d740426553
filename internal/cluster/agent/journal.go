package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// journal records a run in the agent's results file, and then in the log. Between two trials it writes records again that the coordinator misses.
type journal struct {
	*store.Store
	log   *record.Writer
	runID string
	pod   *pod

	// measuring ends with the run.
	measuring context.Context //nolint:containedctx // the methods of execution.Store get a context without an end

	mu     sync.Mutex
	number int // of the last record
}

// Create implements execution.Store.
func (j *journal) Create(ctx context.Context, run result.Run) error {
	if err := j.Store.Create(ctx, run); err != nil {
		return err
	}
	return j.next(record.Begin, run)
}

// Append implements execution.Store.
func (j *journal) Append(ctx context.Context, runID string, trial result.Trial) error {
	if err := j.Store.Append(ctx, runID, trial); err != nil {
		return err
	}
	if err := j.next(record.Trial, trial); err != nil {
		return err
	}
	if first := j.pod.missing(); first > 0 {
		return j.replay(ctx, first)
	}
	return nil
}

// Stopping implements execution.Store.
func (j *journal) Stopping(ctx context.Context, runID string, rule *result.Stopping) error {
	if err := j.Store.Stopping(ctx, runID, rule); err != nil {
		return err
	}
	return j.log.Tell(record.Stopping, rule)
}

// Finish implements execution.Store. A run whose pod is deleted is not over.
func (j *journal) Finish(ctx context.Context, runID string, state result.State, end time.Time, caveats []string) error {
	cause := context.Cause(j.measuring) //nolint:contextcheck // the end of the run has a cause; the record of it has no end
	if errors.Is(cause, errTerminated) {
		return nil
	}
	if cause != nil {
		caveats = append(caveats, cause.Error())
	}
	if err := j.Store.Finish(ctx, runID, state, end, caveats); err != nil {
		return err
	}
	run, err := j.Outline(ctx, runID)
	if err != nil {
		return err
	}
	return j.next(record.Finish, endOf(run))
}

// next writes the next record of the run.
func (j *journal) next(kind record.Kind, value any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	return j.log.Write(j.number, kind, value)
}

// endOf is the end of a run.
func endOf(run result.Run) record.End {
	return record.End{State: run.State, Ended: run.Ended, Caveats: run.Caveats, Stopping: run.Stopping, Trials: len(run.Trials)}
}

// replay writes the records of the run again, from a number on.
func (j *journal) replay(ctx context.Context, first int) error {
	run, err := j.Run(context.WithoutCancel(ctx), j.runID)
	if _, isUnknown := errors.AsType[*store.IDError](err); isUnknown {
		return nil // the run ended before its first record
	}
	if err != nil {
		return err
	}
	trials := run.Trials
	run.Trials = nil
	number := 0
	write := func(kind record.Kind, value any) error {
		if number++; number < first {
			return nil
		}
		return j.log.Write(number, kind, value)
	}
	isEnded := run.State == result.Complete || run.State == result.Interrupted
	start := run
	start.State, start.Ended = result.Running, time.Time{}
	err = write(record.Begin, start)
	for i := range trials {
		err = errors.Join(err, write(record.Trial, trials[i]))
	}
	if isEnded {
		end := endOf(run)
		end.Trials = len(trials)
		err = errors.Join(err, write(record.Finish, end))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number = number
	return err
}

// serve writes missing records again until the coordinator has all of them, or does not come back.
func (j *journal) serve(ctx context.Context) error {
	for {
		change := j.pod.changes()
		if j.pod.released() {
			return nil
		}
		if first := j.pod.missing(); first > 0 {
			if err := j.replay(ctx, first); err != nil {
				return err
			}
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil // the records are in the log
		}
	}
}

// observer writes the events of an execution to the log.
type observer struct {
	log    *record.Writer
	clock  meter.Clock
	last   time.Time
	moment record.Moment // at last
}

// progressInterval is the shortest time between two records of the progress.
const progressInterval = 2 * time.Second

// Started implements runner.Observer.
func (o *observer) Started(t result.Trial, state runner.Progress) {
	moment := o.clock.Now()
	if !o.last.IsZero() && moment.Sub(o.last) < progressInterval {
		return
	}
	o.last = moment
	o.moment = record.Moment{Done: state.Done, Total: state.Total, Left: state.Left, AtMost: state.AtMost, Trial: t.Benchmark + " " + t.Target}
	o.tell(record.Progress, o.moment)
}

// paused writes the reason of a wait to the log. An empty one is the end of the wait.
func (o *observer) paused(reason string) {
	moment := o.moment
	moment.Paused = reason
	o.tell(record.Progress, moment)
}

// Ended implements runner.Observer. The record of the trial has all of it.
func (*observer) Ended(result.Trial) {}

// Report implements execution.Observer.
func (o *observer) Report(e execution.Event) {
	switch e.Kind {
	case execution.Opening:
		o.tell(record.Progress, record.Moment{Trial: "trying " + e.Text})
	case execution.Step:
		o.tell(record.Progress, record.Moment{Trial: e.Text})
	case execution.Skipped:
		o.tell(record.Note, "skipped: "+e.Text)
	case execution.Note, execution.Estimate, execution.Ended, execution.Swept:
		o.tell(record.Note, e.Text)
	}
}

// tell writes a record of the moment. The next record of the run returns an error of the log.
func (o *observer) tell(kind record.Kind, value any) { _ = o.log.Tell(kind, value) }
