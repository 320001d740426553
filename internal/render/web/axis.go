package web

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// logFrom is the smallest quotient of the largest and the smallest value with a logarithmic axis. A linear axis would press the
// smaller targets into one point.
const logFrom = 10

// characterWidth is the approximate width of a digit in a label.
const characterWidth = 5.8

// mostTicks is the largest number of labels on an axis.
const mostTicks = 6

// Axis maps values to coordinates of a drawing.
type Axis struct {
	Log      bool
	Ticks    []Tick
	lo, hi   float64 // values, or their logarithms
	from, to float64 // coordinates of lo and hi
	used     float64 // the end of the last label
}

// Tick is a labelled place on an axis.
type Tick struct {
	At    string
	Label string
	// Anchor keeps labels at the ends inside the drawing.
	Anchor string
}

// NewAxis makes an axis for values of a unit, from one coordinate to another. It returns false without values, and if their
// span is not finite.
func NewAxis(values []float64, unit result.Unit, start, end float64) (Axis, bool) {
	if len(values) == 0 {
		return Axis{}, false
	}
	lo, hi := slices.Min(values), slices.Max(values)
	if span := hi - lo; math.IsNaN(span) || math.IsInf(span, 0) {
		return Axis{}, false
	}
	return AxisOver(lo, hi, unit, start, end, lo > 0 && hi/lo > logFrom)
}

// AxisOver makes an axis from lo to hi, with a little room on both sides.
func AxisOver(lo, hi float64, unit result.Unit, start, end float64, log bool) (Axis, bool) {
	a := Axis{lo: lo, hi: hi, from: start, to: end, Log: log}
	if a.Log {
		a.lo, a.hi = math.Log10(lo), math.Log10(hi)
	}
	// An axis that begins near zero begins at zero.
	if !a.Log && lo > 0 && lo < 0.3*hi {
		a.lo = 0
	}
	pad := 0.04 * (a.hi - a.lo)
	if pad == 0 {
		pad = max(0.1*math.Abs(a.hi), math.SmallestNonzeroFloat64*1e16)
	}
	a.hi += pad
	if a.lo != 0 || a.Log {
		a.lo -= pad
	}
	if span := a.hi - a.lo; span == 0 || math.IsInf(span, 0) {
		return Axis{}, false
	}
	if a.Log {
		a.logTicks(unit)
	} else {
		a.linearTicks(unit)
	}
	return a, true
}

// FullAxis makes a linear axis from lo to hi, without room on either side.
func FullAxis(lo, hi float64, unit result.Unit, start, end float64) Axis {
	a := Axis{lo: lo, hi: hi, from: start, to: end}
	a.linearTicks(unit)
	return a
}

// Spans reports whether a value is between the ends of a linear axis.
func (a *Axis) Spans(value float64) bool { return a.lo < value && value < a.hi }

// Ends are the values at the ends of the axis, or their logarithms.
func (a *Axis) Ends() (low, high float64) { return a.lo, a.hi }

// At is the coordinate of a value.
func (a *Axis) At(value float64) float64 {
	if a.Log {
		value = math.Log10(value)
	}
	return a.from + (a.to-a.from)*((value-a.lo)/(a.hi-a.lo))
}

// tick adds a tick, unless its label would run into the one before.
func (a *Axis) tick(value float64, label string) {
	x := a.At(value)
	t := Tick{At: Num(x), Label: label, Anchor: "middle"}
	if a.to < a.from { // it stands: labels are beside each other's lines
		a.Ticks = append(a.Ticks, t)
		return
	}
	half := float64(utf8.RuneCountInString(label)) * characterWidth / 2
	centre := x
	switch {
	case x-half < a.from:
		t.Anchor, centre = "start", x+half
	case x+half > a.to:
		t.Anchor, centre = "end", x-half
	}
	if len(a.Ticks) > 0 && centre-half < a.used+characterWidth {
		return
	}
	a.used = centre + half
	a.Ticks = append(a.Ticks, t)
}

// longestLabel is the longest label. A longer number, which no benchmark has, gets an exponent.
const longestLabel = 16

func label(scale quantity.Scale, value float64) string {
	text := scale.Tick(value)
	if utf8.RuneCountInString(text) > longestLabel {
		text = strings.TrimSpace(quantity.Number(value/scale.Unit) + " " + scale.Name)
	}
	return text
}

// linearTicks puts ticks at multiples of 1, 2 or 5 times a power of ten of one scale.
func (a *Axis) linearTicks(unit result.Unit) {
	scale := quantity.ScaleFor(max(math.Abs(a.lo), math.Abs(a.hi)), unit)
	lo, hi := a.lo/scale.Unit, a.hi/scale.Unit
	magnitude := math.Pow(10, math.Floor(math.Log10((hi-lo)/mostTicks)))
	for _, m := range []float64{1, 2, 5, 10} {
		step := m * magnitude
		first, last := math.Ceil(lo/step), math.Floor(hi/step)
		if !(last-first < mostTicks) {
			continue
		}
		for i := first; i <= last; i++ {
			text := "0"
			if i != 0 {
				text = label(scale, i*step*scale.Unit)
			}
			a.tick(i*step*scale.Unit, text)
		}
		return
	}
}

// logTicks puts ticks at powers of ten, and between them if there are few. Bytes stay in
// one scale, for their prefixes are no powers of ten.
func (a *Axis) logTicks(unit result.Unit) {
	top := quantity.ScaleFor(math.Pow(10, a.hi), unit)
	base := 1.0
	if unit == result.Bytes {
		base = top.Unit
	}
	shift := math.Log10(base)
	first, last := int(math.Floor(a.lo-shift)), int(math.Ceil(a.hi-shift))
	stride := max(1, (last-first+mostTicks-2)/(mostTicks-1))
	first -= ((first % stride) + stride) % stride // thousands rather than any third power of ten
	for _, mantissas := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		var values []float64
		for e := first; e <= last; e += stride {
			for _, m := range mantissas {
				if v := m * math.Pow10(e) * base; a.lo <= math.Log10(v) && math.Log10(v) <= a.hi {
					values = append(values, v)
				}
			}
		}
		if len(values) > mostTicks && len(mantissas) > 1 {
			continue
		}
		for _, v := range values {
			scale := quantity.ScaleFor(v, unit)
			if unit == result.Bytes {
				scale = top
			}
			a.tick(v, label(scale, v))
		}
		return
	}
}
