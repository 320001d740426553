package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Outages knows when the machine of the containers, or the server that makes them, is away. A trial that fails meanwhile is no evidence against its
// target: it is not recorded, and it is repeated when both are back.
type Outages interface {
	// Begin returns when both are there, or when ctx ends. The function that it returns follows a failure since then. If an outage explains the
	// failure, it returns the reason after the end of the outage or of ctx; otherwise it returns an empty text.
	Begin(ctx context.Context) (explain func(ctx context.Context, failure error) (reason string))
}

// NoOutages are the outages of the machine that executes this program.
type NoOutages struct{}

// Begin implements Outages.
func (NoOutages) Begin(context.Context) func(context.Context, error) string {
	return func(context.Context, error) string { return "" }
}

// outageAttempts is the number of attempts of a trial that outages interrupt. A target that takes its node down in each of them has failed.
const outageAttempts = 3

// outages are the outages of a run.
type outages struct {
	repeats int
	lost    time.Duration // in trials that do not count, with the waits
	reason  string        // of the last one
}

// ending is the end of one attempt of a trial.
type ending struct {
	isInterrupted bool   // ctx ended during it
	outage        string // the reason if an outage explains its failure
}

// execute executes a trial, and repeats it after an outage. The second result is false if ctx ended during the trial, which then does not count.
func (r *run) execute(ctx context.Context, work plan.Work, target Target, identity attempt) (result.Trial, bool) {
	name := identity.name
	for number := 1; ; number++ {
		start := r.Clock.Now()
		out, end := r.executeOnce(ctx, work, target, identity)
		switch {
		case end.isInterrupted || end.outage == "":
			return out, !end.isInterrupted
		case number == outageAttempts:
			if out.Status != result.OK {
				out.Reason += fmt.Sprintf("; an outage interrupted each of %d attempts: %s", number, end.outage)
			}
			return out, true
		}
		r.outages.repeats++
		r.outages.lost += r.Clock.Now().Sub(start)
		r.outages.reason = end.outage
		identity.name = fmt.Sprintf("%sr%d", name, number) // the node may still have the objects of the earlier attempt
	}
}

// caveat describes the outages; it is empty without one.
func (o outages) caveat() string {
	if o.repeats == 0 {
		return ""
	}
	return fmt.Sprintf("outages interrupted trials, which were repeated (%s) and took %v with the waits; the last reason: %s", wording.Counted(o.repeats, "repetition"), o.lost.Round(time.Second), o.reason)
}

// failure joins the errors of a trial that an outage may explain. A benchmark that counts failed calls returns none itself.
func (t *trial) failure(err, removal error) error {
	if engine.Unsupported(err) {
		err = nil
	}
	return errors.Join(err, removal, t.lastFailed)
}

// awaitOutage waits for the end of an outage that explains a failure, and removes the objects that the clean-up could not.
//
// The clean-up comes first: the agent of a cluster finds an outage by a pod of its own. The trial may have left no room for it.
func (r *run) awaitOutage(ctx context.Context, failure error, explain func(context.Context, error) string) ending {
	if failure == nil {
		return ending{}
	}
	reason := result.ConditionText(explain(ctx, failure))
	if reason == "" {
		return ending{}
	}
	r.removeLeft(ctx)
	return ending{ctx.Err() != nil, reason}
}
