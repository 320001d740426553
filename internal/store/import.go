package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/result"
)

var (
	// ErrConflict is in the error for a run whose id another run has.
	ErrConflict = errors.New("another run of that id, with other content, is recorded already; import it into another folder, or remove one of the two")
	// ErrImported is in the error for a run that cannot go on because it came from elsewhere: that would execute
	// a plan nobody here has written.
	ErrImported = errors.New("it was imported, and can only go on where it was made; start a new run")
)

// Import records runs that were made elsewhere, with their trials, all or none of them, and tells which are new. A
// run that is there already with the same content stays as it is. The error has ErrConflict if one is there
// with other content. The runs are as result.Decode gives them.
func (s *Store) Import(ctx context.Context, runs ...result.Run) (added []bool, err error) {
	for i := range runs {
		if err := fit(&runs[i]); err != nil {
			return nil, fmt.Errorf("import run %q: %w", runs[i].ID, err)
		}
	}
	added = make([]bool, len(runs))
	err = s.write(ctx, func(tx *sql.Tx) error {
		for i := range runs {
			is, err := s.importRun(ctx, tx, &runs[i])
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

func (s *Store) importRun(ctx context.Context, tx *sql.Tx, run *result.Run) (added bool, err error) {
	err = s.insertRunRows(ctx, tx, run, true)
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

// digest tells the content of runs apart. It is that of a document with the run alone, in which absent
// lists and times of other zones are spelled in one way. Earlier versions exported a killed run as running.
func digest(run *result.Run) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	alike := *run
	if alike.State == result.Killed {
		alike.State = result.Running
	}
	if err := result.Encode(h, result.Document{Runs: []result.Run{alike}}); err != nil {
		return sum, err
	}
	copy(sum[:], h.Sum(nil))
	return sum, nil
}

// Imported tells whether a run was made elsewhere. It takes the whole id. An *IDError if there is no such run.
func (s *Store) Imported(ctx context.Context, runID string) (bool, error) {
	var imported bool
	err := s.db.QueryRowContext(ctx, `SELECT imported FROM run WHERE id = ?`, runID).Scan(&imported)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.unknown(ctx, runID)
	}
	if err != nil {
		return false, fmt.Errorf("look up run %q: %w", runID, s.explain(err))
	}
	return imported, nil
}
