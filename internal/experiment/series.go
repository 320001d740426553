package experiment

import (
	"context"
	"errors"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report"
)

// Series is a number of runs, one after the other, with a common budget.
type Series struct {
	Executor Executor
	// Budget limits the time of all runs together; 0 sets no limit.
	Budget time.Duration
	// Line shows a line about the series.
	Line func(text string)
	// Publish shows the report of a run. A selfcheck has no reports.
	Publish func(report.Report) error

	// Spent is the time of the runs so far.
	Spent time.Duration
	// End is how the runs ended.
	End End

	executed int
	// record receives each recorded run, also after an error. It may be nil.
	record func(Run) error
}

// End is how a series ended.
type End int

// The ends.
const (
	// Complete is the end by the rule.
	Complete End = iota
	// OutOfBudget is the end before a run that needs more time than the budget has left.
	OutOfBudget
	// Interrupted is the end by the cancellation of the context.
	Interrupted
)

// rule decides on the runs of a series.
type rule struct {
	// next returns the next run. It reports false if the series is complete.
	next func(ctx context.Context) (r Request, ok bool, err error)
	// add takes the record of a run. An interrupted run is the last one.
	add func(Run) error
	// least is the time of the shortest run that makes sense.
	least time.Duration
}

// left returns the rest of the budget.
func (s *Series) left() time.Duration { return s.Budget - s.Spent }

// follow executes the runs of a rule, and sets the end of the series.
func (s *Series) follow(ctx context.Context, r rule) error {
	for {
		request, ok, err := r.next(ctx)
		switch {
		case err != nil || !ok:
			return err
		case s.Budget > 0 && s.left() < max(1, r.least):
			s.End = OutOfBudget
			return nil
		}
		run, err := s.execute(ctx, request)
		if err == nil {
			err = r.add(run)
		}
		if err != nil || s.End == Interrupted {
			return err
		}
	}
}

// execute executes one run with its share of the budget. After the first run of the series it waits for the end of another run on the machine: the user
// has decided about those before.
func (s *Series) execute(ctx context.Context, r Request) (Run, error) {
	r.Wait = s.executed > 0
	if s.Budget > 0 { // a budget of 0 would set no limit
		r.Plan.Budget = max(time.Millisecond, (s.left()/time.Duration(max(1, r.share)) - r.setUp).Truncate(time.Millisecond))
	}
	run, err := s.Executor.Execute(ctx, r)
	s.Spent += run.Took
	s.executed++
	switch {
	case run.Recorded && s.record != nil:
		err = errors.Join(err, s.record(run))
	case err == nil && !run.Recorded:
		err = errors.New("the run was not recorded")
	}
	if err == nil && run.Interrupted {
		s.End = Interrupted
	}
	return run, err
}
