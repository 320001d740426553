package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Create records a run without trials, and locks it until Finish or Close. A recorded id is ErrExists.
func (s *Store) Create(ctx context.Context, run result.Run) error {
	if len(run.Trials)+len(run.Traces) > 0 {
		return fmt.Errorf("record run %q: it already has trials; use Import", run.ID)
	}
	err := fit(&run)
	if err == nil {
		err = s.writeLocked(ctx, run.ID, func(tx *transaction) error {
			_, err := runTable.insert(ctx, tx, []result.Run{run}, func(values []any, _ int) []any { return append(values, false) })
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("record run %q: %w", run.ID, s.explain(err))
	}
	return nil
}

// insertTrials records trials of a run. The rows of a statement have consecutive keys: SQLite numbers a table from its largest key on, and the
// transaction excludes other writers.
func insertTrials(ctx context.Context, tx *transaction, run int64, trials []result.Trial) error {
	last, err := trialTable.insert(ctx, tx, trials, func(values []any, _ int) []any { return append(values, run) })
	if err != nil {
		return err
	}
	keys := make([]int64, len(trials))
	for i := range keys {
		keys[i] = last - int64(len(keys)-1-i)
	}
	if err := phaseTable.insertLists(ctx, tx, trials, keys, func(t *result.Trial) []result.Phase { return t.Phases }); err != nil {
		return err
	}
	if err := sampleTable.insertLists(ctx, tx, trials, keys, func(t *result.Trial) []result.Sample { return t.Samples }); err != nil {
		return err
	}
	if err := distributionTable.insertLists(ctx, tx, trials, keys, func(t *result.Trial) []result.Distribution { return t.Distributions }); err != nil {
		return err
	}
	return timelineTable.insertLists(ctx, tx, trials, keys, func(t *result.Trial) []result.Timeline { return t.Timelines })
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
	return s.AppendTrials(ctx, runID, []result.Trial{trial})
}

// AppendTrials is Append for several trials in one transaction: all of them are recorded, or none.
func (s *Store) AppendTrials(ctx context.Context, runID string, trials []result.Trial) error {
	if len(trials) == 0 {
		return nil
	}
	if err := s.appendTrials(ctx, runID, trials); err != nil {
		return fmt.Errorf("record trial %s of run %q: %w", numbers(trials), runID, s.explain(err))
	}
	return nil
}

// numbers spells the numbers of trials for a message.
func numbers(trials []result.Trial) string {
	first, last := trials[0].Seq, trials[len(trials)-1].Seq
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d to %d", first, last)
}

func (s *Store) appendTrials(ctx context.Context, runID string, trials []result.Trial) error {
	return s.share(ctx, func(tx *transaction) error {
		key, run, err := s.runFacts(ctx, tx, runID)
		if err != nil {
			return err
		}
		for i := range trials {
			if err := run.ValidateTrial(&trials[i]); err != nil {
				return err
			}
		}
		return insertTrials(ctx, tx, key, trials)
	})
}

// runFacts returns the key of a run, and the run with its targets and benchmarks, which never change. It decodes them once for trials of one
// run. An unknown run is an *IDError.
func (s *Store) runFacts(ctx context.Context, tx *transaction, runID string) (int64, *result.Run, error) {
	var key int64
	if s.facts.ID == runID {
		err := lookUp(ctx, tx, runID, "key", &key)
		return key, &s.facts, err
	}
	run := result.Run{ID: runID}
	if err := lookUp(ctx, tx, runID, "key, targets, benchmarks", &key, document{&run.Targets}, document{&run.Bench}); err != nil {
		return 0, nil, err
	}
	s.facts = run
	return key, &s.facts, nil
}

// AppendTrace is Append for a trace.
func (s *Store) AppendTrace(ctx context.Context, runID string, trace result.Trace) error {
	err := s.share(ctx, func(tx *transaction) error {
		key, run, err := s.runFacts(ctx, tx, runID)
		if err != nil {
			return err
		}
		if err := run.ValidateTrace(&trace); err != nil {
			return err
		}
		return insertTrace(ctx, tx, key, trace)
	})
	if err != nil {
		return fmt.Errorf("record trace %d of run %q: %w", trace.Seq, runID, s.explain(err))
	}
	return nil
}

// insertTrace records a trace.
func insertTrace(ctx context.Context, tx *transaction, run int64, trace result.Trace) error {
	_, err := traceTable.insert(ctx, tx, []result.Trace{trace}, func(values []any, _ int) []any { return append(values, run) })
	return err
}

// Finish records the end of a run with its state, result.Complete or result.Interrupted. The caveats replace the caveats of Create.
// An unknown run is an *IDError.
func (s *Store) Finish(ctx context.Context, runID string, state result.State, end time.Time, caveats []string) error {
	if state != result.Complete && state != result.Interrupted {
		return fmt.Errorf("finish run %q: the state of a finished run is %q or %q, not %q", runID, result.Complete, result.Interrupted, state)
	}
	err := s.share(ctx, func(tx *transaction) error {
		return changeRow(ctx, tx, runID, `UPDATE run SET state = ?, ended = ?, caveats = ? WHERE id = ?`, state, instant{&end}, document{&caveats}, runID)
	})
	if err != nil {
		err = fmt.Errorf("finish run %q: %w", runID, s.explain(err))
	}
	return errors.Join(err, s.unlock(runID))
}

// Stopping records the rule of a run that stops single cells, with the cells that it has stopped so far. An unknown run is an *IDError.
func (s *Store) Stopping(ctx context.Context, runID string, rule *result.Stopping) error {
	err := s.share(ctx, func(tx *transaction) error {
		return changeRow(ctx, tx, runID, `UPDATE run SET stopping = ? WHERE id = ?`, document{rule}, runID)
	})
	if err != nil {
		return fmt.Errorf("record the stopped cells of run %q: %w", runID, s.explain(err))
	}
	return nil
}

// Resume sets the state of a run to running, and locks it until Finish or Close. An unknown run is an *IDError, an imported run is
// ErrImported, and a run that another process executes is ErrUnderWay.
func (s *Store) Resume(ctx context.Context, runID string) error {
	isImport, err := s.Imported(ctx, runID)
	if err != nil {
		return err
	}
	if isImport {
		return fmt.Errorf("resume run %q: %w", runID, ErrImported)
	}
	err = s.writeLocked(ctx, runID, func(tx *transaction) error {
		return changeRow(ctx, tx, runID, `UPDATE run SET state = ?, ended = NULL WHERE id = ?`, result.Running, runID)
	})
	if err != nil {
		return fmt.Errorf("resume run %q: %w", runID, s.explain(err))
	}
	return nil
}

// changeRow executes a statement that changes the row of one run.
func changeRow(ctx context.Context, tx *transaction, runID, query string, args ...any) error {
	rows, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := rows.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return unknown(ctx, tx, runID)
}

// writeLocked is share, with the lock of a run taken before the commit. After an error the lock is as before. The transaction excludes
// other processes that take or remove locks.
func (s *Store) writeLocked(ctx context.Context, runID string, do func(*transaction) error) error {
	ok := false
	err := s.share(ctx, func(tx *transaction) error {
		err := do(tx)
		if err == nil {
			var isNew bool
			if !s.hasLocks() { // a coordinator of a cluster locks a thousand runs
				s.removeStaleLocks()
			}
			isNew, err = s.lock(runID)
			ok = ok || isNew // share may call this twice
		}
		return err
	})
	if err != nil && ok {
		err = errors.Join(err, s.unlock(runID))
	}
	return err
}

// flush puts the commits on the disk, and also the log's length if it has changed. With synchronous=FULL SQLite does this itself by
// fsync. Then a journaling file system also records the change of the log in its journal, which costs as much again as a trial. A
// missing log is an error, since the next reader would not find its content. A file with a rollback journal needs nothing: SQLite flushes it.
func (s *Store) flush() error {
	if s.log == "" {
		return nil
	}
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

var (
	// ErrConflict is in the error for a run whose id another run has.
	ErrConflict = errors.New("its id is already taken")
	// ErrImported is in the error for the resumption of an imported run. A resumption would execute the plan of another machine
	// on this machine.
	ErrImported = errors.New("it was imported and can only be resumed on its own machine; start a new run")
)

// Import records runs of other machines, with their trials, all or none of them. read passes the runs, like result.Read, and an error of
// read ends the import. Import reports for each run whether it is new. A recorded run with the same content stays as it is. A recorded
// run with other content is an ErrConflict.
func (s *Store) Import(ctx context.Context, read func(result.Visitor) error) (news []bool, err error) {
	i := importer{ctx: ctx}
	err = s.write(ctx, func(tx *transaction) error {
		i.tx = tx
		return read(&i)
	})
	if err != nil {
		return nil, s.explain(err)
	}
	return i.added, nil
}

// importer records the runs that it visits. It holds one trial at a time.
type importer struct {
	ctx   context.Context
	tx    *transaction
	added []bool

	run    result.Run // without trials
	key    int64
	digest hash.Hash // nil for a new run
}

// Begin implements result.Visitor.
func (i *importer) Begin(run result.Run) error {
	i.run, i.digest = run, nil
	err := fit(&run)
	if err == nil {
		i.key, err = runTable.insert(i.ctx, i.tx, []result.Run{run}, func(values []any, _ int) []any { return append(values, true) })
	}
	if errors.Is(err, ErrExists) {
		i.digest, err = newDigest(&run)
	}
	i.added = append(i.added, i.digest == nil)
	return i.explain(err)
}

// Trial implements result.Visitor.
func (i *importer) Trial(trial result.Trial) error {
	if i.digest != nil {
		return i.explain(digestTrial(i.digest, &trial))
	}
	err := i.run.ValidateTrial(&trial)
	if err == nil {
		err = insertTrials(i.ctx, i.tx, i.key, []result.Trial{trial})
	}
	return i.explain(err)
}

// Trace implements result.Visitor.
func (i *importer) Trace(trace result.Trace) error {
	if i.digest != nil {
		return i.explain(digestTrace(i.digest, &trace))
	}
	err := i.run.ValidateTrace(&trace)
	if err == nil {
		err = insertTrace(i.ctx, i.tx, i.key, trace)
	}
	return i.explain(err)
}

// End implements result.Visitor.
func (i *importer) End() error {
	if i.digest == nil {
		return nil
	}
	sum, name, err := storedDigest(i.ctx, i.tx, i.run.ID, i.run.Name)
	const advice = "import this one into another folder with -d"
	switch {
	case err != nil:
	case !bytes.Equal(sum, i.digest.Sum(nil)):
		err = fmt.Errorf("%w: run %q has other content; %s", ErrConflict, name, advice)
	case name != i.run.Name:
		err = fmt.Errorf("%w: run %q has the same content, and only its name is not %q; use that run, or %s", ErrConflict, name, i.run.Name, advice)
	}
	return i.explain(err)
}

func (i *importer) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("import run %q: %w", i.run.ID, err)
}

// storedDigest returns the digest that a recorded run would have under a name, and its own name.
func storedDigest(ctx context.Context, tx *transaction, id, name string) (sum []byte, ownName string, err error) {
	var key int64
	var run result.Run
	err = runTable.query(ctx, tx, "key", "run WHERE id = ?", []any{id}, func(k int64, r *result.Run) error {
		key, run = k, *r
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	run.Name, ownName = name, run.Name
	digest, err := newDigest(&run)
	if err != nil {
		return nil, "", err
	}
	err = eachTrial(ctx, tx, key, func(t *result.Trial) error { return digestTrial(digest, t) })
	if err == nil {
		err = eachTrace(ctx, tx, key, func(t *result.Trace) error { return digestTrace(digest, t) })
	}
	return digest.Sum(nil), ownName, err
}

// newDigest returns a digest of the content of a run, without its trials. Texts do not count, since an export may hide values in them.
// Absent lists and times of other zones have one spelling. Earlier versions exported a killed run as running.
func newDigest(run *result.Run) (hash.Hash, error) {
	form := run.WithoutTexts().Canonical()
	form.Trials, form.Traces = nil, nil
	if form.State == result.Killed {
		form.State = result.Running
	}
	digest := sha256.New()
	return digest, json.NewEncoder(digest).Encode(form)
}

// digestTrial adds a trial to the digest of its run.
func digestTrial(digest hash.Hash, trial *result.Trial) error {
	return json.NewEncoder(digest).Encode(trial.WithoutTexts().Canonical())
}

// digestTrace adds a trace to the digest of its run.
func digestTrace(digest hash.Hash, trace *result.Trace) error {
	return json.NewEncoder(digest).Encode(trace.WithoutTexts().Canonical())
}

// Imported reports whether a run was imported. It requires the whole id. An unknown run is an *IDError.
func (s *Store) Imported(ctx context.Context, runID string) (isImport bool, err error) {
	err = s.read(ctx, func(tx *transaction) error { return lookUp(ctx, tx, runID, "imported", &isImport) })
	if err != nil {
		return false, fmt.Errorf("look up run %q: %w", runID, s.explain(err))
	}
	return isImport, nil
}
