package quantity

import (
	"math"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Scale is a unit with a prefix. Several values can share it.
type Scale struct {
	// Name follows the number, such as "ms". It is empty for a score.
	Name string
	// Unit is the value of one in the scale: 0.001 for ms.
	Unit float64
	// From is the least value, in the scale, that is spelled in it; 1 unless set.
	From float64
	// whole is set if whole numbers have no decimals.
	whole bool
}

// Scales are the prefixes of each unit, ascending. Memory has powers of two, like cgroup limits and smaps. Rates have
// powers of ten, like disks and networks. A ratio is a percentage below 10 and a factor from 10 on.
func Scales(unit result.Unit) []Scale {
	switch unit {
	case result.Seconds:
		return []Scale{{Name: "ns", Unit: 1e-9}, {Name: "µs", Unit: 1e-6}, {Name: "ms", Unit: 1e-3}, {Name: "s", Unit: 1}}
	case result.Bytes:
		return []Scale{{Name: "B", Unit: 1}, {Name: "KiB", Unit: 1 << 10}, {Name: "MiB", Unit: 1 << 20}, {Name: "GiB", Unit: 1 << 30}, {Name: "TiB", Unit: 1 << 40}}
	case result.BytesPerSecond:
		return []Scale{{Name: "B/s", Unit: 1}, {Name: "kB/s", Unit: 1e3}, {Name: "MB/s", Unit: 1e6}, {Name: "GB/s", Unit: 1e9}, {Name: "TB/s", Unit: 1e12}}
	case result.PerSecond:
		return []Scale{{Name: "/s", Unit: 1}, {Name: "k/s", Unit: 1e3}, {Name: "M/s", Unit: 1e6}, {Name: "G/s", Unit: 1e9}}
	case result.BitsPerSecond:
		return []Scale{{Name: "bit/s", Unit: 1}, {Name: "kbit/s", Unit: 1e3}, {Name: "Mbit/s", Unit: 1e6}, {Name: "Gbit/s", Unit: 1e9}, {Name: "Tbit/s", Unit: 1e12}}
	case result.FlopPerSecond:
		return []Scale{{Name: "FLOP/s", Unit: 1}, {Name: "kFLOP/s", Unit: 1e3}, {Name: "MFLOP/s", Unit: 1e6}, {Name: "GFLOP/s", Unit: 1e9}, {Name: "TFLOP/s", Unit: 1e12}}
	case result.Ratio:
		return []Scale{{Name: "%", Unit: 0.01}, {Name: "×", Unit: 1, From: 10}}
	case result.Joules:
		return []Scale{{Name: "µJ", Unit: 1e-6}, {Name: "mJ", Unit: 1e-3}, {Name: "J", Unit: 1}, {Name: "kJ", Unit: 1e3}}
	case result.ByteSeconds:
		return []Scale{{Name: "B·s", Unit: 1}, {Name: "KiB·s", Unit: 1 << 10}, {Name: "MiB·s", Unit: 1 << 20}, {Name: "GiB·s", Unit: 1 << 30}, {Name: "TiB·s", Unit: 1 << 40}}
	case result.Count:
		return []Scale{{Name: "", Unit: 1, whole: true}}
	case result.Score:
	}
	return []Scale{{Name: "", Unit: 1}}
}

// ScaleFor gives the scale for the shortest number of at least one.
func ScaleFor(value float64, unit result.Unit) Scale {
	choice := Scales(unit)
	best := choice[0]
	for _, s := range choice[1:] {
		if math.Abs(roundTo(value/s.Unit, precision)) < max(1, s.From) {
			break
		}
		best = s
	}
	if value == 0 {
		for _, s := range choice {
			if s.Unit == 1 && s.From == 0 {
				return s // 0 s, not 0 ns
			}
		}
	}
	return best
}

// Number spells value in the scale, without the unit.
func (s Scale) Number(value float64) string {
	if s.whole && value == math.Trunc(value) {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return Number(value / s.Unit)
}

// Text spells value in the scale, with the unit.
func (s Scale) Text(value float64) string { return s.with(s.Number(value)) }

// with puts the unit behind a number.
func (s Scale) with(number string) string {
	if s.Name == "" || number == None {
		return number
	}
	if strings.HasPrefix(s.Name, "/") {
		return number + s.Name
	}
	return number + " " + s.Name
}

// Tick spells a value of an axis in the scale, without zeros at the end: "20 ms".
func (s Scale) Tick(value float64) string {
	return s.with(strconv.FormatFloat(roundTo(value/s.Unit, precision), 'f', -1, 64))
}
