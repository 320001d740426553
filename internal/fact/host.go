package fact

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Host lists the facts of the machine of a run, of the program that made it, and of its images. An unknown fact has no
// text.
func Host(r *result.Run) []Fact {
	h := &r.Host
	root, pages := "no", ""
	if h.Root {
		root = "yes"
	}
	if h.PageSize > 0 {
		pages = quantity.Text(float64(h.PageSize), result.Bytes)
	}
	if !h.IsKnown() {
		return []Fact{newFact(Hostname, h.Hostname), newFact(Tool, r.Tool.String())}
	}
	facts := []Fact{
		newFact(Hostname, h.Hostname),
		newFact(Machine, h.NatureText()),
		newFact(System, h.OS),
		newFact(Kernel, h.Kernel),
		newFact(Architecture, h.Arch),
		newFact(CPU, h.CPU),
		newFact(OnlineCPUs, fmt.Sprint(h.CPUs)),
		newFact(Governor, h.Governor),
		newFact(Turbo, h.Turbo),
		newFact(SMT, h.SMT),
		newFact(Memory, quantity.Text(float64(h.Memory), result.Bytes)),
		newFact(Swap, quantity.Text(float64(h.Swap), result.Bytes)),
		newFact(PageSize, pages),
		newFact(Tuning, h.TunedText()),
	}
	facts = append(facts, reclaimFacts(h.Reclaim)...)
	facts = append(facts, settingFacts(h)...)
	facts = append(facts, []Fact{
		newFact(Cgroup, h.Cgroup),
		newFact(SecurityModules, h.LSM),
		newFact(Mitigations, h.Mitigation),
		newFact(CommandLine, h.Cmdline),
		newFact(Root, root),
		newFact(Selfcheck, SelfcheckText(h.Selfcheck)),
	}...)
	facts = append(facts, nodeFacts(h.Node)...)
	facts = append(facts, newFact(Tool, strings.TrimSpace(fmt.Sprintf("Touchstone %s %s, %s", r.Tool.Version, r.Tool.Commit, r.Tool.Go))))
	for _, i := range r.Images {
		facts = append(facts, newFact(Image, ImageText(i)))
	}
	return facts
}

// reclaimFacts are the facts that explain figures of memory.
func reclaimFacts(r *result.Reclaim) []Fact {
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
	hugePages := r.THP
	if r.THPDefrag != "" {
		hugePages += ", defragmentation " + r.THPDefrag
	}
	zswap := ""
	if r.Zswap != nil {
		zswap = map[bool]string{true: "on", false: "off"}[*r.Zswap]
	}
	return []Fact{
		newFact(MemoryAvailable, value(r.Available, size)),
		newFact(SwapUsed, value(r.SwapUsed, size)),
		newFact(Swappiness, value(r.Swappiness, func(n int64) string { return fmt.Sprint(n) })),
		newFact(Overcommit, value(r.Overcommit, func(n int64) string { return overcommit(n, r.OvercommitRatio) })),
		newFact(HugePages, hugePages),
		newFact(KSM, value(r.KSM, func(n int64) string { return ksm(n, r.KSMSharing) })),
		newFact(Zswap, zswap),
	}
}

// nodeFacts are the facts of a node of a cluster.
func nodeFacts(n *result.Node) []Fact {
	if n == nil {
		return nil
	}
	facts := []Fact{newFact(Node, n.Name), newFact(NodeKind, n.Kind), newFact(Kubelet, n.Kubelet), newFact(ContainerEngine, n.Engine)}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		facts = append(facts, Fact{ID{NodeLabel, key}, n.Labels[key]})
	}
	return facts
}

// settingFacts are the facts that a run may lack.
func settingFacts(h *result.Host) []Fact {
	var s result.Settings
	if h.Settings != nil {
		s = *h.Settings
	}
	return []Fact{
		newFact(Microcode, s.Microcode),
		newFact(Scaling, s.Scaling),
		newFact(IdleStates, s.Idle),
		newFact(ClockSource, s.Clock),
		newFact(Preemption, s.Preemption),
		newFact(NUMABalancing, s.NUMABalancing),
		newFact(BPFJIT, s.BPFJIT),
		newFact(FileSystems, h.StorageText()),
	}
}

// SelfcheckText spells the result of a selfcheck, empty without one: "selfcheck of 2026-11-25: in a comparison of two targets by one benchmark alone, a
// verdict shows a delay of CreateAndRun on oci/crun from 2.1 % of the median on in 5 minutes, in any part of the distribution; it is not the
// sensitivity of this report".
func SelfcheckText(c *result.Selfcheck) string {
	if c == nil {
		return ""
	}
	var limits []string
	for _, l := range c.Limits {
		limits = append(limits, fmt.Sprintf("from %s of the median on in %s", quantity.Percent(l.Difference), wording.Counted(l.Minutes, "minute")))
	}
	if limits == nil {
		return ""
	}
	return fmt.Sprintf("selfcheck of %s: in a comparison of two targets by one benchmark alone, a verdict shows a delay of %s on %s %s, in any part of the distribution; "+
		"it is not the sensitivity of this report", c.Date.UTC().Format(time.DateOnly), c.Metric, c.Target, strings.Join(limits, ", "))
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
		return fmt.Sprintf("on, %s merged", wording.Counted(int(*sharing), "page"))
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
	text := fmt.Sprintf("%s: %s", i.Name, i.Digest[:min(len(i.Digest), digestShown)])
	if i.Size > 0 {
		text += ", " + quantity.Text(float64(i.Size), result.Bytes)
	}
	if i.UpdatedList {
		text += ", from an updated list of packages"
	}
	return text
}
