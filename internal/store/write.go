package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Create records a run without trials, and locks it until Finish or Close. A recorded id is ErrExists.
func (s *Store) Create(ctx context.Context, run result.Run) error {
	if len(run.Trials) > 0 {
		return fmt.Errorf("record run %q: it already has trials; use Import", run.ID)
	}
	err := fit(&run)
	if err == nil {
		err = s.writeLocked(ctx, run.ID, func(tx *sql.Tx) error { return insertRun(ctx, tx, &run, false) })
	}
	if err != nil {
		return fmt.Errorf("record run %q: %w", run.ID, s.explain(err))
	}
	return nil
}

// insertRun records a run with its trials. A recorded id is ErrExists.
func insertRun(ctx context.Context, tx *sql.Tx, run *result.Run, imported bool) error {
	key, err := runTable.insert(ctx, tx, []result.Run{*run}, func(int) []any { return []any{imported} })
	for i := range run.Trials {
		if err == nil {
			err = insertTrial(ctx, tx, key, run.Trials[i:i+1])
		}
	}
	return err
}

// insertTrial records a list of one trial.
func insertTrial(ctx context.Context, tx *sql.Tx, run int64, trial []result.Trial) error {
	key, err := trialTable.insert(ctx, tx, trial, func(int) []any { return []any{run} })
	if err != nil {
		return err
	}
	owner := func(i int) []any { return []any{key, i} }
	if _, err := phaseTable.insert(ctx, tx, trial[0].Phases, owner); err != nil {
		return err
	}
	if _, err := sampleTable.insert(ctx, tx, trial[0].Samples, owner); err != nil {
		return err
	}
	if _, err := distributionTable.insert(ctx, tx, trial[0].Distributions, owner); err != nil {
		return err
	}
	_, err = timelineTable.insert(ctx, tx, trial[0].Timelines, owner)
	return err
}

// fit refuses a run that is unfit for the store.
func fit(run *result.Run) error {
	if strings.EqualFold(run.ID, Latest) {
		return fmt.Errorf("the id %q is reserved for the newest run", run.ID)
	}
	return run.Validate()
}

// Append records a trial of a run with its rows, in one transaction. When it returns nil, the trial is on the disk. Otherwise
// nothing of the trial is recorded, unless the disk failed. A recorded Seq is ErrExists, and an unknown run is an *IDError. Append
// refuses a trial that result.Run.ValidateTrial refuses.
//
// A caller that records a trial after the end of its own context must pass another context.
func (s *Store) Append(ctx context.Context, runID string, trial result.Trial) error {
	if err := s.appendTrial(ctx, runID, &trial); err != nil {
		return fmt.Errorf("record trial %d of run %q: %w", trial.Seq, runID, s.explain(err))
	}
	return nil
}

func (s *Store) appendTrial(ctx context.Context, runID string, trial *result.Trial) error {
	var key int64
	var run result.Run
	if err := s.lookUp(ctx, runID, "key, targets, benchmarks", &key, document{&run.Targets}, document{&run.Bench}); err != nil {
		return err
	}
	if err := run.ValidateTrial(trial); err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error { return insertTrial(ctx, tx, key, []result.Trial{*trial}) })
}

// Finish records the end of a run with its state, result.Complete or result.Interrupted. The caveats replace the caveats of Create.
// An unknown run is an *IDError.
func (s *Store) Finish(ctx context.Context, runID string, state result.State, ended time.Time, caveats []string) error {
	if state != result.Complete && state != result.Interrupted {
		return fmt.Errorf("finish run %q: the state of a finished run is %q or %q, not %q", runID, result.Complete, result.Interrupted, state)
	}
	err := s.write(ctx, func(tx *sql.Tx) error {
		return changeRow(ctx, tx, runID, `UPDATE run SET state = ?, ended = ?, caveats = ? WHERE id = ?`, state, instant{&ended}, document{&caveats}, runID)
	})
	if err != nil {
		err = fmt.Errorf("finish run %q: %w", runID, s.explain(err))
	}
	return errors.Join(err, s.unlock(runID))
}

// Resume sets the state of a run to running, and locks it until Finish or Close. An unknown run is an *IDError, an imported run is
// ErrImported, and a run that another process executes is ErrUnderWay.
func (s *Store) Resume(ctx context.Context, runID string) error {
	imported, err := s.Imported(ctx, runID)
	if err != nil {
		return err
	}
	if imported {
		return fmt.Errorf("resume run %q: %w", runID, ErrImported)
	}
	err = s.writeLocked(ctx, runID, func(tx *sql.Tx) error {
		return changeRow(ctx, tx, runID, `UPDATE run SET state = ?, ended = NULL WHERE id = ?`, result.Running, runID)
	})
	if err != nil {
		return fmt.Errorf("resume run %q: %w", runID, s.explain(err))
	}
	return nil
}

// changeRow executes a statement that changes the row of one run.
func changeRow(ctx context.Context, tx *sql.Tx, runID, query string, args ...any) error {
	rows, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := rows.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return unknown(ctx, tx, runID)
}

// writeLocked is write, with the lock of a run taken before the commit. After an error the lock is as before. The transaction excludes
// other processes that take or remove locks.
func (s *Store) writeLocked(ctx context.Context, runID string, do func(*sql.Tx) error) error {
	taken := false
	err := s.write(ctx, func(tx *sql.Tx) error {
		err := do(tx)
		if err == nil {
			s.removeStaleLocks()
			taken, err = s.lock(runID)
		}
		return err
	})
	if err != nil && taken {
		err = errors.Join(err, s.unlock(runID))
	}
	return err
}

// write calls do in a transaction, like transact. When it returns nil, the writes of do are on the disk.
func (s *Store) write(ctx context.Context, do func(*sql.Tx) error) error {
	if err := s.transact(ctx, do); err != nil {
		return err
	}
	return s.flush()
}

// flush puts the commits on the disk, and also the log's length if it has changed. With synchronous=FULL SQLite does this itself by
// fsync. Then a journaling file system also records the change of the log in its journal, which costs as much again as a trial. A
// missing log is an error, since the next reader would not find its content.
func (s *Store) flush() error {
	// The close drops no lock: SQLite has none on the log.
	log, err := os.OpenFile(s.log, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("put the log on the disk: %w", err)
	}
	if err := unix.Fdatasync(int(log.Fd())); err != nil {
		return errors.Join(&fs.PathError{Op: "fdatasync", Path: s.log, Err: err}, log.Close())
	}
	return log.Close()
}

// transact calls do in a transaction with the write lock from its start.
func (s *Store) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, ended(tx.Rollback()))
	}
	return tx.Commit()
}

// ended ignores the error of a rollback after the end of the context, which has already rolled back the transaction.
func ended(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

var (
	// ErrConflict is in the error for a run whose id another run has.
	ErrConflict = errors.New("another run with this id and other content is already recorded; import it into another folder with -d")
	// ErrImported is in the error for the resumption of an imported run. A resumption would execute the plan of another machine
	// on this machine.
	ErrImported = errors.New("it was imported and can only be resumed on its own machine; start a new run")
)

// Import records runs of other machines, with their trials, all or none of them. It reports for each run whether it is new. A
// recorded run with the same content stays as it is. A recorded run with other content is an ErrConflict. The runs must come from
// result.Decode.
func (s *Store) Import(ctx context.Context, runs ...result.Run) (added []bool, err error) {
	for i := range runs {
		if err := fit(&runs[i]); err != nil {
			return nil, fmt.Errorf("import run %q: %w", runs[i].ID, err)
		}
	}
	added = make([]bool, len(runs))
	err = s.write(ctx, func(tx *sql.Tx) error {
		for i := range runs {
			is, err := importRun(ctx, tx, &runs[i])
			if err != nil {
				return fmt.Errorf("import run %q: %w", runs[i].ID, err)
			}
			added[i] = is
		}
		return nil
	})
	if err != nil {
		return nil, s.explain(err)
	}
	return added, nil
}

func importRun(ctx context.Context, tx *sql.Tx, run *result.Run) (added bool, err error) {
	err = insertRun(ctx, tx, run, true)
	if !errors.Is(err, ErrExists) {
		return err == nil, err
	}
	there, err := readRun(ctx, tx, run.ID)
	if err != nil {
		return false, err
	}
	old, err := digest(&there)
	if err != nil {
		return false, err
	}
	now, err := digest(run)
	if err != nil {
		return false, err
	}
	if old != now {
		return false, ErrConflict
	}
	return false, nil
}

// digest identifies the content of a run. Texts do not count, since an export may hide values in them. It hashes a document with only this run, since there absent lists and times of other zones
// have one spelling. Earlier versions exported a killed run as running.
func digest(run *result.Run) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	alike := run.WithoutTexts()
	if alike.State == result.Killed {
		alike.State = result.Running
	}
	if err := result.Encode(h, result.Document{Runs: []result.Run{alike}}); err != nil {
		return sum, err
	}
	copy(sum[:], h.Sum(nil))
	return sum, nil
}

// Imported reports whether a run was imported. It requires the whole id. An unknown run is an *IDError.
func (s *Store) Imported(ctx context.Context, runID string) (imported bool, err error) {
	if err := s.lookUp(ctx, runID, "imported", &imported); err != nil {
		return false, fmt.Errorf("look up run %q: %w", runID, s.explain(err))
	}
	return imported, nil
}
