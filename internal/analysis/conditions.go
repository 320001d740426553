package analysis

import (
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Condition is a condition of the trials of a benchmark, in words by name.
type Condition struct {
	Name   string           `json:"name" doc:"Name of the condition."`
	Values []ConditionValue `json:"values" doc:"Its values."`
}

// ConditionValue is a value with the targets that had it. Targets is nil if every target had it in each of its trials. A
// target whose trials differ is listed with each of their values.
type ConditionValue struct {
	Value   string   `json:"value" doc:"The value."`
	Targets []string `json:"targets,omitempty" doc:"The targets that had it; absent if every target had it in each of its trials."`
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

// conditions collects the conditions of the trials that count, sorted by name. The results in words are apart from the other
// conditions, in the order of the benchmark.
func (b *builder) conditions(targets []Outcome) (stated, rest []Condition) {
	var outcomes []Outcome
	values := map[string][]ConditionValue{}
	for _, o := range targets {
		trials := b.valid(o.Target)
		if len(trials) == 0 {
			continue
		}
		outcomes = append(outcomes, o)
		for _, t := range trials {
			for name, value := range t.Conditions {
				if b.unjudged && slices.Contains(b.described.Judged, name) {
					value = noVerdictOf(b.run)
				}
				list := values[name]
				v := lists.Place(&list, func(v *ConditionValue) bool { return v.Value == value }, ConditionValue{Value: value})
				if !slices.Contains(v.Targets, o.Target) {
					v.Targets = append(v.Targets, o.Target)
				}
				values[name] = list
			}
		}
	}
	condition := func(name string) Condition {
		c := Condition{Name: name, Values: values[name]}
		if len(c.Values) == 1 && len(c.Values[0].Targets) == len(outcomes) && b.always(name, outcomes) {
			c.Values[0].Targets = nil
		}
		return c
	}
	for _, name := range b.described.Statements {
		if values[name] != nil {
			stated = append(stated, condition(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(b.described.Statements, name) {
			rest = append(rest, condition(name))
		}
	}
	return stated, rest
}

// on spells the values that a target had. It is empty if the target had none.
func (c Condition) on(target string) string {
	var parts []string
	for _, v := range c.Values {
		if v.Targets == nil || slices.Contains(v.Targets, target) {
			parts = append(parts, v.Value)
		}
	}
	return strings.Join(parts, ", or in other trials: ")
}

// StatedRow has the results in words of one target, in the order of Section.Stated. A text is empty if the target has none.
type StatedRow struct {
	Target string
	Texts  []string
}

// StatedRows are the results in words by target, without targets that have none.
func (s *Section) StatedRows() []StatedRow {
	var rows []StatedRow
	for _, o := range s.Targets {
		row := StatedRow{Target: o.Target}
		for _, c := range s.Stated {
			row.Texts = append(row.Texts, c.on(o.Target))
		}
		if o.OK > 0 && strings.Join(row.Texts, "") != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// always reports whether each trial has the condition.
func (b *builder) always(name string, outcomes []Outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o Outcome) bool {
		return slices.ContainsFunc(b.valid(o.Target), func(t *result.Trial) bool {
			_, has := t.Conditions[name]
			return !has
		})
	})
}

// conditions are the conditions of a benchmark by run.
func (b *Benchmark) conditions() []fact.Row {
	table := fact.NewTable(len(b.Sections))
	for i, s := range b.Sections {
		if s != nil {
			for _, c := range slices.Concat(s.Stated, s.Conditions) {
				*table.Value(fact.ID{Kind: fact.Condition, Subject: c.Name}, i, "not recorded") = c.Text()
			}
		}
	}
	for i := range table.Rows {
		f := &table.Rows[i]
		for run, s := range b.Sections {
			if s == nil {
				f.Values[run] = ""
			}
		}
		values := slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool { return v == "" })
		f.Differs = len(slices.Compact(values)) > 1
	}
	return table.Rows
}
