package meter_test

import (
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

// shifted is a clock with a real-time clock that can be set. Each reading of the monotonic clock takes the next cost.
type shifted struct {
	*fake.Clock
	offset time.Duration
	costs  []time.Duration
}

func (c *shifted) Real() time.Time { return c.Clock.Now().Add(c.offset) }

func (c *shifted) Now() time.Time {
	if len(c.costs) > 0 {
		c.Advance(c.costs[0])
		c.costs = c.costs[1:]
	}
	return c.Clock.Now()
}

func TestPairConvertsTimesOfOthers(t *testing.T) {
	c := &shifted{Clock: fake.NewClock(), offset: time.Hour}
	begin := c.Now()
	pair := meter.ReadPair(c)
	c.Advance(3 * time.Second)
	if got := pair.At(c.Real()).Sub(begin); got != 3*time.Second {
		t.Errorf("the time of another program is %v after the begin, want 3s", got)
	}
	if step := pair.Step(meter.ReadPair(c)); step != 0 {
		t.Errorf("Step() = %v on a clock that was not set", step)
	}
	c.offset -= 20 * time.Millisecond
	if step := pair.Step(meter.ReadPair(c)); step != -20*time.Millisecond {
		t.Errorf("Step() = %v, want -20ms", step)
	}
}

// A program that loses its CPU between two readings reads a wrong pair, and another reading of the pair is better.
func TestPairIsTheSharpestReading(t *testing.T) {
	c := &shifted{Clock: fake.NewClock(), costs: []time.Duration{0, 40 * time.Millisecond, 0, 8 * time.Millisecond, 0, 0}}
	pair := meter.ReadPair(c)
	if gap := pair.Real.Sub(pair.Monotonic); gap != 0 {
		t.Errorf("the two clocks of the pair are %v apart", gap)
	}
}
