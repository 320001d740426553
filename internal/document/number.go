package document

import (
	"math"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Number is a value of a record. It is nil for a number that is not finite.
func Number(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

// NumberOf is Number for a number that may not exist.
func NumberOf(x *float64) any {
	if x == nil {
		return nil
	}
	return Number(*x)
}

// Ends are the ends of an interval as values of a record. They are nil without an interval.
func Ends(ci *stats.Interval) (low, high any) {
	if ci == nil {
		return nil, nil
	}
	return Number(ci.Lo), Number(ci.Hi)
}
