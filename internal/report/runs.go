package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Machine is a machine with its runs.
type Machine struct {
	// Name is the host name in the first run, Nature the kind of machine in words.
	Name, Nature string
	// Runs are indexes into Report.Runs.
	Runs []int
}

// StartedText spells the start of the run in UTC. An imported run of TouchStone has none.
func (r *Run) StartedText(layout string) string {
	if r.Started.IsZero() {
		return "at an unknown time"
	}
	return r.Started.UTC().Format(layout)
}

// HasHost reports whether the facts about the host are known. An imported run of TouchStone has none.
func (r *Run) HasHost() bool { return r.Host.CPUs > 0 }

// StateText spells the state of the run with its duration: "complete after 2m51s". The duration is not known if the clock was set back
// before the run was resumed.
func (r *Run) StateText() string {
	took := r.Ended.Sub(r.Started)
	if r.Ended.IsZero() || took < 0 {
		return string(r.State)
	}
	return string(r.State) + " after " + took.Round(time.Second).String()
}

// StatusCounts spells the numbers of trials by status: "10 ok", "2 timed out". The number of ok trials is always in it.
func (r *Run) StatusCounts() []string {
	var all []string
	for _, s := range []result.Status{result.OK, result.Failed, result.Timeout, result.Skipped} {
		if n := r.Counts[s]; n > 0 || s == result.OK {
			all = append(all, fmt.Sprintf("%d %s", n, quantity.StatusWord(s)))
		}
	}
	return all
}

// FamiliesNote explains families and counts the families of the report.
func (r *Report) FamiliesNote() string {
	families, comparisons := r.Families()
	note := fmt.Sprintf("A family is all targets on one metric in one run. Holm's correction keeps the chance of a false verdict in it below %s.", quantity.Percent(stats.Alpha))
	if r.MinEffect > 0 {
		note += fmt.Sprintf(` A difference is "%s" if the 95 %% interval of its ratio and all parts that differ are within %s of equality (--min-effect).`,
			stats.Negligible, quantity.Percent(r.MinEffect))
	}
	if families == 0 && r.anyWithheld() {
		return note + " No comparison of this report has a verdict."
	}
	if families == 0 {
		return note + " No comparison of this report has enough samples for a verdict."
	}
	return note + fmt.Sprintf(" The verdicts of this report are on %s in %s. If no target differed, about %s families would still show a difference by chance.",
		quantity.Counted(comparisons, "comparison"), quantity.Counted(families, "family"), quantity.Significant(stats.Alpha*float64(families), 2))
}

// DependenceNote states that the report cannot test the independence of blocks. It is empty if every benchmark has enough blocks.
func (r *Report) DependenceNote() string {
	for _, b := range r.Benchmarks() {
		for _, s := range b.Sections {
			if s != nil && s.Blocks < stats.MinDependence {
				return fmt.Sprintf("Intervals assume that blocks are independent of each other; whether they are can be tested from %d blocks on.", stats.MinDependence)
			}
		}
	}
	return ""
}

// Differences are the facts and versions that differ between the runs, and those that all runs share.
func (r *Report) Differences() (differ, same []fact.Row) {
	for _, f := range slices.Concat(r.Facts, r.Versions) {
		if f.Differs {
			differ = append(differ, f)
		} else if len(f.Groups()) == 1 {
			same = append(same, f)
		}
	}
	return differ, same
}

// Labels lists the labels of some runs.
func (r *Report) Labels(runs []int) string {
	var names []string
	for _, i := range runs {
		names = append(names, r.Runs[i].Label)
	}
	return strings.Join(names, ", ")
}

// Heading is the title of the report.
func (r *Report) Heading() string {
	switch {
	case len(r.Runs) == 1 && r.Runs[0].Name != "":
		return r.Runs[0].Name
	case len(r.Runs) == 1:
		return "Run " + r.Runs[0].ID
	case len(r.Machines) == 1:
		return fmt.Sprintf("%d runs of one machine", len(r.Runs))
	}
	return fmt.Sprintf("%d runs of %d machines", len(r.Runs), len(r.Machines))
}

// AbsoluteNote states whether absolute values of the runs are compared.
func (r *Report) AbsoluteNote() string {
	switch {
	case r.AcrossMachines:
		return "Absolute values of different runs are compared because of --across-machines: by the typical ratio to " + r.Runs[0].Label +
			" (the median of the quotients of all pairs of values, of Hodges and Lehmann). Their intervals cover the noise within the two runs and no other difference between them. They have no verdicts."
	case len(r.Machines) == 1:
		return "All runs are of one machine, so absolute values share a scale. Runs are not judged against each other."
	}
	return "Absolute values are the measurements of each machine. They are not compared across machines: no ratio, no verdict, no common axis (--across-machines compares them)."
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
		g := place(&groups, func(g *[]result.Run) bool { return (*g)[0].Host.SameMachine(&r.Host) }, nil)
		*g = append(*g, r)
	}
	var sorted []result.Run
	var machines []Machine
	for _, g := range groups {
		m := Machine{Name: g[0].Host.Hostname, Nature: g[0].Host.NatureText()}
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
func commonBaselines(runs []result.Run) (common map[Key]string, apart map[Key]bool) {
	common, apart = map[Key]string{}, map[Key]bool{}
	if len(runs) == 1 {
		return common, apart
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
		at := slices.IndexFunc(outcomes[k][0], func(candidate Outcome) bool {
			return !slices.ContainsFunc(outcomes[k], func(of []Outcome) bool {
				return !slices.ContainsFunc(of, func(o Outcome) bool { return o.Target == candidate.Target && o.OK > 0 })
			})
		})
		if at < 0 {
			apart[k] = true
		} else {
			common[k] = outcomes[k][0][at].Target
		}
	}
	return common, apart
}

// Coverage is the extent of one benchmark in each run.
type Coverage struct {
	Key
	Cells []Covered
	// Differs is set if the runs differ in it.
	Differs bool
}

// Fact is the extent in words, by run.
func (c *Coverage) Fact() fact.Row {
	f := fact.Row{ID: fact.ID{Kind: fact.Extent, Subject: c.Title()}, Differs: c.Differs}
	for i := range c.Cells {
		f.Values = append(f.Values, c.Cells[i].String())
	}
	return f
}

// Covered is the extent of one benchmark in one run.
type Covered struct {
	// Targets are those with a trial that is ok, Lacking the other targets with trials.
	Targets, Lacking []string
	// Blocks counts the measured blocks.
	Blocks int
	// Reason explains why no target has a number. It is empty if one has.
	Reason string
}

// String spells it: "4 targets, 10 blocks; not youki".
func (c *Covered) String() string {
	if c.Reason != "" {
		return c.Reason
	}
	out := fmt.Sprintf("%s, %s", quantity.Counted(len(c.Targets), "target"), quantity.Counted(c.Blocks, "block"))
	if len(c.Lacking) > 0 {
		out += "; not " + quantity.Shortlist(c.Lacking, "targets")
	}
	return out
}

// cover lists the extent of every benchmark of any run, including benchmarks without a number.
func (r *Report) cover(all [][]builder) {
	var keys []Key
	for _, run := range all {
		for _, b := range run {
			if !slices.Contains(keys, b.key) {
				keys = append(keys, b.key)
			}
		}
	}
	for _, k := range keys {
		c := Coverage{Key: k}
		for i := range r.Runs {
			c.Cells = append(c.Cells, r.covered(k, i))
		}
		c.Differs = slices.ContainsFunc(c.Cells, func(of Covered) bool {
			return of.Reason != c.Cells[0].Reason || of.Blocks != c.Cells[0].Blocks || !slices.Equal(of.Targets, c.Cells[0].Targets)
		})
		r.Coverage = append(r.Coverage, c)
	}
}

func (r *Report) covered(k Key, run int) Covered {
	for _, b := range r.Benchmarks() {
		s := b.Sections[run]
		if s == nil || b.Key != k {
			continue
		}
		c := Covered{Blocks: s.Blocks}
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
	return Covered{Reason: r.Runs[run].Without(k.Title())}
}

// Unmeasured is benchmarks that every target skipped for the same reasons.
type Unmeasured struct {
	Benchmarks []string
	Reasons    []Reason
}

// Reason is the reason why some targets skipped a benchmark. Targets is nil if it holds for all of them.
type Reason struct {
	Text    string
	Targets []string
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
		r := place(&reasons, func(r *Reason) bool { return r.Text == o.Reason }, Reason{Text: o.Reason})
		r.Targets = append(r.Targets, o.Target)
	}
	switch len(reasons) {
	case 0:
		reasons = []Reason{{Text: "no target could run"}}
	case 1:
		reasons[0].Targets = nil
	}
	same := func(u *Unmeasured) bool {
		return slices.EqualFunc(u.Reasons, reasons, func(a, b Reason) bool { return a.Text == b.Text && slices.Equal(a.Targets, b.Targets) })
	}
	u := place(&r.Unmeasured, same, Unmeasured{Reasons: reasons})
	u.Benchmarks = append(u.Benchmarks, title)
}

// measured reports whether the gap belongs to a benchmark that was measured on some target.
func (r *Run) measured(miss Missing) bool {
	return miss.Status != result.Skipped || !slices.ContainsFunc(r.Unmeasured, func(u Unmeasured) bool { return slices.Contains(u.Benchmarks, miss.Title()) })
}
