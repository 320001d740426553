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
	ErrConflict = errors.New("another run with this id and other content is already recorded; import it into another folder, or delete one of the two")
	// ErrImported is in the error for the resumption of an imported run. To resume it would execute a plan from another
	// this machine.
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

// digest identifies the content of a run. It hashes a document with only this run, since there absent lists and times of other zones
// have one spelling. Earlier versions exported a killed run as running.
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

// Imported reports whether a run was imported. It requires the whole id. An unknown run is an *IDError.
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
