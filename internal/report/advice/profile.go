package advice

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// WorstCase is a dimension of advice only: the largest of many times in a trial, from the suite latency.
const WorstCase = result.Dimension("worst case")

// Weight is the weight of a dimension in a profile.
type Weight struct {
	Dimension result.Dimension
	Weight    float64
	// Required is set if a target without a value is not ranked. Other dimensions count if all ranked targets have values.
	Required bool
}

// Profile is a kind of use, as weights of dimensions. docs/advise.md has the reason of each weight.
type Profile struct {
	Name    string
	Weights []Weight
	// Sandboxed is set if only targets with a stronger isolation than a shared kernel are candidates.
	Sandboxed bool
}

// own is the name of a profile that the user wrote.
const own = "own weights"

// mostWeight is the largest weight that a user may give.
const mostWeight = 1_000_000

// Profiles lists the built-in profiles.
func Profiles() []Profile {
	return []Profile{
		{Name: "web", Weights: []Weight{
			{result.DimensionNetwork, 3, true},
			{result.DimensionSystemCalls, 2, true},
			{result.DimensionCPU, 2, true},
			{result.DimensionMemorySpeed, 1, false},
			{result.DimensionMemoryOverhead, 1, false},
		}},
		{Name: "database", Weights: []Weight{
			{result.DimensionDisk, 4, true},
			{result.DimensionCPU, 2, true},
			{result.DimensionMemorySpeed, 2, false},
			{result.DimensionSystemCalls, 1, false},
			{result.DimensionNetwork, 1, false},
		}},
		{Name: "batch", Weights: []Weight{
			{result.DimensionCPU, 4, true}, {result.DimensionMemorySpeed, 3, true}, {result.DimensionDisk, 2, false}, {result.DimensionStartUp, 1, false},
		}},
		{Name: "faas", Weights: []Weight{
			{result.DimensionStartUp, 4, true},
			{result.DimensionMemoryOverhead, 3, true},
			{result.DimensionDensity, 1, false},
			{result.DimensionCPU, 1, false},
			{result.DimensionSystemCalls, 1, false},
		}},
		{Name: "untrusted", Sandboxed: true, Weights: []Weight{
			{result.DimensionSystemCalls, 2, true},
			{result.DimensionIsolation, 2, true},
			{result.DimensionCPU, 1, true},
			{result.DimensionDisk, 1, false},
			{result.DimensionNetwork, 1, false},
			{result.DimensionMemoryOverhead, 1, false},
			{result.DimensionStartUp, 1, false},
		}},
		{Name: "embedded", Weights: []Weight{
			{result.DimensionMemoryOverhead, 3, true},
			{WorstCase, 3, true},
			{result.DimensionFootprint, 2, true},
			{result.DimensionStartUp, 1, false},
			{result.DimensionCPU, 1, false},
		}},
	}
}

// Names lists the names of the built-in profiles.
func Names() []string {
	var names []string
	for _, p := range Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// Find returns a built-in profile.
func Find(name string) (Profile, error) {
	profiles := Profiles()
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, fmt.Errorf("no profile is called %q; the profiles are %s", name, strings.Join(Names(), ", "))
	}
	return profiles[i], nil
}

// Dimensions lists the dimensions that weights may name.
func Dimensions() []result.Dimension { return append(result.Dimensions(), WorstCase) }

// Parse makes a profile of weights such as "disk=2". A dimension of two words may have a hyphen: "memory-speed=1". Each dimension with a
// weight is required.
func Parse(weights []string) (Profile, error) {
	p := Profile{Name: own}
	for _, text := range weights {
		name, number, ok := strings.Cut(text, "=")
		if !ok {
			return p, fmt.Errorf("weight %q has no number; write DIMENSION=NUMBER, such as disk=2", text)
		}
		dimensions := Dimensions()
		i := slices.IndexFunc(dimensions, func(d result.Dimension) bool { return flag(d) == spell(name) })
		if i < 0 {
			var names []string
			for _, d := range dimensions {
				names = append(names, flag(d))
			}
			return p, fmt.Errorf("weight %q: no dimension is called %q; the dimensions are %s", text, name, strings.Join(names, ", "))
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil || !(value >= 0 && value <= mostWeight) {
			return p, fmt.Errorf("weight %q: %q is no number from 0 to %d", text, number, mostWeight)
		}
		if slices.ContainsFunc(p.Weights, func(w Weight) bool { return w.Dimension == dimensions[i] }) {
			return p, fmt.Errorf("weight %q: %s has a weight already; leave out one of the two", text, flag(dimensions[i]))
		}
		p.Weights = append(p.Weights, Weight{dimensions[i], value, true})
	}
	p.Weights = slices.DeleteFunc(p.Weights, func(w Weight) bool { return w.Weight == 0 })
	if len(p.Weights) == 0 {
		return p, errors.New("all weights are 0; give at least one dimension a weight above 0")
	}
	return p, nil
}

// flag spells a dimension for a command line: "memory-speed".
func flag(d result.Dimension) string { return spell(string(d)) }

func spell(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// Title names the profile in a sentence.
func (p *Profile) Title() string {
	if p.Name == own {
		return own
	}
	return "the profile " + p.Name
}

// Arguments are the flags that choose the profile.
func (p *Profile) Arguments() string {
	if p.Name != own {
		return "--profile " + p.Name
	}
	var parts []string
	for _, w := range p.Weights {
		parts = append(parts, fmt.Sprintf("--weight %s=%v", flag(w.Dimension), w.Weight))
	}
	return strings.Join(parts, " ")
}

// Benchmarks returns the names for --filter of benchmarks that measure a dimension, the cheapest that several engines support.
func Benchmarks(d result.Dimension) string {
	return map[result.Dimension]string{
		result.DimensionCPU: "performance.cpu.time", result.DimensionMemorySpeed: "performance.memory.stream",
		result.DimensionDisk: "performance.disk.throughput", result.DimensionNetwork: "performance.network.http",
		result.DimensionSystemCalls: "performance.syscall.unixbench", result.DimensionStartUp: "operations.container.lifecycle",
		result.DimensionMemoryOverhead: "density.memory", result.DimensionDensity: "density.max",
		result.DimensionIsolation: "isolation.cpu", result.DimensionFootprint: "footprint.install", WorstCase: "latency",
	}[d]
}
