package meter

import "time"

// Pair is one moment on the monotonic and on the real-time clock. It converts times that other programs of the machine have taken.
type Pair struct {
	Monotonic, Real time.Time
	// width is the time that the reading took: the moment lies within it.
	width time.Duration
}

// pairReadings bounds the readings of a pair. This program may lose its CPU between two readings, and one of a few does not.
const pairReadings = 5

// sharpPair is the width of a pair that needs no better reading.
const sharpPair = 10 * time.Microsecond

// ReadPair reads both clocks at one moment, and keeps the sharpest of some readings.
func ReadPair(c Clock) Pair {
	var best Pair
	for i := range pairReadings {
		start := c.Now()
		real := c.Real()
		width := c.Now().Sub(start)
		if i == 0 || width < best.width {
			best = Pair{Monotonic: start.Add(width / 2), Real: real, width: width}
		}
		if best.width <= sharpPair {
			break
		}
	}
	return best
}

// At is the moment on the monotonic clock of a time on the real-time clock, if no step lies between the pair and the time.
func (p Pair) At(real time.Time) time.Time { return p.Monotonic.Add(real.Sub(p.Real)) }

// Step is the change of the real-time clock between two pairs by a program that sets it. The kernel slews both clocks alike, so that is no step.
func (p Pair) Step(next Pair) time.Duration {
	return next.Real.Sub(p.Real) - next.Monotonic.Sub(p.Monotonic)
}
