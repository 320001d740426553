package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Latest is the reference to the run that was started last.
const Latest = "latest"

// Resolve returns the id of the run for a reference: a whole id, the unambiguous beginning of an id (case does not matter), or
// Latest. If no run or several runs match, the error is an *IDError.
func (s *Store) Resolve(ctx context.Context, ref string) (string, error) {
	id, err := resolve(ctx, s.db, ref)
	return id, s.explain(err)
}

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

func (s *Store) unknown(ctx context.Context, runID string) error { return unknownIn(ctx, s.db, runID) }

func unknownIn(ctx context.Context, q querier, runID string) error {
	all, err := ids(ctx, q)
	if err != nil {
		return err
	}
	return &IDError{Ref: runID, Candidates: all}
}

// Run returns the whole run for a reference, see Resolve. Trials are in order of Seq; phases, samples and distributions are in the
// order of their recording. The run is consistent even while another process writes. A killed run has the state result.Killed.
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
	err = s.read(ctx, func(tx *sql.Tx) error {
		id, err := resolve(ctx, tx, ref)
		if err != nil {
			return err
		}
		if run, err = readRun(ctx, tx, id); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT imported FROM run WHERE id = ?`, id).Scan(&imported)
	})
	return run, imported, err
}

func readRun(ctx context.Context, tx *sql.Tx, id string) (result.Run, error) {
	var r result.Run
	var key int64
	var seed string
	err := tx.QueryRowContext(ctx, `SELECT key, id, name, state, started, ended, tool, seed, baseline, plan, host, targets, benchmarks, overhead, images, caveats
		FROM run WHERE id = ?`, id).Scan(
		&key, &r.ID, &r.Name, &r.State, instant{&r.Started}, instant{&r.Ended}, document{&r.Tool}, &seed, &r.Baseline, &r.Plan,
		document{&r.Host}, document{&r.Targets}, document{&r.Bench}, document{&r.Overhead}, document{&r.Images}, document{&r.Caveats})
	if err != nil {
		return result.Run{}, err
	}
	if r.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
		return result.Run{}, fmt.Errorf("read the seed: %w", err)
	}
	r.Trials, err = readTrials(ctx, tx, key)
	return r, err
}

func readTrials(ctx context.Context, tx *sql.Tx, run int64) ([]result.Trial, error) {
	var trials []result.Trial
	at := map[int64]int{} // index in trials by key
	err := each(ctx, tx, func(scan scan) error {
		var key int64
		var t result.Trial
		err := scan(&key, &t.Seq, &t.Benchmark, &t.Params, &t.Target, &t.Block, &t.Warmup, &t.Status, &t.Reason, &t.Output,
			instant{&t.Started}, &t.Elapsed, document{&t.Conditions}, document{&t.Host}, &t.Self)
		at[key] = len(trials)
		trials = append(trials, t)
		return err
	}, `SELECT key, seq, benchmark, params, target, block, warmup, status, reason, output, started, elapsed_ns, conditions, host, self_cpu_ns
		FROM trial WHERE run = ? ORDER BY seq`, run)
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, func(scan scan) error {
		var key int64
		var p result.Phase
		err := scan(&key, &p.Name, &p.Start, &p.Duration)
		t := &trials[at[key]]
		t.Phases = append(t.Phases, p)
		return err
	}, `SELECT p.trial, p.name, p.start_ns, p.duration_ns
		FROM trial t JOIN phase p ON p.trial = t.key WHERE t.run = ? ORDER BY t.seq, p.ord`, run)
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, func(scan scan) error {
		var key int64
		var v result.Sample
		err := scan(&key, &v.Metric, &v.Value)
		t := &trials[at[key]]
		t.Samples = append(t.Samples, v)
		return err
	}, `SELECT s.trial, s.metric, s.value
		FROM trial t JOIN sample s ON s.trial = t.key WHERE t.run = ? ORDER BY t.seq, s.ord`, run)
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, func(scan scan) error {
		var key int64
		var d result.Distribution
		err := scan(&key, document{&d})
		t := &trials[at[key]]
		t.Distributions = append(t.Distributions, d)
		return err
	}, `SELECT d.trial, d.histogram
		FROM trial t JOIN distribution d ON d.trial = t.key WHERE t.run = ? ORDER BY t.seq, d.ord`, run)
	return trials, err
}

// Slot is the position of a trial in a run: one block of one cell.
type Slot struct {
	result.Cell
	Block  int
	Warmup bool
}

// Progress is the progress of a run.
type Progress struct {
	// Done holds the status of each filled slot. A slot that was filled twice has the status of the later trial.
	Done map[Slot]result.Status
	// Last is the Seq of the last trial, 0 without trials.
	Last int
}

// Progress returns the progress of a run, for its resumption. It requires the whole id. An unknown run is an *IDError.
func (s *Store) Progress(ctx context.Context, runID string) (Progress, error) {
	progress := Progress{Done: map[Slot]result.Status{}}
	err := s.read(ctx, func(tx *sql.Tx) error {
		var key int64
		err := tx.QueryRowContext(ctx, `SELECT key FROM run WHERE id = ?`, runID).Scan(&key)
		if errors.Is(err, sql.ErrNoRows) {
			return unknownIn(ctx, tx, runID)
		}
		if err != nil {
			return err
		}
		return each(ctx, tx, func(scan scan) error {
			var slot Slot
			var status result.Status
			err := scan(&progress.Last, &slot.Benchmark, &slot.Params, &slot.Target, &slot.Block, &slot.Warmup, &status)
			progress.Done[slot] = status
			return err
		}, `SELECT seq, benchmark, params, target, block, warmup, status FROM trial WHERE run = ? ORDER BY seq`, key)
	})
	if err != nil {
		return Progress{}, fmt.Errorf("read the progress of run %q: %w", runID, s.explain(err))
	}
	return progress, nil
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
