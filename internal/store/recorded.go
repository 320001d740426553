package store

import (
	"context"
	"fmt"
	"time"
)

// Recorded is a run in the order of recording.
type Recorded struct {
	ID      string
	Started time.Time
	// Imported is set for a run that was imported: its place in the order of recording is the time of the import.
	Imported bool
}

// Recorded lists the runs in the order of their recording. The order by time is another one if runs were imported, or the clock was set back.
func (s *Store) Recorded(ctx context.Context) ([]Recorded, error) {
	var list []Recorded
	err := s.each(ctx, func(scan scan) error {
		var r Recorded
		err := scan(&r.ID, instant{&r.Started}, &r.Imported)
		list = append(list, r)
		return err
	}, `SELECT id, started, imported FROM run ORDER BY key`)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", s.explain(err))
	}
	return list, nil
}
