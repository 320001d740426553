package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Latest is the reference to the run that was started last.
const Latest = "latest"

// resolve returns the id of the run for a reference, see Run.
func resolve(ctx context.Context, q querier, ref string) (string, error) {
	all, err := ids(ctx, q)
	if err != nil {
		return "", err
	}
	if ref == Latest && len(all) > 0 {
		return all[0], nil
	}
	var matches []string
	for _, id := range all {
		if id == ref {
			return id, nil
		}
		if ref != "" && len(id) >= len(ref) && strings.EqualFold(id[:len(ref)], ref) {
			matches = append(matches, id)
		}
	}
	switch len(matches) {
	case 0:
		return "", &IDError{Ref: ref, Candidates: all}
	case 1:
		return matches[0], nil
	default:
		return "", &IDError{Ref: ref, Ambiguous: true, Candidates: matches}
	}
}

// ids returns the ids of all runs, the newest first.
func ids(ctx context.Context, q querier) ([]string, error) {
	var all []string
	err := each(ctx, q, func(scan scan) error {
		var id string
		err := scan(&id)
		all = append(all, id)
		return err
	}, `SELECT id FROM run ORDER BY started DESC, key DESC`)
	return all, err
}

// lookUp reads columns of a run. An unknown run is an *IDError.
func (s *Store) lookUp(ctx context.Context, runID, columns string, values ...any) error {
	err := s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM run WHERE id = ?", runID).Scan(values...)
	if errors.Is(err, sql.ErrNoRows) {
		return unknown(ctx, s.db, runID)
	}
	return err
}

func unknown(ctx context.Context, q querier, runID string) error {
	all, err := ids(ctx, q)
	if err != nil {
		return err
	}
	return &IDError{Ref: runID, Candidates: all}
}

// Run returns the whole run for a reference: a whole id, the unambiguous beginning of an id (case does not matter), or Latest. If no
// run or several runs match, the error is an *IDError. Trials are in order of Seq; phases, samples, distributions and timelines are in the
// order of their recording. Trials with equal conditions share the map. The run is consistent even while another process writes. A killed run has the state result.Killed.
func (s *Store) Run(ctx context.Context, ref string) (result.Run, error) {
	run, _, err := s.readRef(ctx, ref)
	if err == nil && s.stale(run.ID, run.State) {
		// The run may have ended between the read and the look at its lock.
		var imported bool
		if run, imported, err = s.readRef(ctx, run.ID); err == nil && s.stale(run.ID, run.State) {
			run.State = staleState(imported)
		}
	}
	if err != nil {
		return result.Run{}, fmt.Errorf("read run %q: %w", ref, s.explain(err))
	}
	return run, nil
}

func (s *Store) readRef(ctx context.Context, ref string) (run result.Run, imported bool, err error) {
	var key int64
	var version int
	err = s.read(ctx, func(tx *sql.Tx) error {
		id, err := resolve(ctx, tx, ref)
		if err != nil {
			return err
		}
		if run, key, err = readRun(ctx, tx, id); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT imported FROM run WHERE id = ?`, id).Scan(&imported); err != nil {
			return err
		}
		version, err = readVersion(ctx, tx)
		return err
	})
	if err == nil {
		err = s.readLists(ctx, key, run.Trials, version)
	}
	return run, imported, err
}

// readRun returns a run and its key. Its trials have no lists yet.
func readRun(ctx context.Context, tx *sql.Tx, id string) (run result.Run, runKey int64, err error) {
	err = runTable.query(ctx, tx, "key", "run WHERE id = ?", []any{id}, func(key int64, r *result.Run) error {
		runKey, run = key, *r
		return nil
	})
	if err != nil {
		return result.Run{}, 0, err
	}
	var trials int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM trial WHERE run = ?`, runKey).Scan(&trials); err != nil {
		return result.Run{}, 0, err
	}
	if trials > 0 {
		run.Trials = make([]result.Trial, 0, trials)
	}
	present := map[result.Cell]result.Cell{}
	err = trialTable.query(ctx, tx, "key", "trial WHERE run = ? ORDER BY seq", []any{runKey}, func(_ int64, t *result.Trial) error {
		cell, known := present[t.Cell]
		if !known {
			cell = t.Present()
			present[t.Cell] = cell
		}
		t.Cell = cell
		run.Trials = append(run.Trials, *t)
		return nil
	})
	return run, runKey, err
}

// readLists reads the lists of a run's trials, which are in order of Seq, on all CPUs. Each CPU has its own transaction. The transactions agree, because a trial and
// its lists are recorded in one transaction and do not change. A trial that was recorded later is left out. After a change by a newer touchstone or by another
// program, the error is an ErrChanged.
func (s *Store) readLists(ctx context.Context, run int64, trials []result.Trial, version int) error {
	parts := min(runtime.GOMAXPROCS(0), connections)
	all, ctx := errgroup.WithContext(ctx)
	for part := range slices.Chunk(trials, len(trials)/parts+1) {
		all.Go(func() error {
			return s.read(ctx, func(tx *sql.Tx) error {
				if err := s.unchanged(ctx, tx, run, part, version); err != nil {
					return err
				}
				return errors.Join(
					phaseTable.ofTrials(ctx, tx, run, part, func(t *result.Trial) *[]result.Phase { return &t.Phases }),
					sampleTable.ofTrials(ctx, tx, run, part, func(t *result.Trial) *[]result.Sample { return &t.Samples }),
					distributionTable.ofTrials(ctx, tx, run, part, func(t *result.Trial) *[]result.Distribution { return &t.Distributions }),
					timelineTable.ofTrials(ctx, tx, run, part, func(t *result.Trial) *[]result.Timeline { return &t.Timelines }),
				)
			})
		})
	}
	return all.Wait()
}

// unchanged returns an ErrChanged if the file has another version or fewer of the trials.
func (s *Store) unchanged(ctx context.Context, tx *sql.Tx, run int64, trials []result.Trial, version int) error {
	now, err := readVersion(ctx, tx)
	if err != nil {
		return err
	}
	changed := &FileError{Path: s.path, Kind: ErrChanged, Advice: "try again"}
	if now != version {
		changed.Err = fmt.Errorf("from version %d to %d", version, now)
		return changed
	}
	var there int
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM trial WHERE run = ? AND seq BETWEEN ? AND ?`, run, trials[0].Seq, trials[len(trials)-1].Seq).Scan(&there)
	if err != nil {
		return err
	}
	if there < len(trials) {
		changed.Err = fmt.Errorf("trials %d to %d were %d, and are %d", trials[0].Seq, trials[len(trials)-1].Seq, len(trials), there)
		return changed
	}
	return nil
}

// eachTrial calls do for each trial of a run, in the order of their execution. It holds one trial at a time.
func eachTrial(ctx context.Context, tx *sql.Tx, run int64, do func(*result.Trial) error) error {
	return trialTable.query(ctx, tx, "key", "trial WHERE run = ? ORDER BY seq", []any{run}, func(key int64, t *result.Trial) (err error) {
		t.Cell = t.Present()
		var errs [4]error
		t.Phases, errs[0] = phaseTable.ofTrial(ctx, tx, key)
		t.Samples, errs[1] = sampleTable.ofTrial(ctx, tx, key)
		t.Distributions, errs[2] = distributionTable.ofTrial(ctx, tx, key)
		t.Timelines, errs[3] = timelineTable.ofTrial(ctx, tx, key)
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		return do(t)
	})
}

// read calls do in a read-only transaction, which sees a consistent snapshot.
func (s *Store) read(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(do(tx), ended(tx.Rollback()))
}

// scan copies the columns of a row, like sql.Rows.Scan.
type scan = func(columns ...any) error

// each calls row for every row of a query.
func each(ctx context.Context, q querier, row func(scan) error, query string, args ...any) (err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

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
	type row struct {
		result.Cell
		metric string
	}
	at := map[row]int{} // in index
	err := each(ctx, s.db, func(scan scan) error {
		var e IndexEntry
		var run string
		if err := scan(&e.Benchmark, &e.Params, &e.Target, &e.Metric, &run, &e.Trials, instant{&e.Last}); err != nil {
			return err
		}
		e.Cell = e.Present()
		i, known := at[row{e.Cell, e.Metric}]
		if !known {
			i = len(index)
			at[row{e.Cell, e.Metric}] = i
			index = append(index, e)
		} else {
			index[i].Trials += e.Trials
			if e.Last.After(index[i].Last) {
				index[i].Last = e.Last
			}
		}
		if !slices.Contains(index[i].Runs, run) { // a resumed run can have both spellings of a parameter
			index[i].Runs = append(index[i].Runs, run)
		}
		return nil
	}, `SELECT t.benchmark, t.params, t.target, s.metric, r.id, count(DISTINCT t.key), max(t.started)
		FROM run r JOIN trial t ON t.run = r.key JOIN sample s ON s.trial = t.key
		WHERE t.status = ? AND NOT t.warmup
		GROUP BY t.benchmark, t.params, t.target, s.metric, r.key
		ORDER BY r.started DESC, r.key DESC`, result.OK)
	if err != nil {
		return nil, fmt.Errorf("list the index: %w", s.explain(err))
	}
	slices.SortFunc(index, func(a, b IndexEntry) int {
		return cmp.Or(cmp.Compare(a.Benchmark, b.Benchmark), cmp.Compare(a.Params, b.Params), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Metric, b.Metric))
	})
	return index, nil
}

// TrialTimes returns the mean time of a trial of each cell, over the runs of this machine in the file. Only trials that are ok count.
func (s *Store) TrialTimes(ctx context.Context) (map[result.Cell]time.Duration, error) {
	times := map[result.Cell]time.Duration{}
	err := s.read(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, func(scan scan) error {
			var cell result.Cell
			var mean float64
			if err := scan(&cell.Benchmark, &cell.Params, &cell.Target, &mean); err != nil {
				return err
			}
			times[cell] = time.Duration(mean)
			return nil
		}, `SELECT benchmark, params, target, avg(elapsed_ns) FROM trial JOIN run ON trial.run = run.key WHERE status = ? AND NOT imported GROUP BY benchmark, params, target`, result.OK)
	})
	if err != nil {
		return nil, fmt.Errorf("read the times of earlier trials: %w", s.explain(err))
	}
	return times, nil
}
