package counts

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// MaxFile is the largest size of a file of expected counts, in bytes.
const MaxFile = 1 << 20

// magic is the first line of a file of expected counts.
const magic = "touchstone-counts 1"

// Origin describes the traces of a file of expected counts.
type Origin struct {
	Target  string `json:"target" doc:"Name of the target."`
	Runtime string `json:"runtime" doc:"Version of the runtime."`
	Kernel  string `json:"kernel" doc:"Release of the kernel."`
	Arch    string `json:"architecture" doc:"Architecture of the machine."`
	Tool    string `json:"touchstone" doc:"Version of Touchstone."`
}

// OriginOf describes the traces of a target in a run.
func OriginOf(run *result.Run, target string) Origin {
	o := Origin{Target: target, Arch: run.Host.Arch, Tool: run.Tool.Version}
	o.Kernel, _, _ = strings.Cut(run.Host.Kernel, " ")
	for i := range run.Targets {
		if run.Targets[i].Name == target {
			o.Runtime = run.Targets[i].Version
		}
	}
	return o
}

// fields are the lines of the header.
func (o *Origin) fields() []struct {
	name  string
	value *string
} {
	return []struct {
		name  string
		value *string
	}{{"target", &o.Target}, {"runtime", &o.Runtime}, {"kernel", &o.Kernel}, {"architecture", &o.Arch}, {"touchstone", &o.Tool}}
}

// Expected is the content of a file of expected counts.
type Expected struct {
	Origin
	Traces     int
	Benchmarks []ExpectedBenchmark
}

// ExpectedBenchmark is the counts of a benchmark: a number, or varies.
type ExpectedBenchmark struct {
	analysis.Key
	table table
}

// Expect returns the counts of a target in traced cells, for a file. Other targets are left out.
func Expect(origin Origin, cells []Traced) *Expected {
	e := &Expected{Origin: origin}
	for _, c := range cells {
		if c.Target != origin.Target || len(c.Traces) == 0 {
			continue
		}
		t := collect(c.Traces)
		t.places = slices.DeleteFunc(t.places, func(p Place) bool { return isGroup(p.Name) })
		e.Benchmarks = append(e.Benchmarks, ExpectedBenchmark{analysis.Key{Name: c.Benchmark, Params: c.Params}, t})
		if e.Traces == 0 || t.traces < e.Traces {
			e.Traces = t.traces
		}
	}
	return e
}

// Sizes returns the numbers of the counts of steps that are stable, and of those that vary.
func (e *Expected) Sizes() (stable, varying int) {
	for i := range e.Benchmarks {
		t := &e.Benchmarks[i].table
		for _, p := range t.places {
			switch {
			case p.Step == AllSteps:
			case t.isStable(p):
				stable++
			default:
				varying++
			}
		}
	}
	return stable, varying
}

func (t *table) isStable(p Place) bool { return !t.varying[p] && t.ranges[p].IsOne() }

// line is the line of a count in a file: "create: runtime: mount = 33", or "create: runtime: futex varies".
func line(p Place, count string) string {
	separator := " = "
	if count == varies {
		separator = " "
	}
	return p.StepText() + ": " + p.Component + ": " + p.Name + separator + count
}

const varies = "varies"

// lines are the sorted lines of a table. A sum over all steps has a line only if a step varies and the sum does not: else the steps say more.
func (t *table) lines() []string {
	varying := map[Place]bool{} // sums
	for _, p := range t.places {
		if p.Step != AllSteps && !t.isStable(p) {
			varying[Place{AllSteps, p.Component, p.Name}] = true
		}
	}
	var lines []string
	for _, p := range t.places {
		switch {
		case p.Step == AllSteps && !(varying[p] && t.isStable(p)):
		case t.isStable(p):
			lines = append(lines, line(p, t.ranges[p].String()))
		default:
			lines = append(lines, line(p, varies))
		}
	}
	slices.Sort(lines)
	return lines
}

// Write writes the file.
func (e *Expected) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n# Expected numbers of system calls, by step and component. Compare a runtime with them: touchstone counts check FILE\n", magic)
	for _, f := range e.fields() {
		fmt.Fprintf(out, "%s: %s\n", f.name, *f.value)
	}
	fmt.Fprintf(out, "traces: %d\n", e.Traces)
	for i := range e.Benchmarks {
		b := &e.Benchmarks[i]
		fmt.Fprintf(out, "\nbenchmark: %s\n", b.Title())
		for _, text := range b.table.lines() {
			fmt.Fprintln(out, text)
		}
	}
	return out.Flush()
}

// FileError is an error in a file of expected counts.
type FileError struct {
	File    string
	Line    int
	Problem string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Problem
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// ReadExpected reads a file of expected counts. The error is a *[FileError].
func ReadExpected(file string, data []byte) (*Expected, error) {
	text, err := textfile.Read(bytes.NewReader(data), MaxFile, textfile.Counts)
	if err != nil {
		return nil, &FileError{file, 0, err.Error()}
	}
	e := &Expected{}
	number := 0
	fail := func(format string, args ...any) (*Expected, error) {
		return nil, &FileError{file, number, fmt.Sprintf(format, args...)}
	}
	header := map[string]*string{}
	for _, f := range e.fields() {
		header[f.name] = f.value
	}
	for row := range strings.Lines(string(text)) {
		row = strings.TrimRight(row, "\r\n \t")
		number++
		name, value, isField := strings.Cut(row, ":")
		value = strings.TrimSpace(value)
		switch {
		case number == 1:
			if row != magic {
				return fail("the first line is %.50q, and this touchstone reads %q; record the file again, or use a newer touchstone", row, magic)
			}
		case row == "" || strings.HasPrefix(row, "#"):
		case isField && name == "benchmark":
			b := ExpectedBenchmark{table: table{traces: e.Traces, ranges: map[Place]analysis.Range{}, varying: map[Place]bool{}}}
			b.Name, b.Params, _ = strings.Cut(value, " ")
			if b.Name == "" {
				return fail("the name of the benchmark is missing")
			}
			if slices.ContainsFunc(e.Benchmarks, func(entry ExpectedBenchmark) bool { return entry.Key == b.Key }) {
				return fail("benchmark %s occurs twice; merge its counts", b.Title())
			}
			e.Benchmarks = append(e.Benchmarks, b)
		case len(e.Benchmarks) == 0 && isField && name == "traces":
			if e.Traces, err = strconv.Atoi(value); err != nil || e.Traces < 1 {
				return fail("the number of traces %q is no number above 0", value)
			}
		case len(e.Benchmarks) == 0 && isField && header[name] != nil:
			*header[name] = value
		case len(e.Benchmarks) == 0:
			return fail("%.80q is no line of the header; write target, runtime, kernel, architecture, touchstone and traces before the first benchmark", row)
		default:
			if problem := e.Benchmarks[len(e.Benchmarks)-1].table.read(row); problem != "" {
				return fail("%s", problem)
			}
		}
	}
	number = 0
	switch {
	case e.Target == "" || e.Traces == 0:
		return fail("the header needs the lines target and traces; record the file again with touchstone counts record")
	case len(e.Benchmarks) == 0:
		return fail("the file has no benchmark; record it again with touchstone counts record")
	}
	for i := range e.Benchmarks {
		e.Benchmarks[i].table.addSums()
	}
	return e, nil
}

// read reads a line of a count, or returns the problem.
func (t *table) read(row string) (problem string) {
	const form = "write STEP: COMPONENT: CALL = NUMBER, or STEP: COMPONENT: CALL varies"
	text, isVarying := strings.CutSuffix(row, " "+varies)
	count := "0"
	if !isVarying {
		var ok bool
		if text, count, ok = strings.Cut(row, " = "); !ok {
			return fmt.Sprintf("%.80q has no count; %s", row, form)
		}
	}
	n, err := strconv.ParseInt(count, 10, 64)
	parts := strings.Split(text, ": ")
	switch {
	case err != nil || n < 0 || n == 0 && !isVarying:
		return fmt.Sprintf("the count %q is no whole number above 0; %s", count, form)
	case len(parts) != 3 || slices.Contains(parts, ""):
		return fmt.Sprintf("%.80q has no step, component and call; %s", text, form)
	}
	p := Place{parts[0], parts[1], parts[2]}
	if p.Step == analysis.OutsideCalls {
		p.Step = ""
	}
	if _, exists := t.ranges[p]; exists {
		return fmt.Sprintf("the count of %s occurs twice; leave one line", text)
	}
	t.places = append(t.places, p)
	t.ranges[p] = analysis.Range{Least: n, Most: n}
	if isVarying {
		t.varying[p] = true
	}
	return ""
}

// addSums adds the sums over all steps that have no line.
func (t *table) addSums() {
	explicit := map[Place]bool{}
	for _, p := range t.places {
		explicit[p] = p.Step == AllSteps
	}
	for _, p := range slices.Clone(t.places) {
		sum := Place{AllSteps, p.Component, p.Name}
		if explicit[sum] {
			continue
		}
		if _, exists := t.ranges[sum]; !exists {
			t.places = append(t.places, sum)
		}
		n := t.ranges[sum].Least + t.ranges[p].Least
		t.ranges[sum] = analysis.Range{Least: n, Most: n}
		t.varying[sum] = t.varying[sum] || t.varying[p]
	}
	t.places = order(t.places)
}

// Deviation is the comparison of a target with a file of expected counts.
type Deviation struct {
	File     string
	Expected *Expected
	// Now describes the traces that the file is compared with.
	Now   Origin
	Cells []Cell
	// Missing are the benchmarks of the file without a trace, each with the reason.
	Missing []Missing
}

// Missing is a benchmark without traces.
type Missing struct {
	analysis.Key
	Reason string
}

// Compare compares the traced cells of a target with the file.
func (e *Expected) Compare(file string, present Origin, traced []Traced) *Deviation {
	d := &Deviation{File: file, Expected: e, Now: present}
	for i := range e.Benchmarks {
		b := &e.Benchmarks[i]
		place := slices.IndexFunc(traced, func(t Traced) bool {
			return t.Cell == result.Cell{Benchmark: b.Name, Params: b.Params, Target: present.Target}
		})
		switch {
		case place < 0:
			d.Missing = append(d.Missing, Missing{b.Key, "no trial of it was traced"})
		case len(traced[place].Traces) == 0:
			d.Missing = append(d.Missing, Missing{b.Key, traced[place].Reason})
		default:
			t := b.table
			t.traces = e.Traces
			d.Cells = append(d.Cells, newCell(b.Key, present.Target, present.Target, t, collect(traced[place].Traces), nil))
		}
	}
	return d
}

// Suspicious reports whether more traces are needed.
func (d *Deviation) Suspicious() bool {
	return slices.ContainsFunc(d.Cells, func(c Cell) bool { return c.Suspicious() })
}

// Answer is the answer: worse for a count that differs in either direction, because the file must then be renewed.
func (d *Deviation) Answer() stats.Answer {
	answers := []stats.Answer{stats.NotWorse}
	for i := range d.Cells {
		answers = append(answers, d.Cells[i].Answer())
	}
	if d.Missing != nil {
		answers = append(answers, stats.Inconclusive)
	}
	return stats.Overall(answers)
}

// Answer is the answer of a benchmark.
func (c *Cell) Answer() stats.Answer {
	switch {
	case c.Different():
		return stats.Worse
	case c.Suspicious():
		return stats.Inconclusive
	}
	return stats.NotWorse
}

// Spelled lists the changes that decide.
func (c *Cell) Spelled() string {
	var texts []string
	for i := range c.Changes {
		if c.Changes[i].isStable() {
			texts = append(texts, c.Changes[i].String())
		}
	}
	return brief(texts)
}

// Warnings name the differences of the machines that can change counts, with the remedy.
func (d *Deviation) Warnings() []string {
	var texts []string
	for _, f := range []struct{ name, file, now string }{{"kernel", d.Expected.Kernel, d.Now.Kernel}, {"architecture", d.Expected.Arch, d.Now.Arch}} {
		if f.file != f.now {
			texts = append(texts, fmt.Sprintf("The file is of %s %s, and this machine has %s: the kernel and the architecture change counts. Keep a file for each, and record this one with touchstone counts record.", f.name, f.file, f.now))
		}
	}
	return texts
}

// Diff is the changed lines of the file, each benchmark below its title. It is empty without a change.
func (d *Deviation) Diff() string {
	var b strings.Builder
	for i := range d.Cells {
		c := &d.Cells[i]
		if !slices.ContainsFunc(c.Changes, func(count Count) bool { return !count.Varies }) {
			continue
		}
		if b.Len() == 0 {
			fmt.Fprintf(&b, "--- %s (%s)\n+++ %s (%s)\n", d.File, d.Expected.Runtime, d.Now.Target, d.Now.Runtime)
		}
		fmt.Fprintf(&b, "@@ %s @@\n", c.Title())
		for n := range c.Changes {
			count := &c.Changes[n]
			remark := ""
			switch {
			case count.Varies:
				continue
			case count.Moved:
				remark = "  # moved to another step"
			case !c.Shown:
				remark = "  # few traces"
			}
			if count.A.Most > 0 {
				fmt.Fprintf(&b, "-%s\n", line(count.Place, count.A.String()))
			}
			if count.B.Most > 0 {
				fmt.Fprintf(&b, "+%s%s\n", line(count.Place, count.B.String()), remark)
			}
		}
	}
	return b.String()
}
