package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Summary is a run in a list.
type Summary struct {
	ID      string       `json:"id"`
	Name    string       `json:"name"`
	State   result.State `json:"state"`
	Started time.Time    `json:"started"`
	Ended   time.Time    `json:"ended,omitzero"`
	// Trials counts the trials, including warm-ups, by status.
	Trials map[result.Status]int `json:"trials"`
	// Targets and Benchmarks are names, in the order of the run.
	Targets    []string `json:"targets"`
	Benchmarks []string `json:"benchmarks"`
}

// Runs lists all runs, the newest first. A run that was killed has the state result.Killed.
func (s *Store) Runs(ctx context.Context) ([]Summary, error) {
	all, _, err := s.summaries(ctx)
	if err == nil && slices.ContainsFunc(all, func(sum Summary) bool { return s.stale(sum.ID, sum.State) }) {
		// A run may have ended between the read and the look at its lock.
		var imported map[string]bool
		all, imported, err = s.summaries(ctx)
		for i := range all {
			if s.stale(all[i].ID, all[i].State) {
				all[i].State = staleState(imported[all[i].ID])
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", s.explain(err))
	}
	return all, nil
}

func (s *Store) summaries(ctx context.Context) (all []Summary, imported map[string]bool, err error) {
	all, imported = []Summary{}, map[string]bool{}
	err = s.read(ctx, func(tx *sql.Tx) error {
		at := map[int64]int{} // index in all by key
		err := each(ctx, tx, func(scan scan) error {
			var key int64
			var foreign bool
			var targets []result.Target
			var benchmarks []result.Benchmark
			sum := Summary{Trials: map[result.Status]int{}, Targets: []string{}, Benchmarks: []string{}}
			err := scan(&key, &sum.ID, &sum.Name, &sum.State, instant{&sum.Started}, instant{&sum.Ended}, document{&targets}, document{&benchmarks}, &foreign)
			for _, t := range targets {
				sum.Targets = append(sum.Targets, t.Name)
			}
			for _, b := range benchmarks {
				sum.Benchmarks = append(sum.Benchmarks, b.Name)
			}
			at[key], imported[sum.ID] = len(all), foreign
			all = append(all, sum)
			return err
		}, `SELECT key, id, name, state, started, ended, targets, benchmarks, imported FROM run ORDER BY started DESC, key DESC`)
		if err != nil {
			return err
		}
		return each(ctx, tx, func(scan scan) error {
			var key int64
			var status result.Status
			var n int
			err := scan(&key, &status, &n)
			all[at[key]].Trials[status] = n
			return err
		}, `SELECT r.key, t.status, count(*) FROM run r JOIN trial t ON t.run = r.key GROUP BY r.key, t.status`)
	})
	return all, imported, err
}

// IndexEntry lists the results for one metric of one cell. Like TouchStone's index, it covers all plans and runs (espe.txt §4.2.3).
type IndexEntry struct {
	result.Cell
	Metric string `json:"metric"`
	// Trials counts the ok trials without warm-ups, over all runs.
	Trials int `json:"trials"`
	// Runs are the ids of the runs with such trials, the newest first.
	Runs []string `json:"runs"`
	// Last is the start of the last of these trials.
	Last time.Time `json:"last"`
}

// Index lists every metric of every cell with a result in some run, in order of benchmark, parameters, target and metric.
func (s *Store) Index(ctx context.Context) ([]IndexEntry, error) {
	index := []IndexEntry{}
	err := each(ctx, s.db, func(scan scan) error {
		var e IndexEntry
		var run string
		if err := scan(&e.Benchmark, &e.Params, &e.Target, &e.Metric, &run, &e.Trials, instant{&e.Last}); err != nil {
			return err
		}
		if n := len(index); n == 0 || index[n-1].Cell != e.Cell || index[n-1].Metric != e.Metric {
			index = append(index, e)
		} else {
			index[n-1].Trials += e.Trials
			if e.Last.After(index[n-1].Last) {
				index[n-1].Last = e.Last
			}
		}
		last := &index[len(index)-1]
		last.Runs = append(last.Runs, run)
		return nil
	}, `SELECT t.benchmark, t.params, t.target, s.metric, r.id, count(DISTINCT t.key), max(t.started)
		FROM run r JOIN trial t ON t.run = r.key JOIN sample s ON s.trial = t.key
		WHERE t.status = ? AND NOT t.warmup
		GROUP BY t.benchmark, t.params, t.target, s.metric, r.key
		ORDER BY t.benchmark, t.params, t.target, s.metric, r.started DESC, r.key DESC`, result.OK)
	if err != nil {
		return nil, fmt.Errorf("list the index: %w", s.explain(err))
	}
	return index, nil
}
