package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// NamedText is a fact in words.
type NamedText struct{ Name, Text string }

// HostFacts are the facts of the machine of a run, of the program that made it, and its images. What is not known is
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

// jointFacts are the facts of runs by name: those of HostFacts, with all images of a run on one line, and
// what tells the plans apart.
func jointFacts(runs []result.Run) []Fact {
	var all []Fact
	set := func(run int, name, text string) {
		at := slices.IndexFunc(all, func(f Fact) bool { return f.Name == name })
		if at < 0 {
			all, at = append(all, Fact{Name: name, Values: make([]string, len(runs))}), len(all)
		}
		if all[at].Values[run] != "" {
			text = all[at].Values[run] + "; " + text
		}
		all[at].Values[run] = text
	}
	for i := range runs {
		for _, f := range HostFacts(&runs[i]) {
			set(i, f.Name, f.Text)
		}
		set(i, "Plan", runs[i].Name)
		set(i, "Baseline", runs[i].Baseline)
	}
	return settle(all, "Name")
}

// settle leaves out facts that no run has and marks those in which the runs differ, but for one that differs by
// its nature.
func settle(all []Fact, natural string) []Fact {
	all = slices.DeleteFunc(all, func(f Fact) bool { return !slices.ContainsFunc(f.Values, func(v string) bool { return v != "" }) })
	for i := range all {
		f := &all[i]
		f.Differs = f.Name != natural && slices.ContainsFunc(f.Values, func(v string) bool { return v != f.Values[0] })
	}
	return all
}

// jointVersions are the versions of the targets of runs.
func jointVersions(runs []result.Run) []Fact {
	var all []Fact
	for i := range runs {
		for _, t := range runs[i].Targets {
			at := slices.IndexFunc(all, func(f Fact) bool { return f.Name == t.Name })
			if at < 0 {
				at = len(all)
				all = append(all, Fact{Name: t.Name, Values: make([]string, len(runs))})
				for j := range runs {
					all[at].Values[j] = absentTarget
				}
			}
			all[at].Values[i] = versionText(&t)
		}
	}
	return settle(all, "")
}

// absentTarget stands where a run has no such target.
const absentTarget = "not in this run"

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
