package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// NamedText is a fact in words.
type NamedText struct{ Name, Text string }

// Fact is a fact of each run, in the order of Report.Runs. An unknown value is empty.
type Fact struct {
	Name   string
	Values []string
	// Differs is set if the runs differ in a fact that could be the same.
	Differs bool
}

// FactGroup is the runs with the same value of a fact.
type FactGroup struct {
	Value string
	Runs  []int
}

// Groups groups the runs by value.
func (f *Fact) Groups() []FactGroup {
	var groups []FactGroup
	for i, v := range f.Values {
		g := place(&groups, func(g *FactGroup) bool { return g.Value == v }, FactGroup{Value: v})
		g.Runs = append(g.Runs, i)
	}
	return groups
}

// Differences are the facts and versions that differ between the runs, and those that all runs share.
func (r *Report) Differences() (differ, same []Fact) {
	for _, f := range slices.Concat(r.Facts, r.Versions) {
		if f.Differs {
			differ = append(differ, f)
		} else if len(f.Groups()) == 1 {
			same = append(same, f)
		}
	}
	return differ, same
}

// HostFacts are the facts of the machine of a run, of the program that made it, and of its images. An unknown fact is
// empty.
func HostFacts(r *result.Run) []NamedText {
	h := &r.Host
	root, pages := "no", ""
	if h.Root {
		root = "yes"
	}
	if h.PageSize > 0 {
		pages = Quantity(float64(h.PageSize), result.Bytes)
	}
	all := []NamedText{
		{"Name", h.Hostname},
		{"Machine", h.NatureText()},
		{"System", h.OS},
		{"Kernel", h.Kernel},
		{"Architecture", h.Arch},
		{"CPU", h.CPU},
		{"Online CPUs", fmt.Sprint(h.CPUs)},
		{"Governor", h.Governor},
		{"Turbo", h.Turbo},
		{"SMT", h.SMT},
		{"Memory", Quantity(float64(h.Memory), result.Bytes)},
		{"Swap", Quantity(float64(h.Swap), result.Bytes)},
		{"Page size", pages},
		{"Cgroup", h.Cgroup},
		{"Security modules", h.LSM},
		{"Mitigations", h.Mitigation},
		{"Kernel command line", h.Cmdline},
		{"Run as root", root},
		{"Tool", strings.TrimSpace(fmt.Sprintf("Touchstone %s %s, %s", r.Tool.Version, r.Tool.Commit, r.Tool.Go))},
	}
	for _, i := range r.Images {
		all = append(all, NamedText{"Image", ImageText(i)})
	}
	return all
}

// facts collects facts by run.
type facts struct {
	all  []Fact
	runs int
}

// value is the value of a fact in a run, which is unset at first.
func (f *facts) value(name string, run int, unset string) *string {
	fact := place(&f.all, func(known *Fact) bool { return known.Name == name }, Fact{Name: name, Values: slices.Repeat([]string{unset}, f.runs)})
	return &fact.Values[run]
}

// known drops facts that are unknown in all runs and marks the differences, except in one fact that differs by nature.
func (f *facts) known(natural string) []Fact {
	f.all = slices.DeleteFunc(f.all, func(f Fact) bool { return !slices.ContainsFunc(f.Values, func(v string) bool { return v != "" }) })
	for i := range f.all {
		f := &f.all[i]
		f.Differs = f.Name != natural && slices.ContainsFunc(f.Values, func(v string) bool { return v != f.Values[0] })
	}
	return f.all
}

// runFacts are HostFacts by run, with all images of a run on one line, and the names of plans and baselines.
func runFacts(runs []result.Run) []Fact {
	all := facts{runs: len(runs)}
	for i := range runs {
		for _, f := range HostFacts(&runs[i]) {
			value := all.value(f.Name, i, "")
			if *value != "" {
				*value += "; "
			}
			*value += f.Text
		}
		*all.value("Plan", i, "") = runs[i].Name
		*all.value("Baseline", i, "") = runs[i].Baseline
	}
	return all.known("Name")
}

// versions are the versions of the targets by run.
func versions(runs []result.Run) []Fact {
	all := facts{runs: len(runs)}
	for i := range runs {
		for _, t := range runs[i].Targets {
			*all.value(t.Name, i, "not in this run") = versionText(&t)
		}
	}
	return all.known("")
}

func versionText(t *result.Target) string {
	var parts []string
	for _, p := range []string{t.Version, t.Isolation} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if t.Cgroup != "" && t.Cgroup != "none" {
		parts = append(parts, "cgroup "+t.Cgroup)
	}
	if t.Rootless {
		parts = append(parts, "rootless")
	}
	if t.Unavailable != "" {
		parts = append(parts, "not available: "+t.Unavailable)
	}
	return strings.Join(parts, ", ")
}
