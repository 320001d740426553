package runs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	explained "github.com/touchstone-bench/touchstone/internal/answer/explain"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/text"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// causes is the section of the causes in the page of a run. It has no blocks if the page lacks it.
func causes(run result.Run) document.Section {
	r := single(run)
	blocks := document.Drawn(runs.Document(&r).Blocks)
	i := slices.IndexFunc(blocks, func(b document.Block) bool { s, is := b.(document.Section); return is && s.ID == "causes" })
	if i < 0 {
		return document.Section{}
	}
	return blocks[i].(document.Section)
}

// titled are the sections within a section.
func titled(s document.Section) (sections []document.Section) {
	for _, b := range s.Blocks {
		if inner, is := b.(document.Section); is {
			sections = append(sections, inner)
		}
	}
	return sections
}

// The page of a run has the tables of touchstone explain, and a terminal leaves them out.
//
// Invariant one-explanation: The page of a report has the same causes as touchstone explain.
func TestCausesOfPage(t *testing.T) {
	run := reporttest.Explained()
	run.Seed = 1
	e, err := explain.New(&run, "native", "oci/runc", explain.Options{Matches: func(string) bool { return true }})
	must.Do(t, err)
	want := titled(titled(document.Section{Blocks: explained.Document(e).Blocks})[0])[0]
	pair := titled(titled(causes(run))[0])[1]
	expect.Equal(t, "the title", "oci/runc against native", pair.Title)
	expect.Equal(t, "the first call", want, titled(pair)[0])
	if note := pair.Note; !strings.HasPrefix(note, "create +") {
		t.Errorf("the note is %q", note)
	}
	if got := written(t, run, text.Options{}); strings.Contains(got, "unexplained") {
		t.Errorf("a terminal has the causes:\n%s", got)
	}
}

// A page names the command for the pairs of targets that it has no room for. Pairs with the baseline come first.
func TestPairsOfPage(t *testing.T) {
	run := reporttest.Explained()
	add := func(name string) {
		target := run.Targets[1]
		target.Name = name
		run.Targets = append(run.Targets, target)
		for _, trial := range run.Trials {
			if trial.Target == "oci/runc" {
				trial.Seq, trial.Target = run.Trials[len(run.Trials)-1].Seq+1, name
				run.Trials = append(run.Trials, trial)
			}
		}
		for _, trace := range run.Traces {
			if trace.Target == "oci/runc" {
				trace.Seq, trace.Target = len(run.Traces)+1, name
				run.Traces = append(run.Traces, trace)
			}
		}
	}
	for n := range 10 {
		add(fmt.Sprintf("oci/r%d", n))
	}
	slices.Reverse(run.Traces) // their order is random
	run.Baseline = "oci/runc"
	bench := titled(causes(run))[0]
	var titles []string
	for _, s := range titled(bench)[1:] {
		titles = append(titles, s.Title)
	}
	expect.Equal(t, "the pairs", []string{
		"native against oci/runc", "oci/r0 against oci/runc", "oci/r1 against oci/runc", "oci/r2 against oci/runc", "oci/r3 against oci/runc",
		"oci/r4 against oci/runc", "oci/r5 against oci/runc", "oci/r6 against oci/runc", "oci/r7 against oci/runc", "oci/r8 against oci/runc",
	}, titles)
	expect.Equal(
		t, "the other pairs", "56 more pairs of the targets oci/runc, native, oci/r0, oci/r1, oci/r2, oci/r3, oci/r4, oci/r5, oci/r6, oci/r7, oci/r8, oci/r9: "+
			"touchstone explain A B --run "+run.ID+" --benchmark operations.container.lifecycle.", bench.Blocks[len(bench.Blocks)-1].(document.Text).Text,
	)
	expect.Equal(t, "the panels", 10, len(bench.Blocks[0].(document.Timeline).Panels))
	expect.Equal(t, "the note", "The processes on 2 more targets: touchstone export "+run.ID+".", bench.Blocks[2].(document.Text).Text)
}

// Traces of a benchmark that chooses its own steps explain no call.
func TestTracesWithoutCalls(t *testing.T) {
	if s := causes(reporttest.Surfaces()); s.Blocks != nil {
		t.Errorf("the page has the causes %+v", s.Blocks)
	}
}
