package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/quantity"
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
		pages = quantity.Text(float64(h.PageSize), result.Bytes)
	}
	all := []NamedText{
		{factName, h.Hostname},
		{"Machine", h.NatureText()},
		{"System", h.OS},
		{"Kernel", h.Kernel},
		{"Architecture", h.Arch},
		{"CPU", h.CPU},
		{"Online CPUs", fmt.Sprint(h.CPUs)},
		{"Governor", h.Governor},
		{"Turbo", h.Turbo},
		{"SMT", h.SMT},
		{"Memory", quantity.Text(float64(h.Memory), result.Bytes)},
		{"Swap", quantity.Text(float64(h.Swap), result.Bytes)},
		{"Page size", pages},
		{"Changed by touchstone host tune", h.TunedText()},
	}
	all = append(all, reclaimFacts(h.Reclaim)...)
	all = append(all, settingFacts(h)...)
	all = append(all, []NamedText{
		{"Cgroup", h.Cgroup},
		{"Security modules", h.LSM},
		{"Mitigations", h.Mitigation},
		{"Kernel command line", h.Cmdline},
		{"Run as root", root},
		{factSelfcheck, selfcheckText(h.Selfcheck)},
		{"Tool", strings.TrimSpace(fmt.Sprintf("Touchstone %s %s, %s", r.Tool.Version, r.Tool.Commit, r.Tool.Go))},
	}...)
	for _, i := range r.Images {
		all = append(all, NamedText{"Image", ImageText(i)})
	}
	return all
}

// Names of facts with a meaning of their own.
const (
	factName      = "Name"
	factAvailable = "Memory available at the start"
	factSwapUsed  = "Swap used at the start"
	factSelfcheck = "Selfcheck"
)

// NaturalFacts are the names of the facts that differ between runs of one machine by nature. They are no cause of a difference.
func NaturalFacts() []string { return []string{factAvailable, factSwapUsed, factSelfcheck} }

// reclaimFacts are the facts that explain figures of memory.
func reclaimFacts(r *result.Reclaim) []NamedText {
	if r == nil {
		return nil
	}
	value := func(n *int64, text func(n int64) string) string {
		if n == nil {
			return ""
		}
		return text(*n)
	}
	size := func(n int64) string { return quantity.Text(float64(n), result.Bytes) }
	huge := r.THP
	if r.THPDefrag != "" {
		huge += ", defragmentation " + r.THPDefrag
	}
	zswap := ""
	if r.Zswap != nil {
		zswap = map[bool]string{true: "on", false: "off"}[*r.Zswap]
	}
	return []NamedText{
		{factAvailable, value(r.Available, size)},
		{factSwapUsed, value(r.SwapUsed, size)},
		{"Swappiness", value(r.Swappiness, func(n int64) string { return fmt.Sprint(n) })},
		{"Overcommit", value(r.Overcommit, func(n int64) string { return overcommit(n, r.OvercommitRatio) })},
		{"Transparent huge pages", huge},
		{"KSM", value(r.KSM, func(n int64) string { return ksm(n, r.KSMSharing) })},
		{"zswap", zswap},
	}
}

// settingFacts are the facts that a run may lack.
func settingFacts(h *result.Host) []NamedText {
	var s result.Settings
	if h.Settings != nil {
		s = *h.Settings
	}
	return []NamedText{
		{"Microcode", s.Microcode},
		{"Frequency scaling", s.Scaling},
		{"Idle states", s.Idle},
		{"Clock source", s.Clock},
		{"Preemption", s.Preemption},
		{"NUMA balancing", s.NUMABalancing},
		{"JIT of BPF", s.BPFJIT},
		{"File systems", h.StorageText()},
	}
}

// OptionalFacts are the names of facts that a run may lack. A run without one differs in it from no other run.
func OptionalFacts() []string {
	var names []string
	for _, f := range settingFacts(&result.Host{}) {
		names = append(names, f.Name)
	}
	return names
}

// selfcheckText is the result of a selfcheck: "selfcheck of 2026-11-25: in a comparison of two targets by one benchmark alone, a
// verdict shows a delay of CreateAndRun on oci/crun from 2.1 % of the median on in 5 minutes, in any part of the distribution; it is not the
// sensitivity of this report".
func selfcheckText(c *result.Selfcheck) string {
	if c == nil {
		return ""
	}
	var limits []string
	for _, l := range c.Limits {
		limits = append(limits, fmt.Sprintf("from %s of the median on in %s", quantity.Percent(l.Difference), quantity.Counted(l.Minutes, "minute")))
	}
	if limits == nil {
		return ""
	}
	return fmt.Sprintf("selfcheck of %s: in a comparison of two targets by one benchmark alone, a verdict shows a delay of %s on %s %s, in any part of the distribution; "+
		"it is not the sensitivity of this report", c.Date.UTC().Format(time.DateOnly), c.Metric, c.Target, strings.Join(limits, ", "))
}

// SelfcheckNote states the differences that the machine of the report shows, or the command that finds them. It is empty for several
// machines, which list their selfchecks among the facts, and for fake targets, which are no machine.
func (r *Report) SelfcheckNote() string {
	if len(r.Machines) != 1 {
		return ""
	}
	newest := (*result.Selfcheck)(nil)
	for i := range r.Runs {
		if c := r.Runs[i].Host.Selfcheck; c != nil && (newest == nil || c.Date.After(newest.Date)) {
			newest = c
		}
	}
	if text := selfcheckText(newest); text != "" {
		return strings.ToUpper(text[:1]) + text[1:] + "."
	}
	if slices.ContainsFunc(r.Runs, func(run Run) bool {
		return slices.ContainsFunc(run.Targets, func(t Target) bool { return strings.HasPrefix(t.Name, "fake/") })
	}) {
		return ""
	}
	return "touchstone selfcheck finds the smallest difference that a machine shows."
}

// overcommit describes vm.overcommit_memory (Linux, Documentation/mm/overcommit-accounting.rst).
func overcommit(mode int64, ratio *int64) string {
	switch {
	case mode == 0:
		return "heuristic"
	case mode == 1:
		return "always"
	case mode == 2 && ratio != nil:
		return fmt.Sprintf("strict, %d %% of the memory and the swap", *ratio)
	}
	return fmt.Sprint("mode ", mode)
}

// ksm describes the state of the merging of equal pages (Linux, Documentation/admin-guide/mm/ksm.rst).
func ksm(run int64, sharing *int64) string {
	switch {
	case run != 1:
		return "off"
	case sharing != nil:
		return fmt.Sprintf("on, %d pages merged", *sharing)
	}
	return "on"
}

// digestShown is the length of a digest in texts, enough to be unique in practice. JSON has the whole digest.
const digestShown = len("sha256:") + 12

// ImageText spells an image of a run with its digest and size, or with the reason why it was not available.
func ImageText(i result.Image) string {
	if i.Unavailable != "" {
		return i.Name + ": not available: " + i.Unavailable
	}
	text := fmt.Sprintf("%s: %s, %s", i.Name, i.Digest[:min(len(i.Digest), digestShown)], quantity.Text(float64(i.Size), result.Bytes))
	if i.UpdatedList {
		text += ", from an updated list of packages"
	}
	return text
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

// known drops facts that are unknown in all runs and marks the differences, except in facts that differ by nature.
func (f *facts) known(natural ...string) []Fact {
	f.all = slices.DeleteFunc(f.all, func(f Fact) bool { return !slices.ContainsFunc(f.Values, func(v string) bool { return v != "" }) })
	for i := range f.all {
		f := &f.all[i]
		later := slices.Contains(OptionalFacts(), f.Name)
		values := slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool { return later && v == "" })
		f.Differs = !slices.Contains(natural, f.Name) && slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
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
	natural := NaturalFacts()
	if slices.ContainsFunc(runs, func(r result.Run) bool { return !runs[0].Host.SameMachine(&r.Host) }) {
		natural = slices.DeleteFunc(natural, func(name string) bool { return name == factSelfcheck }) // it describes each machine
	}
	return all.known(append(natural, factName)...)
}

// versions are the versions of the targets by run.
func versions(runs []result.Run) []Fact {
	all := facts{runs: len(runs)}
	for i := range runs {
		for _, t := range runs[i].Targets {
			*all.value(t.Name, i, "not in this run") = versionText(&t)
		}
	}
	return all.known()
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
