// Package advice ranks the targets of runs for a use: a profile of weighted dimensions. An answer has the orders that the data shows, and the gaps in the data.
//
// # Numbers
//
//   - A source is one metric of one benchmark in one run. It counts for its dimension if all ranked targets have values of it in [stats.MinSamples] blocks or
//     more. The weight of a dimension is divided equally among its sources, and the weights of all counted dimensions together are 1.
//   - The cost of a target is the geometric mean of its costs over the sources by these weights, as a factor of the reference: bare metal if it has all
//     sources, else the first ranked target. It is estimated by [stats.SumTypical] over the blocks.
//   - Sources of one run with the same blocks form a group, which is added block by block. So a disturbance of a block that hits several benchmarks counts
//     once. Groups count as independent.
//
// # Orders
//
//   - An order of two targets is shown if the test of their difference rejects equality over all pairs together, by Holm's correction, and if the order
//     holds in 95 % of the resamples or more. The first condition alone keeps the chance of one false order in the whole answer at 5 %.
//   - A resample draws whole blocks with replacement, at the same positions for all groups of a run. The cost of a target in it is the sum of the medians of its
//     groups, each block less the mean of all targets.
//   - A stopping rule of a run has looked at the data before. The p-values then hold for all its looks ([stats.Look]).
//
// # Refusals
//
// A target has no place if it is not available, if a required dimension has no usable value, if it has lost more than [stats.MostLost] of the
// blocks of a benchmark that counts, or if the profile excludes its isolation. Values of speed from an emulated CPU are not usable.
package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Advice is the answer for one profile.
type Advice struct {
	Profile Profile
	// Runs are the IDs of the runs in the order of the caller.
	Runs []string
	Seed uint64
	// Counted are the dimensions of the ranking with their sources.
	Counted []Counted
	// Reference is the target with the cost 1.
	Reference string
	// Blocks is the number of blocks of each group.
	Blocks []int
	// Ranked are the targets by their cost, Orders all pairs of them: those with the first target first.
	Ranked []Ranked
	Orders []Order
	// Unranked are the other targets, Missing the dimensions of the profile that are not counted.
	Unranked []Unranked
	Missing  []Missing
	// Commands measure the missing dimensions, and ask again.
	Commands []string
	// Reason explains an empty ranking.
	Reason string
	// Class is the runtime class for Kubernetes of the first target; nil without one.
	Class *Class
	// IsFleet is set if nodes are the observations, in the place of blocks.
	IsFleet bool

	folder string
}

// Counted is a dimension of the ranking.
type Counted struct {
	Dimension result.Dimension
	// Share is its share (0–1) of all weights.
	Share   float64
	Sources []Source
}

// Ranked is a target with a place.
type Ranked struct {
	result.Target
	// Place is 1 and the number of targets that are shown to cost less. Targets may share a place.
	Place int
	// Cost is the estimate with its interval.
	Cost float64
	CI   *stats.Interval
	// Costs are the costs of the dimensions, in the order of Advice.Counted.
	Costs []float64
	// First is the share of the resamples without a cheaper target.
	First float64
}

// Order is a pair of targets. Better has the smaller cost, as an estimate.
type Order struct {
	Better, Worse string
	// Ratio is the cost of Worse by the cost of Better, with its interval.
	Ratio float64
	CI    *stats.Interval
	// Share is the share of the resamples with this order. P is the p-value over all pairs.
	Share, P float64
	// Shown is set if the data shows the order.
	Shown bool
	// Dependent is set if the difference of a block depends on the blocks before, so that the order is not shown.
	Dependent bool
	// More is the number of further blocks that may show the order; 0 if it is shown, or if no reasonable number may show it.
	More int
}

// Unranked is a target without a place.
type Unranked struct {
	Target, Reason string
}

// Missing is a dimension of the profile without a value on some target.
type Missing struct {
	Weight
	// Counted is set if the dimension counts for the ranked targets, and only others lack it.
	Counted bool
	Reason  string
}

// Options are the choices of the caller.
type Options struct {
	Profile Profile
	// Folder is the folder of the results in commands; empty for the default.
	Folder string
}

// New ranks the targets of runs of one machine. The runs have their samples, and a is their analysis.
func New(runs []result.Run, a *analysis.Analysis, o Options) *Advice {
	out := &Advice{Profile: o.Profile, folder: o.Folder, Seed: runs[0].Seed}
	for i := range runs {
		out.Runs = append(out.Runs, runs[i].ID)
	}
	out.judge(newData(a, o.Profile, out.Unit()))
	if len(out.Ranked) > 0 {
		out.Class = newClass(runs, out.Ranked[0].Target, o.Folder)
	}
	return out
}

// NewFleet ranks the targets of a fleet. A node takes the place of a block ([fleet.Report.Joint]), so an order holds for nodes like these.
func NewFleet(r *fleet.Report, o Options) *Advice {
	run := r.Joint()
	out := &Advice{Profile: o.Profile, IsFleet: true, folder: o.Folder, Seed: run.Seed, Runs: []string{r.ID}}
	out.judge(newData(analysis.New([]result.Run{run}, analysis.Options{}), o.Profile, out.Unit()))
	if len(out.Ranked) > 0 {
		out.Class = newFleetClass(r, out.Ranked[0].Target, o.Folder)
	}
	return out
}

// Unit is the unit of observation.
func (a *Advice) Unit() string {
	if a.IsFleet {
		return "node"
	}
	return "block"
}

// judge ranks the targets, or gives the reasons against it.
func (a *Advice) judge(d *data) {
	candidates := a.admit(d)
	targets := a.complete(d, candidates)
	a.count(d, targets)
	a.explain(d, candidates)
	if a.Reason == "" {
		a.rank(d, targets)
	}
}

// Best are the targets of the first place.
func (a *Advice) Best() []string {
	var names []string
	for _, r := range a.Ranked {
		if r.Place == 1 {
			names = append(names, r.Name)
		}
	}
	return names
}

// Decided reports whether the first target is shown to cost less than every other one.
func (a *Advice) Decided() bool {
	return len(a.Ranked) > 1 && !slices.ContainsFunc(a.Orders, func(o Order) bool {
		return (o.Better == a.Ranked[0].Name || o.Worse == a.Ranked[0].Name) && (!o.Shown || o.Better != a.Ranked[0].Name)
	})
}

// Order is the order of two ranked targets.
func (a *Advice) Order(name, peer string) *Order {
	i := slices.IndexFunc(a.Orders, func(o Order) bool { return o.Better == name && o.Worse == peer || o.Better == peer && o.Worse == name })
	return &a.Orders[i]
}

// admit lists the targets that may have a place, in the order of the runs, and records the others.
func (a *Advice) admit(d *data) []result.Target {
	var list []result.Target
	names := map[string]bool{}
	for run := range d.Runs {
		for _, t := range d.Runs[run].Targets {
			if t.Kind == result.KindNative {
				d.native = cmp.Or(d.native, t.Name)
				continue
			}
			if names[t.Name] {
				continue
			}
			names[t.Name] = true
			if reason := a.refusal(d, t.Target); reason != "" {
				a.Unranked = append(a.Unranked, Unranked{t.Name, reason})
				continue
			}
			list = append(list, t.Target)
		}
	}
	if len(list) == 0 {
		a.Reason = "the runs have no target that this profile may rank"
	}
	return list
}

// refusal is the reason against a target before its values count; empty without one.
func (a *Advice) refusal(d *data, t result.Target) string {
	var versions []string
	for run := range d.Runs {
		for _, twin := range d.Runs[run].Targets {
			if twin.Name == t.Name && twin.Unavailable == "" && !slices.Contains(versions, twin.Version) {
				versions = append(versions, twin.Version)
			}
		}
	}
	switch {
	case len(versions) == 0:
		return "not available: " + t.Unavailable
	case len(versions) > 1:
		return "the runs have different versions of it: " + strings.Join(versions, "; ")
	case a.Profile.Sandboxed && !t.Sandboxed():
		return "excluded: its isolation is " + cmp.Or(t.Isolation, "unknown") + "; this profile needs a layer between containers and the host's kernel"
	}
	for _, w := range a.Profile.Weights {
		for _, s := range d.sources[w.Dimension] {
			i := slices.IndexFunc(s.section.Targets, func(o analysis.Outcome) bool { return o.Target == t.Name })
			if i >= 0 && a.IsFleet && s.section.Targets[i].LostShare() > stats.MostLost {
				o := &s.section.Targets[i]
				return fmt.Sprintf("it lost trials of %s on %d of %s, so the rest may look better than the target is", s.Title(), o.Lost, wording.Counted(o.OK+o.Lost, "node"))
			}
			if i >= 0 && s.section.Targets[i].LostShare() > stats.MostLost {
				return fmt.Sprintf("%s of %s, so the rest may look better than the target is", s.section.Targets[i].LostText(), s.Title())
			}
		}
	}
	return ""
}

// complete keeps the targets with a value of each required dimension. If no target has a value of a dimension, all targets stay, without a ranking.
func (a *Advice) complete(d *data, targets []result.Target) []result.Target {
	var gaps []string
	for _, w := range a.Profile.Weights {
		rest := lists.Filter(targets, func(t result.Target) bool { return d.has(w.Dimension, t.Name) })
		switch {
		case !w.Required || len(targets) == 0:
		case len(rest) == 0:
			gaps = append(gaps, string(w.Dimension))
		default:
			for _, t := range targets {
				if !d.has(w.Dimension, t.Name) {
					a.Unranked = append(a.Unranked, Unranked{t.Name, fmt.Sprintf("%s: %s", w.Dimension, d.lack(w.Dimension, t.Name))})
				}
			}
			targets = rest
		}
	}
	if len(gaps) > 0 {
		a.Reason = "no target has a usable value of " + wording.Listed(gaps)
	}
	return targets
}

// count chooses the sources that all targets have.
func (a *Advice) count(d *data, targets []result.Target) {
	var total float64
	sources := d.common(targets)
	for _, w := range a.Profile.Weights {
		if list := sources[w.Dimension]; len(list) > 0 {
			a.Counted = append(a.Counted, Counted{Dimension: w.Dimension, Share: w.Weight, Sources: list})
			total += w.Weight
		} else if w.Required && a.Reason == "" {
			a.Reason = fmt.Sprintf("the targets have no metric of %s in %d common %ss of one run", w.Dimension, stats.MinSamples, a.Unit())
		}
	}
	for i := range a.Counted {
		a.Counted[i].Share /= total
	}
}

// explain records the gaps of the profile's dimensions, and the commands that fill them.
func (a *Advice) explain(d *data, candidates []result.Target) {
	var filters []string
	for _, w := range a.Profile.Weights {
		isCounted := slices.ContainsFunc(a.Counted, func(c Counted) bool { return c.Dimension == w.Dimension })
		reasons := gaps(d, w.Dimension, candidates)
		if isCounted && len(reasons) == 0 || len(candidates) == 0 {
			continue
		}
		if len(reasons) == 0 {
			reasons = []string{"the targets have no common " + a.Unit() + "s of a run"}
		}
		a.Missing = append(a.Missing, Missing{Weight: w, Counted: isCounted, Reason: strings.Join(reasons, "; ")})
		if name := a.benchmarks(w.Dimension); !d.emulated(w.Dimension) && !slices.Contains(filters, name) {
			filters = append(filters, name)
		}
	}
	if len(filters) == 0 {
		return
	}
	names := []string{cmp.Or(d.native, "native")}
	for _, t := range candidates {
		names = append(names, t.Name)
	}
	if a.IsFleet {
		a.Commands = []string{
			command("touchstone cluster run", "-t", strings.Join(names[1:], ","), "--filter", strings.Join(filters, ","), "-n", strconv.Itoa(leastBlocks), a.folder),
			command("touchstone advise "+a.Profile.Arguments(), "latest", a.folder),
		}
		return
	}
	blocks := max(leastBlocks, stats.BlocksNeeded(max(1, len(candidates)*(len(candidates)-1)/2)))
	a.Commands = []string{
		command("touchstone benchmark", "-t", strings.Join(names, ","), "--filter", strings.Join(filters, ","), "-n", strconv.Itoa(blocks), a.folder),
		command("touchstone advise "+a.Profile.Arguments(), append(slices.Clone(a.Runs), "latest", a.folder)...),
	}
}

// benchmarks are the benchmarks of a dimension. Benchmarks of containers have counterparts for pods.
func (a *Advice) benchmarks(d result.Dimension) string {
	switch {
	case a.IsFleet && d == result.DimensionStartUp:
		return "pods.start"
	case a.IsFleet && (d == result.DimensionDensity || d == result.DimensionMemoryOverhead):
		return fleetBenchmark
	}
	return Benchmarks(d)
}

// leastBlocks is the number of blocks in commands. More targets need more.
const leastBlocks = 14

// gaps lists the reasons why targets lack a dimension, each with its targets.
func gaps(d *data, dimension result.Dimension, targets []result.Target) []string {
	type gap struct {
		reason string
		names  []string
	}
	var list []gap
	for _, t := range targets {
		if !d.has(dimension, t.Name) {
			reason := d.lack(dimension, t.Name)
			g := lists.Place(&list, func(g *gap) bool { return g.reason == reason }, gap{reason: reason})
			g.names = append(g.names, t.Name)
		}
	}
	return lists.Convert(list, func(g *gap) string {
		if len(g.names) == len(targets) {
			return g.reason
		}
		return g.reason + " (" + strings.Join(g.names, ", ") + ")"
	})
}

// command spells a command line for a shell. The last argument is the folder of the results, or empty for the default.
func command(verb string, arguments ...string) string {
	last := len(arguments) - 1
	folder := arguments[last]
	arguments = slices.Clone(arguments[:last])
	if folder != "" && folder != defaultFolder {
		arguments = append(arguments, "-d", folder)
	}
	for _, text := range arguments {
		verb += " " + quote(text)
	}
	return verb
}

// defaultFolder is the folder of the results without -d.
const defaultFolder = "out"

// quote makes a word for a shell.
func quote(text string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./,=@:+%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !isPlain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
