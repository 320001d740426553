// Package export writes runs for other programs: their samples, or a summary of each cell. A format is one file and a line of [Formats]. The formats of answers,
// with ratios and verdicts, are in package render.
//
// Values have all their digits and base units. A trial without a value, and a cell without one, is never a number. The file names it if the format has a place for it,
// and [Source.Notes] otherwise.
package export

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/render/rows"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Format is a form of runs for another program.
type Format struct {
	// Name is the value of a --format flag.
	Name string
	// Single is set if the format has no place for the name of a run, so that it has room for one run only.
	Single bool
	// JSON is set for a format in JSON.
	JSON bool
	// Parts are the files of the format.
	Parts []Part
}

// Part is a file of a format. Suffix is the end of its name; it is empty for the only file. Write writes nothing if the runs have nothing for the file.
type Part struct {
	Suffix string
	Write  func(w io.Writer, s *Source) error
}

// Formats are all formats.
func Formats() []Format {
	return []Format{
		{Name: "csv", Parts: []Part{{"", writeSamples(rows.Comma)}}},
		{Name: "tsv", Parts: []Part{{"", writeSamples(rows.Tab)}}},
		{Name: "benchfmt", Parts: []Part{{"", writeBenchfmt}}},
		{Name: "openmetrics", Parts: []Part{{"", writeOpenMetrics}}},
		{Name: "bmf", Single: true, JSON: true, Parts: []Part{{"", writeBMF}}},
		{Name: "conbench", JSON: true, Parts: []Part{{"", writeConbench}}},
		{Name: "github-action", Single: true, JSON: true, Parts: []Part{
			{"-smaller-is-better.json", writeGitHub(result.Lower)},
			{"-bigger-is-better.json", writeGitHub(result.Higher)},
		}},
	}
}

// Source is runs for a format, with the cells of their analysis.
type Source struct {
	runs  []result.Run
	list  []cell // nil before the analysis
	notes []string
}

// New returns the source of at least one run.
func New(runs []result.Run) *Source { return &Source{runs: runs} }

// Notes are sentences about the things that the written files do not express.
func (s *Source) Notes() []string { return s.notes }

// note adds a sentence once.
func (s *Source) note(format string, args ...any) {
	if text := rows.OneLine(fmt.Sprintf(format, args...)); !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// cell is a metric of a benchmark on a target in a run.
type cell struct {
	run *result.Run
	result.Cell
	metric *result.Metric
	// values has the summary, or the reason without one.
	values *analysis.Cell
}

// cells are the cells of all metrics that are no part of a cost. A metric that the target lacks by its nature has none.
func (s *Source) cells() []cell {
	if s.list != nil {
		return s.list
	}
	a := analysis.New(s.runs, analysis.Options{})
	if e := finding.EmulationOf(a); e != nil {
		s.note("%s", e.Note)
	}
	for _, b := range a.Benchmarks() {
		for i := range b.Metrics {
			m := &b.Metrics[i]
			for _, row := range m.Rows {
				for run := range row.Cells {
					if c := &row.Cells[run]; !c.Absent && b.Sections[run] != nil {
						s.list = append(s.list, cell{&a.Runs[run].Run, result.Cell{Benchmark: b.Name, Params: b.Params, Target: row.Target}, &m.Metric, c})
					}
				}
			}
		}
	}
	return s.list
}

// finished are the cells with a value. The notes have the others, and the trials without a value.
func (s *Source) finished() []cell {
	var list []cell
	for _, c := range s.cells() {
		if c.values.Summary == nil {
			s.note("no value: %s: %s", c.title(), c.values.Reason)
			continue
		}
		list = append(list, c)
	}
	s.noteLosses()
	return list
}

// title names the benchmark with its parameters and its target.
func (c *cell) title() string { return title(c.Cell) }

func title(c result.Cell) string {
	return analysis.Key{Name: c.Benchmark, Params: c.Params}.Title() + " on " + c.Target
}

// noteLosses adds the cells with trials that are not ok, in the order of the trials. A cell that has a note already needs no other one.
func (s *Source) noteLosses() {
	for i := range s.runs {
		cells, counts := trialCounts(&s.runs[i])
		for _, c := range cells {
			total, ok := 0, counts[c][result.OK]
			for _, n := range counts[c] {
				total += n
			}
			isNoted := slices.ContainsFunc(s.notes, func(n string) bool { return strings.Contains(n, rows.OneLine(title(c))+":") })
			if ok < total && (ok > 0 || !isNoted) {
				s.note("no value: %d of %s of %s", total-ok, wording.Counted(total, "trial"), title(c))
			}
		}
	}
}

// trialCounts are the numbers of the trials of a run without warm-up by cell and status, and the cells in the order of their first trials.
func trialCounts(run *result.Run) ([]result.Cell, map[result.Cell]map[result.Status]int) {
	counts := map[result.Cell]map[result.Status]int{}
	var cells []result.Cell
	for i := range run.Trials {
		t := &run.Trials[i]
		if t.Warmup {
			continue
		}
		if counts[t.Cell] == nil {
			counts[t.Cell] = map[result.Status]int{}
			cells = append(cells, t.Cell)
		}
		counts[t.Cell][t.Status]++
	}
	return cells, counts
}

// shorten cuts a name that a program would refuse to its beginning and a mark of the whole, and adds a note.
func (s *Source) shorten(name string, limit int, program string) string {
	name = rows.OneLine(name)
	if utf8.RuneCountInString(name) <= limit {
		return name
	}
	mark := fmt.Sprintf("…%08x", uint32(result.Cell{Benchmark: name}.Seed(0, "")))
	cut := strings.TrimSpace(string([]rune(name)[:limit-utf8.RuneCountInString(mark)])) + mark
	s.note("%s takes names of up to %d characters: %q is written as %q", program, limit, name, cut)
	return cut
}
