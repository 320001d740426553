package quantity

import "time"

// RoundedTime rounds a time for a reader.
func RoundedTime(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// TimeWithReserve rounds a time up to a round one, with a reserve of a fifth: a budget to advise.
func TimeWithReserve(d time.Duration) time.Duration {
	unit := time.Second
	if d > 10*time.Minute {
		unit = time.Minute
	}
	return (d*6/5 + unit - 1).Truncate(unit)
}
