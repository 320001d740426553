package document

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Decimal is a number of the data of a document. JSON gets twelve digits: more than any clock gives, and few enough for the same text from
// machines with and without fused multiplication and addition. A number that is not finite is null, and absent with the option omitzero.
type Decimal float64

// MarshalJSON implements [json.Marshaler].
func (d Decimal) MarshalJSON() ([]byte, error) {
	v := float64(d)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	if output, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 11, 64), 64); err == nil {
		v = output
	}
	return json.Marshal(v)
}

// IsZero reports whether the option omitzero leaves the number out.
func (d Decimal) IsZero() bool { return d == 0 || Number(float64(d)) == nil }

// Decimals are numbers of the data of a document.
func Decimals(values []float64) []Decimal {
	var list []Decimal
	for _, v := range values {
		list = append(list, Decimal(v))
	}
	return list
}

// Interval is a two-sided 95 % interval in the data of a document.
type Interval struct {
	Lo Decimal `json:"lo" schema:"type=number" doc:"The lower end, in the unit of the value."`
	Hi Decimal `json:"hi" schema:"type=number" doc:"The upper end, in the unit of the value."`
}

// IntervalOf is nil without an interval, and for one with an end that is not finite.
func IntervalOf(ci *stats.Interval) *Interval {
	if low, high := Ends(ci); low == nil || high == nil {
		return nil
	}
	return &Interval{Decimal(ci.Lo), Decimal(ci.Hi)}
}
