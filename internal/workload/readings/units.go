package readings

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Scale converts the numbers in the output of a custom program to the unit of a metric.
type Scale struct {
	factor float64
	// unit and words are for programs that print the unit beside each number: words has the factor of each unit.
	unit  string
	words map[string]float64
}

// Factor converts by a constant factor.
func Factor(factor float64) Scale { return Scale{factor: factor} }

// Auto converts each number by the unit that the program prints for it. The unit of the metric must be one of AutoUnits. With
// binary, the prefixes of bytes without an i are powers of 1024, as iperf and wrk print them.
func Auto(unit string, binary bool) (Scale, error) {
	table := tables[binary][unit]
	if table == nil {
		return Scale{}, fmt.Errorf("no program prints multiples of the unit %s; the units are %s", unit, strings.Join(AutoUnits(), ", "))
	}
	return Scale{unit: unit, words: table}, nil
}

// AutoUnits lists the units of metrics with multiples.
func AutoUnits() []string {
	return []string{"s", "B", "B/s", "bit/s", "1/s", "FLOP/s", "ratio", "J", "count"}
}

// Multiple returns the unit and the factor of a word that programs print as a unit. A prefix alone is no unit.
func Multiple(word string) (unit string, factor float64, ok bool) {
	if word == "" || slices.ContainsFunc(slices.Concat(decimal, powers()), func(p prefix) bool { return p.text == word }) {
		return "", 0, false
	}
	return meaning(word)
}

// auto reports whether the unit is read beside each number.
func (s Scale) auto() bool { return s.words != nil }

// of returns the factor of a unit that the program printed; it is empty for a number alone.
func (s Scale) of(word string) (float64, error) {
	factor, ok := s.words[word]
	switch {
	case ok:
		return factor, nil
	case word == "":
		return 0, fmt.Errorf("no unit follows it, and scale: auto reads one; known for %s are %s", s.unit, s.examples())
	}
	return 0, fmt.Errorf("the unit %q is not known for a metric in %s; known are %s", workload.Excerpt(word), s.unit, s.examples())
}

// numberText is a number of the C locale.
const numberText = `[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`

var firstTerm = compile(`^(` + numberText + `)` + anyBlank + `([\pL%‰°]*(?:` + ratePart + `)?)`)

// terms reads a quantity: a number alone with its unit, or a text with both, such as 993.7 ms or 1m 30s.
func (s Scale) terms(text, unit string) ([]term, error) {
	if customNumber.MatchString(text) {
		factor, err := s.of(unit)
		if err != nil {
			return nil, fmt.Errorf("the number %q: %w", workload.Excerpt(text), err)
		}
		return []term{{text, factor}}, nil
	}
	if unit != "" {
		_, err := parseCustomNumber(text)
		return nil, err
	}
	var terms []term
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimPrefix(rest, " ") {
		place := firstTerm().FindStringSubmatch(rest)
		if place == nil {
			return nil, fmt.Errorf("%q is not a number with a unit", workload.Excerpt(text))
		}
		factor, err := s.of(place[2])
		if err != nil {
			return nil, fmt.Errorf("the number %q: %w", place[1], err)
		}
		if len(terms) > 0 {
			last := terms[len(terms)-1]
			if s.unit != "s" || last.factor <= factor || !wholeNumber.MatchString(last.number) {
				return nil, fmt.Errorf("%q has more than one number", workload.Excerpt(text))
			}
		}
		terms = append(terms, term{place[1], factor})
		rest = rest[len(place[0]):]
	}
	if terms == nil {
		return nil, fmt.Errorf("%q is not a number with a unit", workload.Excerpt(text))
	}
	return terms, nil
}

// isUnit reports whether a word is a unit of any metric.
func isUnit(word string) bool {
	_, _, ok := meaning(word)
	return ok
}

// meaning returns the metric's unit of a word, and its factor.
func meaning(word string) (unit string, factor float64, ok bool) {
	for _, unit := range AutoUnits() {
		if factor, ok := tables[false][unit][word]; ok {
			return unit, factor, true
		}
	}
	return "", 0, false
}

// otherWords returns words for the place of a unit: other units, the same unit with another prefix, and words without meaning.
func otherWords(word string) []string {
	first, size := utf8.DecodeRuneInString(word)
	rest := word[size:]
	words := []string{strings.Repeat("q", len(word)), strings.Repeat("~", len(word))}
	if rest != "" {
		words = append(words, string(first)+strings.Repeat("q", len(rest)))
	}
	candidates := []string{
		"ns", "us", "µs", "ms", "s", "m", "min", "h", "msec", "sec", "seconds", "B", "kB", "KB", "KiB", "MB", "MiB", "GB", "GiB", "KBytes", "MBytes", "Kbits/sec", "Mbits/sec",
		"Gbits/sec", "Mbit/s", "Gbit/s", "B/s", "KB/s", "MB/s", "MiB/s", "GiB/s", "k", "M", "G", "%", rest, "K" + rest, "M" + rest, "G" + rest, "K" + word, "M" + word, "m" + word,
	}
	unit, factor, ok := meaning(word)
	for _, candidate := range candidates {
		otherUnit, otherFactor, otherKnown := meaning(candidate)
		matches := ok && otherKnown && unit == otherUnit && factor == otherFactor
		if candidate != "" && !matches && !strings.EqualFold(candidate, word) {
			words = append(words, candidate)
		}
	}
	return words
}

// examples lists a few units for a message, in the order of their size.
func (s Scale) examples() string {
	byFactor := map[float64]string{}
	for _, word := range slices.Sorted(maps.Keys(s.words)) {
		factor := s.words[word]
		if name, ok := byFactor[factor]; word != "" && (!ok || len(word) < len(name)) {
			byFactor[factor] = word
		}
	}
	var list []string
	for _, factor := range slices.Sorted(maps.Keys(byFactor)) {
		list = append(list, byFactor[factor])
	}
	return strings.Join(list, ", ")
}

// prefix is a prefix of units.
type prefix struct {
	text   string
	factor float64
}

// decimal are the prefixes for multiples, small the prefixes for parts.
var (
	decimal = []prefix{{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}}
	small   = []prefix{{"m", 1e-3}, {"u", 1e-6}, {"µ", 1e-6}, {"μ", 1e-6}, {"n", 1e-9}, {"p", 1e-12}}
)

// powers returns the prefixes of IEC; the first is also written with a small letter.
func powers() []prefix {
	list := []prefix{{"ki", 1 << 10}}
	for i, letter := range "KMGTPE" {
		list = append(list, prefix{string(letter) + "i", math.Ldexp(1, 10*(i+1))})
	}
	return list
}

// ofBytes returns the prefixes of bytes.
func ofBytes(binary bool) []prefix {
	list := powers()
	if !binary {
		return append(list, decimal...)
	}
	for _, p := range powers() {
		list = append(list, prefix{strings.TrimSuffix(p.text, "i"), p.factor})
	}
	return list
}

// perSecond are the spellings of a rate's denominator.
var perSecond = []string{"/s", "/sec", "/second"}

// tables are the units, without and with binary prefixes of bytes.
var tables = map[bool]map[string]map[string]float64{false: unitWords(false), true: unitWords(true)}

// unitWords returns the factors of the units that programs print, by the unit of the metric.
func unitWords(binary bool) map[string]map[string]float64 {
	words := map[string]map[string]float64{}
	add := func(unit string, factor float64, prefixes []prefix, spellings ...string) {
		if words[unit] == nil {
			words[unit] = map[string]float64{}
		}
		for _, word := range spellings {
			words[unit][word] = factor
			for _, p := range prefixes {
				words[unit][p.text+word] = factor * p.factor
			}
		}
	}
	add("s", 1, small, "s", "sec", "secs", "second", "seconds")
	add("s", 1, nil, "Sec", "Secs", "Second", "Seconds")
	for _, entry := range []prefix{{"milli", 1e-3}, {"micro", 1e-6}, {"nano", 1e-9}} {
		add("s", entry.factor, nil, entry.text+"s", entry.text+"second", entry.text+"seconds")
	}
	add("s", 60, nil, "m", "min", "mins", "minute", "minutes")
	add("s", 3600, nil, "h", "hr", "hrs", "hour", "hours")
	add("s", 86400, nil, "d", "day", "days")
	sizes := []string{"B", "byte", "bytes", "Byte", "Bytes"}
	add("B", 1, ofBytes(binary), sizes...)
	add("B/s", 1, ofBytes(binary), "Bps")
	add("B/s", 1, ofBytes(binary), sizes...) // wrk has the second in its label
	bits := slices.Concat(decimal, powers())
	add("bit/s", 1, bits, "bps", "bit", "bits", "Bit", "Bits", "b")
	for _, suffix := range perSecond {
		for _, size := range sizes {
			add("B/s", 1, ofBytes(binary), size+suffix)
		}
		for _, size := range []string{"bit", "bits", "Bit", "Bits", "b"} {
			add("bit/s", 1, bits, size+suffix)
		}
		for _, event := range []string{
			"op", "ops", "req", "reqs", "request", "requests", "query", "queries", "transaction", "transactions", "tx", "event", "events", "call", "calls",
			"iter", "iteration", "iterations", "msg", "msgs", "message", "messages", "packet", "packets", "pkt", "pkts", "frame", "frames", "io", "ios", "IO", "IOs", "",
		} {
			add("1/s", 1, decimal, event+suffix)
		}
	}
	add("1/s", 1, decimal, "", "Hz", "iops", "IOPS", "tps", "qps", "rps", "fps", "pps")
	add("FLOP/s", 1, decimal, "FLOPS", "FLOP/s", "Flops", "flops", "Flop/s", "flop/s", "FLOPs/s")
	add("ratio", 1e-2, nil, "%")
	add("ratio", 1e-3, nil, "‰")
	add("J", 1, slices.Concat(small, decimal), "J", "joule", "joules", "Joule", "Joules")
	add("J", 3600, decimal, "Wh")
	add("count", 1, slices.Concat(decimal, powers()), "")
	return words
}
