package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Condition is a condition of the trials of a benchmark, in words by name.
type Condition struct {
	Name   string
	Values []ConditionValue
}

// ConditionValue is a value with the targets that had it. Targets is nil if every target had it in each of its trials. A
// target whose trials differ is listed with each of their values.
type ConditionValue struct {
	Value   string
	Targets []string
}

// String spells the condition: "cache cold", "path loopback (native), bridge, veth (oci/runc, oci/crun)".
func (c Condition) String() string { return c.Name + " " + c.Text() }

// Text spells the values.
func (c Condition) Text() string {
	var parts []string
	for _, v := range c.Values {
		part := v.Value
		if v.Targets != nil {
			part += " (" + strings.Join(v.Targets, ", ") + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// conditions collects the conditions of the trials that count, sorted by name.
func (b *builder) conditions(targets []Outcome) []Condition {
	var measured []Outcome
	values := map[string][]ConditionValue{}
	for _, o := range targets {
		trials := b.valid(o.Target)
		if len(trials) == 0 {
			continue
		}
		measured = append(measured, o)
		for _, t := range trials {
			for name, value := range t.Conditions {
				all := values[name]
				v := place(&all, func(v *ConditionValue) bool { return v.Value == value }, ConditionValue{Value: value})
				if !slices.Contains(v.Targets, o.Target) {
					v.Targets = append(v.Targets, o.Target)
				}
				values[name] = all
			}
		}
	}
	var all []Condition
	for _, name := range slices.Sorted(maps.Keys(values)) {
		c := Condition{Name: name, Values: values[name]}
		if len(c.Values) == 1 && len(c.Values[0].Targets) == len(measured) && b.always(name, measured) {
			c.Values[0].Targets = nil
		}
		all = append(all, c)
	}
	return all
}

// always reports whether each trial has the condition.
func (b *builder) always(name string, measured []Outcome) bool {
	return !slices.ContainsFunc(measured, func(o Outcome) bool {
		return slices.ContainsFunc(b.valid(o.Target), func(t *result.Trial) bool {
			_, has := t.Conditions[name]
			return !has
		})
	})
}

// conditions are the conditions of a benchmark by run.
func (b *Benchmark) conditions() []Fact {
	all := facts{runs: len(b.Sections)}
	for i, s := range b.Sections {
		if s != nil {
			for _, c := range s.Conditions {
				*all.value(c.Name, i, "not recorded") = c.Text()
			}
		}
	}
	for i := range all.all {
		f := &all.all[i]
		for run, s := range b.Sections {
			if s == nil {
				f.Values[run] = ""
			}
		}
		recorded := slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool { return v == "" })
		f.Differs = len(slices.Compact(recorded)) > 1
	}
	return all.all
}
