package counts

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/syscalls"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Prefix begins a gate by counts.
const Prefix = "counts:"

// all is the name of all system calls.
const all = "all"

// Gate is a largest difference of some counts: side B must not exceed side A by it.
type Gate struct {
	// Names are system calls and groups of them; only "all" for each system call.
	Names []string
	// Excess is the largest difference B − A that passes.
	Excess int64
	// At is the place of the gate.
	At string

	text string
}

// GateError is an error in a gate.
type GateError struct{ At, Problem string }

func (e *GateError) Error() string { return e.At + ": " + e.Problem }

// String spells the gate as it was given: "counts:mount,execve>0".
func (g Gate) String() string { return g.text }

// ParseGate reads counts:NAME,NAME>NUMBER. place is the place of the text, such as its flag.
func ParseGate(place, text string) (Gate, error) {
	fail := func(column int, format string, args ...any) (Gate, error) {
		return Gate{}, &GateError{place, fmt.Sprintf("column %d: ", column+1) + fmt.Sprintf(format, args...)}
	}
	list, isGate := strings.CutPrefix(text, Prefix)
	if !isGate {
		return fail(0, "a gate by counts begins with %s, as in counts:mount,execve>0", Prefix)
	}
	relation := strings.IndexAny(list, "<>=")
	if relation < 0 {
		return fail(len(text), "a relation is missing; write > or >= and a number after the names, as in %s>0", text)
	}
	column := len(Prefix)
	names := strings.Split(list[:relation], ",")
	for _, name := range names {
		switch {
		case name == "":
			return fail(column, "a name is missing; write a system call, a group (%s), or all", strings.Join(groupNames, ", "))
		case name == all && len(names) > 1:
			return fail(column, "all includes the other names; write %sall%s", Prefix, list[relation:])
		case name != all && !isGroup(name) && !syscalls.IsName(name):
			return fail(column, "no system call has the name %q; write a system call such as mount, a group (%s), or all", name, strings.Join(groupNames, ", "))
		}
		column += len(name) + 1
	}
	column = len(Prefix) + relation
	operator, number := ">", list[relation+1:]
	if rest, ok := strings.CutPrefix(number, "="); ok && list[relation] == '>' {
		operator, number = ">=", rest
	}
	if list[relation] != '>' {
		return fail(column, "the relation %q is unknown; write > or >=, as in %s%s>0", list[relation:relation+1], Prefix, list[:relation])
	}
	column += len(operator)
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || n < 0:
		return fail(column, "the difference %q is no whole number from 0 on; write the number of calls, as in %s%s%s1", number, Prefix, list[:relation], operator)
	case operator == ">=" && n == 0:
		return fail(column, "equal counts have a difference of 0, so >=0 always fails; write >0")
	case operator == ">=":
		n--
	}
	return Gate{names, n, place, text}, nil
}

// Check is a gate with a name and a cell.
type Check struct {
	Gate   string       `json:"gate" doc:"The gate as it was given."`
	Title  string       `json:"benchmark" doc:"The benchmark with its parameters."`
	Target string       `json:"target" doc:"Target of side B."`
	Name   string       `json:"name" doc:"The system call, the group, or all."`
	Answer stats.Answer `json:"answer" doc:"The answer: worse if a count of B exceeds the count of A by more than the gate allows."`
	Reason string       `json:"reason" doc:"The counts that decide, or the reason of an inconclusive answer with the remedy."`
}

// check answers a gate for a cell.
func (g *Gate) check(c *Cell) []Check {
	var checks []Check
	for _, name := range g.Names {
		k := Check{Gate: g.text, Title: c.Title(), Target: c.TargetB, Name: name}
		k.Answer, k.Reason = g.answer(name, c)
		checks = append(checks, k)
	}
	return checks
}

// answer answers a gate for a name.
func (g *Gate) answer(name string, c *Cell) (stats.Answer, string) {
	decisive, varying := c.split(name)
	var excess []string
	for _, count := range decisive {
		if count.B.Least-count.A.Least > g.Excess {
			excess = append(excess, count.String())
		}
	}
	var exclusions []string
	for _, count := range varying {
		exclusions = append(exclusions, count.String())
	}
	switch {
	case excess != nil && c.Shown:
		return stats.Worse, brief(excess)
	case excess != nil:
		return stats.Inconclusive, fmt.Sprintf("%s; %s a side do not show that these counts are stable: record both sides with --trace %d, or run touchstone selfcheck --target %s before",
			brief(excess), wording.Counted(min(c.TracesA, c.TracesB), "trace"), ShownBy, c.TargetB)
	case len(decisive) == 0 && exclusions != nil:
		return stats.Inconclusive, fmt.Sprintf("%s; these counts vary from trace to trace and decide nothing: leave %s out of the gate", brief(exclusions), name)
	case exclusions != nil:
		return stats.NotWorse, fmt.Sprintf("no count that is stable exceeds A by more than %d; %s not compared, because they vary", g.Excess, counted(len(exclusions)))
	}
	return stats.NotWorse, fmt.Sprintf("no count exceeds A by more than %d", g.Excess)
}

func counted(n int) string {
	if n == 1 {
		return "1 count is"
	}
	return fmt.Sprintf("%d counts are", n)
}

// split returns the counts that decide about a name, and those that vary. A sum over all steps decides if a step of it varies.
func (c *Cell) split(name string) (decisive, varying []*Count) {
	parts := map[*Count]bool{} // sums with a step that varies
	for i := range c.counts {
		count := &c.counts[i]
		if count.Name != name && (name != all || isGroup(count.Name)) {
			continue
		}
		switch sum := c.sum(count); {
		case count == sum && parts[sum] && !sum.Varies, count != sum && count.isStable():
			decisive = append(decisive, count)
		case count != sum && count.Varies:
			if parts[sum] = true; sum.Varies {
				varying = append(varying, count)
			}
		}
	}
	return decisive, varying
}

// mostCounts is the largest number of counts in a reason.
const mostCounts = 6

// brief joins texts.
func brief(texts []string) string {
	rest := ""
	if len(texts) > mostCounts {
		rest = fmt.Sprintf(", and %d more", len(texts)-mostCounts)
		texts = texts[:mostCounts]
	}
	return strings.Join(texts, ", ") + rest
}

// StepText spells the step.
func (p Place) StepText() string { return cmp.Or(p.Step, analysis.OutsideCalls) }

// String spells the count: "mount of runtime in create 33 → 34".
func (c *Count) String() string {
	return fmt.Sprintf("%s of %s in %s %s → %s", c.Name, c.Component, c.StepText(), c.A, c.B)
}

// Comparison is the counts of several benchmarks, with the answers of gates.
type Comparison struct {
	Cells  []Cell  `json:"cells" doc:"The benchmarks that both sides have traced."`
	Checks []Check `json:"gates" doc:"The gates by counts, one for each benchmark, target and name."`
}

// New answers gates for cells.
func New(cells []Cell, gates []Gate) *Comparison {
	c := &Comparison{Cells: cells, Checks: []Check{}}
	for i := range cells {
		for _, g := range gates {
			c.Checks = append(c.Checks, g.check(&cells[i])...)
		}
	}
	return c
}

// Outcome is the answer of all gates: the worst of them. It is empty without a gate.
func (c *Comparison) Outcome() stats.Answer {
	var answers []stats.Answer
	for _, k := range c.Checks {
		answers = append(answers, k.Answer)
	}
	return stats.Overall(answers)
}

// Missing adds the inconclusive answers of gates about a benchmark that a side has not traced.
func (c *Comparison) Missing(gates []Gate, key analysis.Key, target, reason string) {
	for _, g := range gates {
		for _, name := range g.Names {
			c.Checks = append(c.Checks, Check{Gate: g.text, Title: key.Title(), Target: target, Name: name, Answer: stats.Inconclusive, Reason: reason})
		}
	}
}

// Suspicious reports whether a cell needs more traces.
func (c *Comparison) Suspicious() bool {
	return slices.ContainsFunc(c.Cells, func(cell Cell) bool { return cell.Suspicious() })
}

// Summary states the result in a sentence.
func (c *Comparison) Summary() string {
	differences, suspicions := 0, 0
	for i := range c.Cells {
		switch {
		case c.Cells[i].Different():
			differences++
		case c.Cells[i].Suspicious():
			suspicions++
		}
	}
	total := wording.Counted(len(c.Cells), "traced benchmark")
	switch {
	case differences > 0:
		return fmt.Sprintf("Counts differ in %d of %s.", differences, total)
	case suspicions > 0:
		return fmt.Sprintf("Counts seem to differ in %d of %s, and the traces are too few to show it: record both sides with --trace %d.", suspicions, total, ShownBy)
	}
	return fmt.Sprintf("No stable count differs in %s.", total)
}
