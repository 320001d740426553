package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/plan"
)

// executeFunc is an executor that is a function.
type executeFunc func(Request) (Run, error)

func (f executeFunc) Execute(_ context.Context, r Request) (Run, error) { return f(r) }

// A series ends by its rule, its budget, an interrupt or an error. Each run has its share of the rest of the budget.
func TestSeries(t *testing.T) {
	failure := errors.New("the disk is full")
	run := func(change func(*Run)) func(Request) (Run, error) {
		return func(Request) (Run, error) {
			r := Run{Took: 10 * time.Second}
			r.Recorded = true
			if change != nil {
				change(&r)
			}
			return r, nil
		}
	}
	for _, c := range []struct {
		name    string
		budget  time.Duration
		share   bool // of all runs to come
		least   time.Duration
		execute func(Request) (Run, error)
		end     End
		err     string
		budgets []time.Duration // by run
		added   int
	}{
		{"no budget", 0, false, 0, run(nil), Complete, "", []time.Duration{7, 7, 7}, 3},
		{"enough", time.Minute, false, 0, run(nil), Complete, "", []time.Duration{time.Minute, 50 * time.Second, 40 * time.Second}, 3},
		{"shares", 60 * time.Second, true, 0, run(nil), Complete, "", []time.Duration{18 * time.Second, 23 * time.Second, 38 * time.Second}, 3},
		{"out of budget", 20 * time.Second, false, 0, run(nil), OutOfBudget, "", []time.Duration{20 * time.Second, 10 * time.Second}, 2},
		{"too short for another run", 25 * time.Second, false, 6 * time.Second, run(nil), OutOfBudget, "", []time.Duration{25 * time.Second, 15 * time.Second}, 2},
		{"a share without time", time.Second, true, 0, run(nil), OutOfBudget, "", []time.Duration{time.Millisecond}, 1},
		{"interrupted", 0, false, 0, run(func(r *Run) { r.Interrupted = true }), Interrupted, "", []time.Duration{7}, 1},
		{"not recorded", 0, false, 0, run(func(r *Run) { r.Recorded = false }), Complete, "the run was not recorded", []time.Duration{7}, 0},
		{"an error", 0, false, 0, func(Request) (Run, error) { return Run{}, failure }, Complete, "the disk is full", []time.Duration{7}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var budgets []time.Duration
			count := 0
			s := Series{Budget: c.budget, Executor: executeFunc(func(r Request) (Run, error) {
				budgets = append(budgets, r.Plan.Budget)
				return c.execute(r)
			})}
			err := s.follow(t.Context(), rule{
				next: func(context.Context) (Request, bool, error) {
					r := Request{Plan: plan.Plan{Budget: 7}}
					if c.share {
						r.share, r.setUp = 3-count, 2*time.Second
					}
					return r, count < 3, nil
				},
				add:   func(Run) error { count++; return nil },
				least: c.least,
			})
			if s.End != c.end || !slices.Equal(budgets, c.budgets) || count != c.added {
				t.Errorf("the end is %d, the budgets are %v, %d runs are added; want %d, %v, %d", s.End, budgets, count, c.end, c.budgets, c.added)
			}
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("the error is %v, want %q", err, c.err)
			}
		})
	}
}

// A run that ended with an error may have a record, which is shown.
func TestRecordsOfErrors(t *testing.T) {
	records := 0
	s := Series{Executor: executeFunc(func(Request) (Run, error) {
		r := Run{Took: time.Second}
		r.Recorded = true
		return r, errors.New("the engine is gone")
	})}
	s.record = func(Run) error { records++; return errors.New("the page cannot be written") }
	_, err := s.execute(t.Context(), Request{})
	if records != 1 || s.Spent != time.Second || err == nil || !strings.Contains(err.Error(), "gone") || !strings.Contains(err.Error(), "written") {
		t.Errorf("%d records, %v are spent, %v; want one record and both errors", records, s.Spent, err)
	}
}
