package experiment

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Study repeats the plans of a study, and compares their runs with its claims. A plan with a complete record is not executed again, and an incomplete
// one is continued.
type Study struct {
	Series
	Paper paper.Paper
	// Table restricts the study to one table; empty for all.
	Table string
	// Quick is set if the plans have quick parameters.
	Quick bool
	// Find returns the newest record of a plan, nil without one; see [Newest].
	Find func(context.Context, plan.Plan) (run *result.Run, isImport bool, err error)
	// Found shows a record that is used again or continued.
	Found func(result.Run)

	// Runs are in the order of the plans.
	Runs []reproduce.Run
	// Failed is the number of trials that failed or timed out.
	Failed int

	plans []plan.Plan
	work  []analysis.Key
	// measured and imported are the first runs of this machine and of another one, and machines the names of all others.
	measured, imported string
	machines           []string
}

// NewStudy returns the study with its plans. They are restricted to a table, and to the targets that match a pattern.
func NewStudy(p paper.Paper, plans []plan.Plan, table string, patterns []string) (*Study, error) {
	s := &Study{Paper: p, Table: table}
	matched := map[string]bool{}
	var names []string
	for _, p := range plans {
		work, _, err := execution.Check(p)
		if err != nil {
			return nil, &execution.UsageError{Err: err}
		}
		work = slices.DeleteFunc(work, func(w plan.Work) bool { return !s.needs(w, "") })
		var targets []target.Target
		for _, pattern := range p.Targets {
			t, _ := pattern.Exact()
			names = append(names, t.String())
			match, err := matches(patterns, t.String(), matched)
			if err != nil {
				return nil, err
			}
			if match && slices.ContainsFunc(work, func(w plan.Work) bool { return s.needs(w, t.String()) }) {
				targets = append(targets, t)
			}
		}
		if len(work) == 0 || len(targets) == 0 {
			continue
		}
		for _, w := range work {
			s.work = append(s.work, keyOf(w))
		}
		p = p.Only(targets, work)
		p.Name += s.Suffix()
		s.plans = append(s.plans, p)
	}
	for _, pattern := range patterns {
		if !matched[pattern] {
			return nil, refuse("the study has no target %q; there are %s", pattern, strings.Join(names, ", "))
		}
	}
	if s.plans == nil {
		return nil, &UnavailableError{fmt.Errorf("nothing of %s can be measured: %s", table, reproduce.WhyNothing(s.Paper, table))}
	}
	return s, nil
}

// needs reports whether the study needs a benchmark on a target. An empty target stands for any.
func (s *Study) needs(w plan.Work, target string) bool {
	return s.Table == "" || reproduce.Needs(s.Paper, s.Table, keyOf(w), target)
}

func keyOf(w plan.Work) analysis.Key { return analysis.Key{Name: w.Benchmark.Name, Params: w.Key()} }

// Suffix is the end of the name of a run or a page of one table: "-table-1".
func (s *Study) Suffix() string {
	if s.Table == "" {
		return ""
	}
	return "-" + strings.NewReplacer(" ", "-", "/", "-").Replace(s.Table)
}

// matches reports whether a target matches a pattern, and marks the patterns that it matches. Without patterns each target does.
func matches(patterns []string, name string, matched map[string]bool) (bool, error) {
	match := patterns == nil
	for _, pattern := range patterns {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return false, refuse("--targets: %q is no pattern: %w", pattern, err)
		}
		matched[pattern] = matched[pattern] || ok
		match = match || ok
	}
	return match, nil
}

// Run executes the plans without a complete record.
func (s *Study) Run(ctx context.Context) error {
	return s.follow(ctx, rule{next: s.next, add: func(run Run) error {
		s.Failed += run.Counts[result.Failed] + run.Counts[result.Timeout]
		return s.add(run.Run, false)
	}})
}

// next returns the first plan without a complete record, and adds the complete ones before it.
func (s *Study) next(ctx context.Context) (Request, bool, error) {
	for len(s.plans) > 0 {
		p := s.plans[0]
		s.plans = s.plans[1:]
		run, isImport, err := s.Find(ctx, p)
		if err != nil || run == nil {
			return Request{Plan: p}, true, err
		}
		if run.State != result.Complete {
			p, err = execution.ResumedPlan(*run)
			if err == nil {
				s.Found(*run)
			}
			if err == nil && isImport {
				err = fmt.Errorf("run %s: %w", run.ID, store.ErrImported)
			}
			return Request{Plan: p, Earlier: run}, true, err
		}
		s.Found(*run)
		if err := s.add(archive.WithoutVariables(*run), isImport); err != nil {
			return Request{}, false, err
		}
	}
	return Request{}, false, nil
}

// add adds a run. It refuses runs of several machines: their values belong to no common place.
func (s *Study) add(run result.Run, isImport bool) error {
	if !isImport {
		s.measured = cmp.Or(s.measured, run.ID)
	} else {
		s.imported = cmp.Or(s.imported, run.ID)
		if name := cmp.Or(run.Host.Hostname, "another machine"); !slices.Contains(s.machines, name) {
			s.machines = append(s.machines, name)
		}
	}
	if s.measured != "" && s.imported != "" {
		return fmt.Errorf("run %s was measured on this machine and run %s was imported; use another folder with -d for one of them", s.measured, s.imported)
	}
	r := report.New([]result.Run{run}, analysis.Options{})
	s.Runs = append(s.Runs, reproduce.Run{Run: run, Report: r})
	return s.Publish(r)
}

// Compare compares the runs with the study.
func (s *Study) Compare() *reproduce.Reproduction {
	return reproduce.New(s.Paper, s.Runs, reproduce.Options{Work: s.work, Table: s.Table, Quick: s.Quick, Elsewhere: wording.Listed(s.machines)})
}

// Newest returns the newest run of a plan in a store, nil without one. A run of the same name with another plan does not count.
func Newest(ctx context.Context, db *store.Store, p plan.Plan) (found *result.Run, isImport bool, err error) {
	runs, err := db.Runs(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, s := range runs {
		if s.Name != p.Name {
			continue
		}
		run, err := db.Run(ctx, s.ID)
		if err != nil {
			return nil, false, err
		}
		record, err := plan.Parse("run "+run.ID, []byte(run.Plan))
		if err != nil || !p.Begins(record) {
			continue // of another version or with other flags
		}
		isImport, err := db.Imported(ctx, run.ID)
		return &run, isImport, err
	}
	return nil, false, nil
}
