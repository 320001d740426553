package experiment

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/plan"
)

// warmup is the number of blocks before the measured ones of a run.
const warmup = 1

// pace is the time that runs take: the set-up of each with its clean-up, and a block.
type pace struct{ setUp, block time.Duration }

// time returns the time of runs with this number of measured blocks each.
func (p pace) time(runs, blocks int) time.Duration {
	return time.Duration(runs) * (p.setUp + time.Duration(warmup+blocks)*p.block)
}

// blocks returns the largest number of measured blocks in each of so many runs that fit into a time.
func (p pace) blocks(limit time.Duration, runs int) int {
	if p.block <= 0 {
		return plan.MaxBlocks
	}
	return min(plan.MaxBlocks, int((limit/time.Duration(runs)-p.setUp)/p.block)-warmup)
}

// withoutReserve returns the part of a time that runs may fill by their pace, which is an estimate.
func withoutReserve(limit time.Duration) time.Duration { return limit - limit/20 }
