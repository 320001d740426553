package experiment

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

const (
	execName      = "operations.container.exec"
	lifecycleName = "operations.container.lifecycle"
)

// studyPlans returns two plans of a study.
func studyPlans(t *testing.T) []plan.Plan {
	t.Helper()
	return []plan.Plan{
		parsePlan(t, "name: one\nblocks: 3\ntargets: [fake/a, fake/b]\nbenchmarks: [{name: "+execName+"}]"),
		parsePlan(t, "name: two\nblocks: 3\ntargets: [fake/b]\nbenchmarks: [{name: "+lifecycleName+"}]"),
	}
}

// study is a study without runs, with the things that it shows.
type study struct {
	*Study
	script    script
	records   map[string]*result.Run // by the plan's name
	imported  map[string]bool
	published []string
	found     []string
}

func newStudy(t *testing.T, table string, patterns ...string) *study {
	t.Helper()
	cell := []paper.Cell{{Printed: "1"}}
	p := paper.Paper{Name: "test", Tables: []paper.Table{{
		Name: "table 1", Of: paper.Of{Benchmark: lifecycleName, Metric: "Create"}, Columns: []paper.Column{{}},
		Rows: []paper.Row{{Of: paper.Of{Target: "fake/b"}, Cells: cell}},
	}}}
	base, err := NewStudy(p, studyPlans(t), table, patterns)
	must.Do(t, err)
	s := &study{Study: base, records: map[string]*result.Run{}, imported: map[string]bool{}}
	s.Executor = &s.script
	s.Find = func(_ context.Context, p plan.Plan) (*result.Run, bool, error) {
		return s.records[p.Name], s.imported[p.Name], nil
	}
	s.Found = func(run result.Run) { s.found = append(s.found, run.ID) }
	s.Publish = func(r report.Report) error {
		s.published = append(s.published, r.Runs[0].Name+" "+r.Runs[0].ID)
		return nil
	}
	return s
}

// keep makes the record of a plan on this machine.
func (s *study) keep(t *testing.T, p plan.Plan, state result.State) {
	t.Helper()
	run, err := s.script.record(7, p)
	must.Do(t, err)
	run.State, run.Host = state, host.Facts("/")
	s.records[p.Name] = &run.Run
}

func (s *study) executed() (names []string) {
	for _, r := range s.script.requests {
		names = append(names, r.Plan.Name)
	}
	return names
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// Only the plans without a complete record are executed, and an incomplete record is continued.
func TestStudyExecutesWhatIsMissing(t *testing.T) {
	s := newStudy(t, "")
	must.Do(t, s.Run(t.Context()))
	equal(t, "the runs without a record", s.executed(), "one", "two")
	equal(t, "their reports", s.published, "one run-0", "two run-1")
	if r := s.script.requests; r[0].Wait || !r[1].Wait {
		t.Errorf("the runs wait for another run: %t, %t; want it for the second alone", r[0].Wait, r[1].Wait)
	}

	s = newStudy(t, "")
	s.keep(t, studyPlans(t)[0], result.Complete)
	s.script.change = func(_ int, r *Run) error { r.loseAll("fake/b"); return nil }
	must.Do(t, s.Run(t.Context()))
	equal(t, "the runs with one record", s.executed(), "two")
	equal(t, "the records", s.found, "run-7")
	equal(t, "the reports of both", s.published, "one run-7", "two run-0")
	if s.Failed != 4 || s.script.requests[0].Earlier != nil || s.script.requests[0].Wait {
		t.Errorf("%d trials failed, want 4 with the warm-up; the run resumes %v and waits %t", s.Failed, s.script.requests[0].Earlier, s.script.requests[0].Wait)
	}
	if r := s.Compare(); len(r.Runs) != 2 || len(r.Work) != 2 {
		t.Errorf("the comparison has %d runs and the work %v", len(r.Runs), r.Work)
	}

	s = newStudy(t, "")
	s.keep(t, studyPlans(t)[0], result.Interrupted)
	must.Do(t, s.Run(t.Context()))
	equal(t, "the runs with an incomplete record", s.executed(), "one", "two")
	equal(t, "the incomplete record", s.found, "run-7")
	if predecessor := s.script.requests[0].Earlier; predecessor == nil || predecessor.ID != "run-7" {
		t.Errorf("run one resumes %v", predecessor)
	}

	s = newStudy(t, "")
	s.keep(t, studyPlans(t)[0], result.Complete)
	s.keep(t, studyPlans(t)[1], result.Complete)
	must.Do(t, s.Run(t.Context()))
	equal(t, "the runs with all records", s.executed())
	if len(s.Runs) != 2 || s.Spent != 0 {
		t.Errorf("%d runs in %v", len(s.Runs), s.Spent)
	}
}

// An interrupt is the last run, with its report. An error has none.
func TestStudyEnds(t *testing.T) {
	s := newStudy(t, "")
	s.script.change = inRun(0, interrupt)
	must.Do(t, s.Run(t.Context()))
	equal(t, "the reports after an interrupt", s.published, "one run-0")
	if s.End != Interrupted {
		t.Errorf("the end is %d", s.End)
	}

	failure := errors.New("the engine is gone")
	s = newStudy(t, "")
	s.script.change = func(int, *Run) error { return failure }
	if err := s.Run(t.Context()); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	equal(t, "the runs until an error", s.executed(), "one")
	equal(t, "the reports after an error", s.published)
}

// The runs are of one machine, and an imported run is not continued.
func TestStudyOfOneMachine(t *testing.T) {
	s := newStudy(t, "")
	s.keep(t, studyPlans(t)[0], result.Complete)
	s.imported["one"] = true
	if err := s.Run(t.Context()); err == nil || err.Error() != "run run-0 was measured on this machine and run run-7 was imported; use another folder with -d for one of them" {
		t.Errorf("an imported run and one of this machine: %v", err)
	}

	s = newStudy(t, "")
	for _, p := range studyPlans(t) {
		s.keep(t, p, result.Complete)
		s.imported[p.Name] = true
	}
	must.Do(t, s.Run(t.Context()))
	if r := s.Compare(); r.Elsewhere != host.Facts("/").Hostname {
		t.Errorf("the machine of imported runs is %q", r.Elsewhere)
	}

	s = newStudy(t, "")
	s.keep(t, studyPlans(t)[0], result.Interrupted)
	s.imported["one"] = true
	if err := s.Run(t.Context()); !errors.Is(err, store.ErrImported) || len(s.script.requests) > 0 {
		t.Errorf("an imported run that is incomplete: %v after %d runs", err, len(s.script.requests))
	}
}

// A table and patterns restrict the plans. A table has a name of its own for the run.
func TestStudyIsRestricted(t *testing.T) {
	s := newStudy(t, "table 1")
	must.Do(t, s.Run(t.Context()))
	equal(t, "the runs of a table", s.executed(), "two-table-1")

	s = newStudy(t, "", "fake/a")
	must.Do(t, s.Run(t.Context()))
	equal(t, "the runs of a target", s.executed(), "one")
	if targets := s.script.requests[0].Plan.Targets; len(targets) != 1 || targets[0].String() != "fake/a" {
		t.Errorf("the targets are %v", targets)
	}

	_, err := NewStudy(paper.Paper{}, studyPlans(t), "", []string{"fake/c"})
	refused(t, err, `the study has no target "fake/c"; there are fake/a, fake/b, fake/b`)
	_, err = NewStudy(paper.Paper{}, studyPlans(t), "", []string{"["})
	refused(t, err, `--targets: "[" is no pattern`)
	_, err = NewStudy(paper.Paper{}, studyPlans(t), "table 9", nil)
	if _, ok := errors.AsType[*UnavailableError](err); !ok {
		t.Errorf("a table without values: %v", err)
	}
}

// The newest run of a plan counts, and no run of the same name with other settings.
func TestNewest(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "results.db"))
	must.Do(t, err)
	defer func() { must.Do(t, db.Close()) }()
	p, extension := studyPlans(t)[0], studyPlans(t)[0]
	extension.Blocks++
	s := &script{}
	for n, record := range []plan.Plan{p, p, extension} {
		run, err := s.record(n, record)
		must.Do(t, err)
		run.Started = time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
		run.Trials = nil
		must.Do(t, db.Create(t.Context(), run.Run))
	}
	run, isImport, err := Newest(t.Context(), db, p)
	if err != nil || isImport || run == nil || run.ID != "run-1" {
		t.Errorf("the newest run is %+v, imported %t, %v", run, isImport, err)
	}
	p.Name = "another"
	if run, _, err := Newest(t.Context(), db, p); err != nil || run != nil {
		t.Errorf("a plan without a run has %+v, %v", run, err)
	}
}
