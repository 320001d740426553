package document

import "math"

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
