package fact

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Table collects facts by run.
type Table struct {
	Rows []Row
	runs int
}

// NewTable returns an empty table of a number of runs.
func NewTable(runs int) *Table { return &Table{runs: runs} }

// Value is the value of a fact in a run. All values are unset at first.
func (t *Table) Value(id ID, run int, unset string) *string {
	index := slices.IndexFunc(t.Rows, func(r Row) bool { return r.ID == id })
	if index < 0 {
		index = len(t.Rows)
		t.Rows = append(t.Rows, Row{ID: id, Values: slices.Repeat([]string{unset}, t.runs)})
	}
	return &t.Rows[index].Values[run]
}

// finish drops facts that are unknown in all runs and marks the differences, except in facts that differ by nature.
func (t *Table) finish(natural func(Kind) bool) []Row {
	t.Rows = slices.DeleteFunc(t.Rows, func(r Row) bool { return !slices.ContainsFunc(r.Values, func(v string) bool { return v != "" }) })
	for i := range t.Rows {
		r := &t.Rows[i]
		values := slices.DeleteFunc(slices.Clone(r.Values), func(v string) bool { return r.Kind.Optional() && v == "" })
		r.Differs = !natural(r.Kind) && slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
	}
	return t.Rows
}

// Hosts are the facts of [Host] by run, with all images of a run on one line, and the names of plans and baselines.
func Hosts(runs []result.Run) []Row {
	table := NewTable(len(runs))
	for i := range runs {
		for _, f := range Host(&runs[i]) {
			value := table.Value(f.ID, i, "")
			if *value != "" {
				*value += "; "
			}
			*value += f.Text
		}
		*table.Value(ID{Kind: Plan}, i, "") = runs[i].Name
		*table.Value(ID{Kind: Baseline}, i, "") = runs[i].Baseline
	}
	variety := slices.ContainsFunc(runs, func(r result.Run) bool { return !runs[0].Host.SameMachine(&r.Host) })
	return table.finish(func(k Kind) bool {
		return k == Hostname || k.Natural() && (k != Selfcheck || !variety) // a selfcheck describes its machine
	})
}

// Versions are the versions of the targets by run.
func Versions(runs []result.Run) []Row {
	table := NewTable(len(runs))
	for i := range runs {
		for n := range runs[i].Targets {
			t := &runs[i].Targets[n]
			var remark []string
			if t.Unavailable != "" {
				remark = []string{"not available: " + t.Unavailable}
			}
			*table.Value(ID{Version, t.Name}, i, "not in this run") = TargetText(t, remark...)
		}
	}
	return table.finish(func(Kind) bool { return false })
}

// TargetText spells the version and the properties of a target, and further remarks.
func TargetText(t *result.Target, remarks ...string) string {
	parts := []string{t.Version, t.Isolation}
	if t.Cgroup != "" && t.Cgroup != "none" {
		parts = append(parts, "cgroup "+t.Cgroup)
	}
	if t.Rootless {
		parts = append(parts, "rootless")
	}
	parts = append(parts, remarks...)
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}
