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
func resolve(ctx context.Context, tx *transaction, ref string) (string, error) {
	if ref != Latest {
		var id string
		if err := tx.QueryRowContext(ctx, `SELECT id FROM run WHERE id = ?`, ref).Scan(&id); !errors.Is(err, sql.ErrNoRows) {
			return id, err
		}
	}
	list, err := ids(ctx, tx)
	if err != nil {
		return "", err
	}
	if ref == Latest && len(list) > 0 {
		return list[0], nil
	}
	var matches []string
	for _, id := range list {
		if ref != "" && len(id) >= len(ref) && strings.EqualFold(id[:len(ref)], ref) {
			matches = append(matches, id)
		}
	}
	switch len(matches) {
	case 0:
		return "", &IDError{Ref: ref, Candidates: list}
	case 1:
		return matches[0], nil
	default:
		return "", &IDError{Ref: ref, Ambiguous: true, Candidates: matches}
	}
}

// ids returns the ids of all runs, the newest first.
func ids(ctx context.Context, tx *transaction) ([]string, error) {
	type row struct {
		id      string
		started time.Time
	}
	var rows []row
	err := each(ctx, tx, func(scan scan) error {
		var r row
		err := scan(&r.id, instant{&r.started})
		rows = append(rows, r)
		return err
	}, `SELECT id, started FROM run ORDER BY key DESC`)
	slices.SortStableFunc(rows, func(a, b row) int { return b.started.Compare(a.started) })
	var list []string
	for _, r := range rows {
		list = append(list, r.id)
	}
	return list, err
}

// lookUp reads columns of a run. An unknown run is an *IDError.
func lookUp(ctx context.Context, tx *transaction, runID, columns string, values ...any) error {
	err := tx.QueryRowContext(ctx, "SELECT "+columns+" FROM run WHERE id = ?", runID).Scan(values...)
	if errors.Is(err, sql.ErrNoRows) {
		return unknown(ctx, tx, runID)
	}
	return err
}

func unknown(ctx context.Context, tx *transaction, runID string) error {
	list, err := ids(ctx, tx)
	if err != nil {
		return err
	}
	return &IDError{Ref: runID, Candidates: list}
}

// Run returns the whole run for a reference: a whole id, the unambiguous beginning of an id (case does not matter), or Latest. If no
// run or several runs match, the error is an *IDError. Trials are in order of Seq; phases, samples, distributions and timelines are in the
// order of their recording. Most trials with equal conditions share the map. The run is consistent even while another process writes. A killed run has
// the state result.Killed.
func (s *Store) Run(ctx context.Context, ref string) (result.Run, error) {
	return s.load(ctx, ref, true)
}

// Outline is Run without the traces, and without the phases, samples, distributions and timelines of the trials, which are most of a run.
func (s *Store) Outline(ctx context.Context, ref string) (result.Run, error) {
	return s.load(ctx, ref, false)
}

func (s *Store) load(ctx context.Context, ref string, lists bool) (result.Run, error) {
	run, _, err := s.readRef(ctx, ref, lists)
	if err == nil && s.stale(run.ID, run.State) {
		// The run may have ended between the read and the look at its lock.
		var isImport bool
		if run, isImport, err = s.readRef(ctx, run.ID, lists); err == nil && s.stale(run.ID, run.State) {
			run.State = staleState(isImport)
		}
	}
	if err != nil {
		return result.Run{}, fmt.Errorf("read run %q: %w", ref, s.explain(err))
	}
	return run, nil
}

// Heads returns all runs without their trials, the newest first. A run that was killed has the state result.Killed.
func (s *Store) Heads(ctx context.Context) ([]result.Run, error) {
	list, err := s.list(ctx, false)
	if err != nil {
		return nil, err
	}
	heads := map[string]result.Run{}
	err = s.read(ctx, func(tx *transaction) error {
		return runTable.query(ctx, tx, "key", "run", nil, func(_ int64, r *result.Run) error {
			heads[r.ID] = *r
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", s.explain(err))
	}
	var runs []result.Run
	for _, sum := range list {
		if r, ok := heads[sum.ID]; ok { // a run may have been removed meanwhile
			r.State = sum.State
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (s *Store) readRef(ctx context.Context, ref string, lists bool) (run result.Run, isImport bool, err error) {
	var key int64
	err = s.read(ctx, func(tx *transaction) error {
		id, err := resolve(ctx, tx, ref)
		if err != nil {
			return err
		}
		if run, key, err = readRun(ctx, tx, id); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT imported FROM run WHERE id = ?`, id).Scan(&isImport)
	})
	if err == nil {
		err = s.readTrials(ctx, key, run.Trials, lists)
	}
	if err == nil && lists {
		err = s.read(ctx, func(tx *transaction) error {
			return eachTrace(ctx, tx, key, func(t *result.Trace) error {
				run.Traces = append(run.Traces, *t)
				return nil
			})
		})
	}
	return run, isImport, err
}

// readRun returns a run and its key. Its trials have only their Seq yet.
func readRun(ctx context.Context, tx *transaction, id string) (run result.Run, runKey int64, err error) {
	err = runTable.query(ctx, tx, "key", "run WHERE id = ?", []any{id}, func(key int64, r *result.Run) error {
		runKey, run = key, *r
		return nil
	})
	if err != nil {
		return result.Run{}, 0, err
	}
	var trials int64
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM trial WHERE run = ?`, runKey).Scan(&trials); err != nil {
		return result.Run{}, 0, err
	}
	if trials > tx.rows {
		return result.Run{}, 0, errRows
	}
	if trials > 0 {
		run.Trials = make([]result.Trial, 0, trials)
	}
	var seq int64
	columns := []any{number[int64]{&seq}}
	err = each(ctx, tx, func(scan scan) error {
		err := scan(columns...)
		run.Trials = append(run.Trials, result.Trial{Seq: int(seq)})
		return err
	}, `SELECT seq FROM trial WHERE run = ? ORDER BY seq`, runKey)
	return run, runKey, err
}

// readTrials reads the trials of a run, which have only their Seq and are in its order, on all CPUs. Each CPU has its own transaction. The transactions agree,
// because a trial and its lists are recorded in one transaction and do not change. Without lists it leaves them out. A trial that was recorded later is left out. After a change by another
// program, the error is an ErrChanged.
func (s *Store) readTrials(ctx context.Context, run int64, trials []result.Trial, lists bool) error {
	parts := min(runtime.GOMAXPROCS(0), connections)
	group, ctx := errgroup.WithContext(ctx)
	for part := range slices.Chunk(trials, len(trials)/parts+1) {
		group.Go(func() error {
			return s.read(ctx, func(tx *transaction) error {
				rows, err := s.readRows(ctx, tx, run, part)
				if err != nil || !lists {
					return err
				}
				return errors.Join(
					phaseTable.ofTrials(ctx, tx, rows, func(t *result.Trial) *[]result.Phase { return &t.Phases }),
					sampleTable.ofTrials(ctx, tx, rows, func(t *result.Trial) *[]result.Sample { return &t.Samples }),
					distributionTable.ofTrials(ctx, tx, rows, func(t *result.Trial) *[]result.Distribution { return &t.Distributions }),
					timelineTable.ofTrials(ctx, tx, rows, func(t *result.Trial) *[]result.Timeline { return &t.Timelines }),
				)
			})
		})
	}
	return group.Wait()
}

// trialRow is a trial with the key of its row.
type trialRow struct {
	key int64
	*result.Trial
}

// readRows reads trials without their lists, and returns them in order of their keys.
func (s *Store) readRows(ctx context.Context, tx *transaction, run int64, trials []result.Trial) ([]trialRow, error) {
	rows := make([]trialRow, 0, len(trials))
	last := trials[len(trials)-1].Seq
	err := trialTable.query(ctx, tx, "key", "trial WHERE run = ? AND seq BETWEEN ? AND ? ORDER BY seq", []any{run, trials[0].Seq, last}, func(key int64, t *result.Trial) error {
		if next := len(rows); next < len(trials) && trials[next].Seq == t.Seq {
			trials[next] = *t
			rows = append(rows, trialRow{key, &trials[next]})
		}
		return nil
	})
	if err == nil && len(rows) < len(trials) {
		err = &FileError{
			Path: s.path, Kind: ErrChanged, Advice: "try again",
			Err: fmt.Errorf("trials %d to %d were %d, and are not all there", trials[0].Seq, last, len(trials)),
		}
	}
	slices.SortFunc(rows, func(a, b trialRow) int { return cmp.Compare(a.key, b.key) })
	return rows, err
}

// eachTrial calls do for each trial of a run, in the order of their execution. It holds one trial at a time.
func eachTrial(ctx context.Context, tx *transaction, run int64, do func(*result.Trial) error) error {
	return trialTable.query(ctx, tx, "key", "trial WHERE run = ? ORDER BY seq", []any{run}, func(key int64, t *result.Trial) (err error) {
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

// eachTrace calls do for each trace of a run, in the order of their execution.
func eachTrace(ctx context.Context, tx *transaction, run int64, do func(*result.Trace) error) error {
	return traceTable.query(ctx, tx, "run", "trace WHERE run = ? ORDER BY seq", []any{run}, func(_ int64, t *result.Trace) error { return do(t) })
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
	// Node is the machine's part in a cluster run; nil for a machine that was measured alone.
	Node *result.Node `json:"node,omitempty"`
}

// Runs lists all runs, the newest first. A run that was killed has the state result.Killed.
func (s *Store) Runs(ctx context.Context) ([]Summary, error) { return s.list(ctx, true) }

// list is Runs, with the numbers of trials if they are counted. The count reads every trial of the file, because no index has the status.
// Sums in SQLite take longer.
func (s *Store) list(ctx context.Context, count bool) ([]Summary, error) {
	list, _, err := s.summaries(ctx, count)
	if err == nil && slices.ContainsFunc(list, func(sum Summary) bool { return s.stale(sum.ID, sum.State) }) {
		// A run may have ended between the read and the look at its lock.
		var imports map[string]bool
		list, imports, err = s.summaries(ctx, count)
		for i := range list {
			if s.stale(list[i].ID, list[i].State) {
				list[i].State = staleState(imports[list[i].ID])
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", s.explain(err))
	}
	return list, nil
}

func (s *Store) summaries(ctx context.Context, count bool) (list []Summary, imports map[string]bool, err error) {
	list, imports = []Summary{}, map[string]bool{}
	err = s.read(ctx, func(tx *transaction) error {
		trials := map[int64]map[result.Status]int{} // by the key of the run
		err := each(ctx, tx, func(scan scan) error {
			var key int64
			var isForeign bool
			var targets []result.Target
			var benchmarks []result.Benchmark
			var host result.Host
			sum := Summary{Trials: map[result.Status]int{}, Targets: []string{}, Benchmarks: []string{}}
			err := scan(&key, &sum.ID, &sum.Name, &sum.State, instant{&sum.Started}, instant{&sum.Ended}, document{&targets}, document{&benchmarks}, document{&host}, &isForeign)
			sum.Node = host.Node
			for _, t := range targets {
				sum.Targets = append(sum.Targets, t.Name)
			}
			for _, b := range benchmarks {
				sum.Benchmarks = append(sum.Benchmarks, b.Name)
			}
			trials[key], imports[sum.ID] = sum.Trials, isForeign
			list = append(list, sum)
			return err
		}, `SELECT key, id, name, state, started, ended, targets, benchmarks, host, imported FROM run ORDER BY key DESC`)
		if err != nil || !count {
			return err
		}
		var key int64
		var status result.Status
		columns := []any{number[int64]{&key}, &word[result.Status]{text: &status}}
		return each(ctx, tx, func(scan scan) error {
			err := scan(columns...)
			if counts := trials[key]; counts != nil {
				counts[status]++
			}
			return err
		}, `SELECT run, status FROM trial`)
	})
	slices.SortStableFunc(list, func(a, b Summary) int { return b.Started.Compare(a.Started) })
	return list, imports, err
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
	b := indexBuilder{index: []IndexEntry{}, places: map[indexRow]int{}}
	err := s.read(ctx, func(tx *transaction) error {
		list, err := ids(ctx, tx)
		if err != nil {
			return err
		}
		for _, id := range list {
			if err := b.addRun(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the index: %w", s.explain(err))
	}
	slices.SortFunc(b.index, func(a, b IndexEntry) int {
		return cmp.Or(cmp.Compare(a.Benchmark, b.Benchmark), cmp.Compare(a.Params, b.Params), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Metric, b.Metric))
	})
	return b.index, nil
}

// indexRow identifies an entry of the index.
type indexRow struct {
	result.Cell
	metric string
}

// indexBuilder makes the index from the samples of the runs, the newest first.
type indexBuilder struct {
	index []IndexEntry
	// trials are the last counted trials of the entries.
	trials []int64
	places map[indexRow]int // in index
}

// addRun adds the samples of a run.
func (b *indexBuilder) addRun(ctx context.Context, tx *transaction, id string) error {
	var trial int64
	var row indexRow
	var start time.Time
	columns := []any{
		number[int64]{&trial},
		&word[string]{text: &row.Benchmark}, &word[string]{text: &row.Params}, &word[string]{text: &row.Target},
		instant{&start},
		&word[string]{text: &row.metric},
	}
	// CROSS JOIN keeps the samples of a trial together.
	return each(ctx, tx, func(scan scan) error {
		if err := scan(columns...); err != nil {
			return err
		}
		b.add(id, trial, row, start)
		return nil
	}, `SELECT t.key, t.benchmark, t.params, t.target, t.started, s.metric
		FROM run r CROSS JOIN trial t ON t.run = r.key CROSS JOIN sample s ON s.trial = t.key
		WHERE r.id = ? AND t.status = ? AND NOT t.warmup`, id, result.OK)
}

func (b *indexBuilder) add(run string, trial int64, row indexRow, start time.Time) {
	i, ok := b.places[row]
	if !ok {
		i = len(b.index)
		b.places[row] = i
		b.index = append(b.index, IndexEntry{Cell: row.Cell, Metric: row.metric})
		b.trials = append(b.trials, 0)
	}
	e := &b.index[i]
	if b.trials[i] != trial || e.Trials == 0 {
		e.Trials++
		b.trials[i] = trial
	}
	if start.After(e.Last) {
		e.Last = start
	}
	if !slices.Contains(e.Runs, run) {
		e.Runs = append(e.Runs, run)
	}
}

// TrialTimes returns the mean time of a trial of each cell, over the runs of this machine in the file. Only trials that are ok count.
func (s *Store) TrialTimes(ctx context.Context) (map[result.Cell]time.Duration, error) {
	type total struct {
		sum   float64
		count int
	}
	totals := map[result.Cell]total{}
	var cell result.Cell
	var elapsed int64
	columns := []any{&word[string]{text: &cell.Benchmark}, &word[string]{text: &cell.Params}, &word[string]{text: &cell.Target}, number[int64]{&elapsed}}
	err := s.each(ctx, func(scan scan) error {
		if err := scan(columns...); err != nil {
			return err
		}
		t := totals[cell]
		totals[cell] = total{t.sum + float64(elapsed), t.count + 1}
		return nil
	}, `SELECT benchmark, params, target, elapsed_ns FROM trial JOIN run ON trial.run = run.key WHERE status = ? AND NOT imported`, result.OK)
	if err != nil {
		return nil, fmt.Errorf("read the times of earlier trials: %w", s.explain(err))
	}
	times := map[result.Cell]time.Duration{}
	for cell, t := range totals {
		times[cell] = time.Duration(t.sum / float64(t.count))
	}
	return times, nil
}
