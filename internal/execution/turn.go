package execution

import (
	"context"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/turn"
)

// Concurrency is the reaction to another run that measures on this machine.
type Concurrency int

// The reactions.
const (
	// Refuse ends the execution with an error. It is the default, because two runs measure each other.
	Refuse Concurrency = iota
	// Wait waits for the end of the other run.
	Wait
	// Allow goes on. The records of both runs mention it.
	Allow
)

// machineTurn is the turn of a run on this machine.
type machineTurn struct {
	*turn.Turn          // nil for a run without a turn
	beside     []string // the IDs of the runs that were under way at the start
	unknown    error    // the reason why other runs could not be found
}

// takeTurn announces the run on this machine, as far as other runs allow. A run of fake targets measures nothing.
func (e *Execution) takeTurn(ctx context.Context) error {
	if e.session == nil {
		return nil
	}
	if e.Concurrency == Allow {
		return e.joinOthers(ctx)
	}
	var mine *turn.Turn
	var rivals []turn.Other
	var err error
	if e.Concurrency == Refuse {
		mine, rivals, err = turn.Take(ctx, e.hostID())
	} else {
		mine, err = turn.Await(ctx, e.hostID(), func(runs []turn.Other) { e.report(Step, "waiting for the end of "+turn.List(runs)) })
	}
	switch {
	case ctx.Err() != nil:
		if mine != nil {
			mine.End()
		}
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w; --allow-concurrent starts the run nevertheless", err)
	case mine == nil:
		return fmt.Errorf("%s, and two runs would measure each other: "+
			"--wait waits for the end; --allow-concurrent starts nevertheless, and both reports mention it", turn.UnderWay(rivals))
	}
	e.turn.Turn = mine
	return nil
}

// joinOthers announces the run beside others.
func (e *Execution) joinOthers(ctx context.Context) error {
	mine, rivals, err := turn.Join(ctx, e.hostID())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.turn = machineTurn{Turn: mine, unknown: err}
	for _, o := range rivals {
		e.turn.beside = append(e.turn.beside, o.ID)
	}
	if len(rivals) > 0 {
		e.report(Note, turn.UnderWay(rivals)+": they disturb each other")
	}
	if err != nil {
		e.report(Note, err.Error())
	}
	return nil
}

// caveats states for the run's record the other runs at its start.
func (t machineTurn) caveats() []string {
	var notes []string
	for _, id := range t.beside {
		notes = append(notes, besideCaveat(id))
	}
	if t.unknown != nil {
		notes = append(notes, "another run may have measured on this machine at the same time: "+t.unknown.Error())
	}
	return notes
}

// laterCaveats states for the record the other runs that it does not state yet.
func (t machineTurn) laterCaveats(stated []string) []string {
	caveats := t.caveats()
	if t.Turn != nil {
		members, err := t.Joined()
		for _, id := range members {
			caveats = append(caveats, besideCaveat(id))
		}
		if err != nil {
			caveats = append(caveats, err.Error())
		}
	}
	return slices.DeleteFunc(caveats, func(c string) bool { return slices.Contains(stated, c) })
}

func besideCaveat(id string) string {
	return fmt.Sprintf("run %s measured on this machine at the same time (--allow-concurrent): each of the two disturbed the other", id)
}

func (t machineTurn) end() {
	if t.Turn != nil {
		t.End()
	}
}
