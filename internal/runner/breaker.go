package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// breaker is a circuit breaker for each target: a target that hangs takes the time of the others.
//
// After timeoutsTrusted timeouts of a target, in any of its trials, one minimal container must work. Otherwise the target is quarantined: it
// has no further trials. We rejected a limit for timeouts alone. A runtime that is a hundred times slower than the others exceeds the limit of
// some benchmarks and has good results in the rest.
type breaker struct {
	timeouts    map[string]int    // by target, since its last try-out
	quarantined map[string]string // the reasons, by target
	recent      bool              // the last trial had a timeout
	tryOuts     int
}

// timeoutsTrusted is the number of timeouts after which the try-out of a target is repeated. A trial whose clean-up times out too has two.
const timeoutsTrusted = 2

func newBreaker() breaker {
	return breaker{timeouts: map[string]int{}, quarantined: map[string]string{}}
}

// note counts the timeouts of a trial: of its calls, and of its clean-up.
func (b *breaker) note(target string, calls, cleanUp error) {
	b.recent = timedOut(calls) || timedOut(cleanUp)
	for _, err := range []error{calls, cleanUp} {
		if timedOut(err) {
			b.timeouts[target]++
		}
	}
}

// checkUp follows a trial. After a timeout it recovers the target's daemon. After timeoutsTrusted of them it repeats the try-out, and
// quarantines the target if it fails.
func (r *run) checkUp(ctx context.Context, t Target) {
	if !r.breaker.recent || ctx.Err() != nil {
		return
	}
	r.breaker.recent = false
	r.recoverDaemon(ctx, t)
	timeouts := r.breaker.timeouts[t.Name]
	if timeouts < timeoutsTrusted || ctx.Err() != nil {
		return
	}
	err := r.tryOut(ctx, t)
	if ctx.Err() != nil {
		return
	}
	r.breaker.timeouts[t.Name] = 0
	if err == nil {
		return
	}
	reason := fmt.Sprintf("quarantined after %s, because one more container did not work: %v", wording.Counted(timeouts, "timeout"), err)
	r.breaker.quarantined[t.Name] = reason
	r.out.Caveats = append(r.out.Caveats, fmt.Sprintf("%s was %s", t.Name, reason))
}

// recoverDaemon restarts a daemon of the run that does not answer. The next trial of its targets fails if it cannot be restarted.
func (r *run) recoverDaemon(ctx context.Context, t Target) {
	e, ok := t.Engine.(engine.Recoverer)
	if !ok {
		return
	}
	kill, err := e.Recover(ctx)
	switch {
	case ctx.Err() != nil || !kill && err == nil:
	case err != nil:
		r.out.Caveats = append(r.out.Caveats, fmt.Sprintf("the daemon of %s cannot be used after a timeout: %v", t.Name, err))
	default:
		r.out.Caveats = append(r.out.Caveats, fmt.Sprintf("the daemon of %s did not answer after a timeout, and was killed and started again", t.Name))
	}
}

// tryOut runs, kills and removes one container, like the first container of a target. It is no trial and not recorded.
func (r *run) tryOut(ctx context.Context, t Target) error {
	work := plan.Work{Benchmark: bench.Benchmark{
		Name: "try-out", Image: bench.ProbeImage,
		Run: func(ctx context.Context, trial bench.Trial) error {
			c, err := bench.Start(ctx, trial)
			if err == nil {
				_, _, err = c.Destroy(ctx, trial)
			}
			return err
		},
	}}
	r.breaker.tryOuts++
	try := attempt{name: fmt.Sprintf("try%d", r.breaker.tryOuts), what: "it", limit: r.patience(), hurried: true}
	if out, _ := r.execute(ctx, work, t, try); out.Status != result.OK {
		return errors.New(strings.ReplaceAll(out.Reason, "\n", "; "))
	}
	return nil
}
