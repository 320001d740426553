package analysis

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Machine is a machine with its runs.
type Machine struct {
	Name   string `json:"name" doc:"Name of the host in the first run."`
	Nature string `json:"nature" doc:"The kind of machine as far as it shows: no hypervisor found, a guest, emulated."`
	Runs   []int  `json:"runs" doc:"Places of its runs in runs, from 0."`
}

// Differences are the facts and versions that differ between the runs, and those that all runs share.
func (a *Analysis) Differences() (differ, equal []fact.Row) {
	for _, f := range slices.Concat(a.Facts, a.Versions) {
		if f.Differs {
			differ = append(differ, f)
		} else if len(f.Groups()) == 1 {
			equal = append(equal, f)
		}
	}
	return differ, equal
}

// Labels lists the labels of some runs.
func (a *Analysis) Labels(runs []int) string {
	var names []string
	for _, i := range runs {
		names = append(names, a.Runs[i].Label)
	}
	return strings.Join(names, ", ")
}

// longestLabel is the longest label that fits into a column.
const longestLabel = 18

// labels names runs by their hosts, with numbers for runs of hosts with the same name.
func labels(runs []result.Run) []string {
	names := make([]string, len(runs))
	count := map[string]int{}
	for i, r := range runs {
		name := r.Host.Hostname
		if name == "" {
			name = "unnamed"
		}
		if utf8.RuneCountInString(name) > longestLabel {
			name = string([]rune(name)[:longestLabel-1]) + "…"
		}
		names[i] = name
		count[name]++
	}
	next := map[string]int{}
	for i, name := range names {
		if count[name] > 1 {
			next[name]++
			names[i] = fmt.Sprintf("%s #%d", name, next[name])
		}
	}
	return names
}

// byMachine sorts runs by machine. The first run of a machine identifies it.
func byMachine(runs []result.Run) ([]result.Run, []Machine) {
	var groups [][]result.Run
	for _, r := range runs {
		g := lists.Place(&groups, func(g *[]result.Run) bool { return (*g)[0].Host.SameMachine(&r.Host) }, nil)
		*g = append(*g, r)
	}
	var sorted []result.Run
	var machines []Machine
	for _, g := range groups {
		m := Machine{Name: g[0].Host.Hostname, Nature: result.UnknownHost}
		if g[0].Host.IsKnown() {
			m.Nature = g[0].Host.NatureText()
		}
		for range g {
			m.Runs = append(m.Runs, len(sorted)+len(m.Runs))
		}
		sorted = append(sorted, g...)
		machines = append(machines, m)
	}
	return sorted, machines
}

// commonBaselines gives a baseline for each benchmark with different baselines in the runs: the first target of the first
// run that has a trial that is ok in all of them. A benchmark without such a target is in apart.
func commonBaselines(runs []result.Run) (choices map[Key]string, separate map[Key]bool) {
	choices, separate = map[Key]string{}, map[Key]bool{}
	if len(runs) == 1 {
		return choices, separate
	}
	outcomes := map[Key][][]Outcome{}
	baselines := map[Key][]string{}
	for i := range runs {
		for _, b := range builders(&runs[i], nil) {
			targets := b.outcomes()
			if name, _ := b.baseline(targets); name != "" {
				outcomes[b.key] = append(outcomes[b.key], targets)
				baselines[b.key] = append(baselines[b.key], name)
			}
		}
	}
	for k, names := range baselines {
		if !slices.ContainsFunc(names, func(name string) bool { return name != names[0] }) {
			continue
		}
		index := slices.IndexFunc(outcomes[k][0], func(candidate Outcome) bool {
			return !slices.ContainsFunc(outcomes[k], func(list []Outcome) bool {
				return !slices.ContainsFunc(list, func(o Outcome) bool { return o.Target == candidate.Target && o.OK > 0 })
			})
		})
		if index < 0 {
			separate[k] = true
		} else {
			choices[k] = outcomes[k][0][index].Target
		}
	}
	return choices, separate
}

// Coverage is the extent of one benchmark in each run.
type Coverage struct {
	Key
	Cells []Covered
	// Differs is set if the runs differ in it.
	Differs bool
}

// Covered is the extent of one benchmark in one run.
type Covered struct {
	Targets []string `json:"targets" doc:"Targets with a trial that is ok."`
	Lacking []string `json:"lacking,omitempty" doc:"Other targets with trials."`
	Blocks  int      `json:"blocks" doc:"Number of measured blocks."`
	Reason  string   `json:"reason,omitempty" doc:"The reason why no target has a number; absent if one has."`
}

// String spells it: "4 targets, 10 blocks; not youki".
func (c *Covered) String() string {
	if c.Reason != "" {
		return c.Reason
	}
	out := fmt.Sprintf("%s, %s", wording.Counted(len(c.Targets), "target"), wording.Counted(c.Blocks, "block"))
	if len(c.Lacking) > 0 {
		out += "; not " + wording.Shortlist(c.Lacking, "targets")
	}
	return out
}

// cover lists the extent of every benchmark of any run, including benchmarks without a number.
func (a *Analysis) cover(work [][]builder) {
	var keys []Key
	for _, run := range work {
		for _, b := range run {
			if !slices.Contains(keys, b.key) {
				keys = append(keys, b.key)
			}
		}
	}
	for _, k := range keys {
		c := Coverage{Key: k}
		for i := range a.Runs {
			c.Cells = append(c.Cells, a.covered(k, i))
		}
		c.Differs = slices.ContainsFunc(c.Cells, func(cell Covered) bool {
			return cell.Reason != c.Cells[0].Reason || cell.Blocks != c.Cells[0].Blocks || !slices.Equal(cell.Targets, c.Cells[0].Targets)
		})
		a.Coverage = append(a.Coverage, c)
	}
}

func (a *Analysis) covered(k Key, run int) Covered {
	for _, b := range a.Benchmarks() {
		s := b.Sections[run]
		if s == nil || b.Key != k {
			continue
		}
		c := Covered{Targets: []string{}, Blocks: s.Blocks}
		for _, o := range s.Targets {
			if o.OK > 0 {
				c.Targets = append(c.Targets, o.Target)
			} else {
				c.Lacking = append(c.Lacking, o.Target)
			}
		}
		if len(c.Targets) == 0 {
			c.Reason = "no trial was ok"
		}
		return c
	}
	return Covered{Targets: []string{}, Reason: a.Runs[run].Without(k.Title())}
}

// Unmeasured is benchmarks that every target skipped for the same reasons.
type Unmeasured struct {
	Benchmarks []string `json:"benchmarks" doc:"Benchmarks that were skipped for the same reasons, with their parameters."`
	Reasons    []Reason `json:"reasons" doc:"The reasons."`
}

// Reason is the reason why some targets skipped a benchmark. Targets is nil if it holds for all of them.
type Reason struct {
	Text    string   `json:"text" doc:"The reason."`
	Targets []string `json:"targets,omitempty" doc:"The targets that it holds for; absent if it holds for all."`
}

// String spells the reason: "native, oci/runc: REASON".
func (r Reason) String() string {
	if r.Targets == nil {
		return r.Text
	}
	return strings.Join(r.Targets, ", ") + ": " + r.Text
}

// skipped reports whether every target skipped the benchmark.
func (s *Section) skipped() bool {
	return !slices.ContainsFunc(s.Targets, func(o Outcome) bool { return o.Skipped == 0 || o.OK+o.Failed+o.Timeout > 0 })
}

// leaveOut lists a benchmark as not measured.
func (r *Run) leaveOut(title string, s *Section) {
	var reasons []Reason
	for _, o := range s.Targets {
		r := lists.Place(&reasons, func(r *Reason) bool { return r.Text == o.Reason }, Reason{Text: o.Reason})
		r.Targets = append(r.Targets, o.Target)
	}
	switch len(reasons) {
	case 0:
		reasons = []Reason{{Text: "no target could run"}}
	case 1:
		reasons[0].Targets = nil
	}
	equal := func(u *Unmeasured) bool {
		return slices.EqualFunc(u.Reasons, reasons, func(a, b Reason) bool { return a.Text == b.Text && slices.Equal(a.Targets, b.Targets) })
	}
	u := lists.Place(&r.Unmeasured, equal, Unmeasured{Reasons: reasons})
	u.Benchmarks = append(u.Benchmarks, title)
}

// Measured reports whether the gap belongs to a benchmark that was measured on some target.
func (r *Run) Measured(miss *Missing) bool {
	return miss.Status != result.Skipped || !slices.ContainsFunc(r.Unmeasured, func(u Unmeasured) bool { return slices.Contains(u.Benchmarks, miss.Title()) })
}
