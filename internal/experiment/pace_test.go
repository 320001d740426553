package experiment

import (
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/plan"
)

func TestSchedule(t *testing.T) {
	example := pace{setUp: 2 * time.Second, block: 100 * time.Millisecond}
	for _, c := range []struct {
		name         string
		pace         pace
		left         time.Duration
		runs, blocks int // given
		wantRuns     int
		wantBlocks   int // 0 is an error
	}{
		{"a usual budget", example, 10 * time.Minute, 0, 0, 19, 279},
		{"a short one has fewer runs", example, 3 * time.Minute, 0, 0, 8, 192},
		{"a long one has longer runs", example, time.Hour, 0, 0, 20, 1689},
		{"slow blocks", pace{time.Second, 10 * time.Second}, 3 * time.Minute, 0, 0, 8, 1},
		{"slower blocks have fewer runs", pace{time.Second, 18 * time.Second}, 3 * time.Minute, 0, 0, 4, 1},
		{"too slow", pace{time.Second, 60 * time.Second}, 3 * time.Minute, 0, 0, 0, 0},
		{"nothing left", example, 0, 0, 0, 0, 0},
		{"over the budget", example, -time.Second, 0, 0, 0, 0},
		{"given runs", example, 3 * time.Minute, 5, 0, 5, 321},
		{"too many given runs", example, 3 * time.Minute, 100, 0, 0, 0},
		{"given blocks", example, 3 * time.Minute, 0, 50, 20, 50},
		{"many given blocks", example, 3 * time.Minute, 0, 300, 5, 300},
		{"too many given blocks", example, 3 * time.Minute, 0, 1000, 0, 0},
		{"both given", example, time.Second, 6, 10, 6, 10},
		{"no time passes", pace{}, time.Minute, 0, 0, 8, plan.MaxBlocks},
	} {
		runs, blocks, err := c.pace.schedule(c.left, c.runs, c.blocks)
		if (err != nil) != (c.wantBlocks == 0) || err == nil && (runs != c.wantRuns || blocks != c.wantBlocks) {
			t.Errorf("%s: %d runs of %d blocks, %v; want %d of %d", c.name, runs, blocks, err, c.wantRuns, c.wantBlocks)
		}
		if err == nil && (c.runs == 0 || c.blocks == 0) && c.pace.time(runs, blocks) > c.left {
			t.Errorf("%s: the runs take %v of %v", c.name, c.pace.time(runs, blocks), c.left)
		}
	}
}
