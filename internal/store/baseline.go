package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Baseline is the description of stored runs with a name.
type Baseline struct {
	Name  string        `json:"name"`
	Saved time.Time     `json:"saved"`
	Runs  []BaselineRun `json:"runs"`
}

// BaselineRun is a run of a baseline in a few words.
type BaselineRun struct {
	ID      string    `json:"id"`
	Plan    string    `json:"plan"`
	Machine string    `json:"machine"`
	Started time.Time `json:"started"`
	Trials  int       `json:"trials"`
	Targets []string  `json:"targets"`
}

// ErrNoBaseline is in the error for a name without a baseline.
var ErrNoBaseline = errors.New("no such baseline")

// maxBaseline is the largest size of a baseline before compression, in bytes. SQLite stores at most 10⁹ bytes in a value.
const maxBaseline = 1 << 30

// errLargeBaseline is the error of a baseline above maxBaseline.
var errLargeBaseline = fmt.Errorf("it has more than %d MiB; save fewer runs in a baseline", maxBaseline>>20)

// baselinePattern matches the names of baselines. The first character is a letter, and IDs of runs begin with a digit.
var baselinePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// CheckBaselineName refuses a name that a baseline cannot have.
func CheckBaselineName(name string) error {
	if !baselinePattern.MatchString(name) || strings.EqualFold(name, Latest) {
		return fmt.Errorf("a baseline cannot be named %.70q: a name begins with a letter, has at most 64 letters, digits and characters of %q, and is not %q", name, "._-", Latest)
	}
	return nil
}

// SaveBaseline stores a copy of runs under a name. The copy does not depend on the runs of the file. A stored name is ErrExists unless
// replace is set. SaveBaseline refuses runs that Validate refuses, a repeated run, and a run that is under way.
func (s *Store) SaveBaseline(ctx context.Context, name string, moment time.Time, tool result.Tool, runs []result.Run, replace bool) error {
	if err := s.saveBaseline(ctx, name, moment, tool, runs, replace); err != nil {
		return fmt.Errorf("save baseline %q: %w", name, s.explain(err))
	}
	return nil
}

func (s *Store) saveBaseline(ctx context.Context, name string, moment time.Time, tool result.Tool, runs []result.Run, replace bool) error {
	if err := CheckBaselineName(name); err != nil {
		return err
	}
	if len(runs) == 0 {
		return errors.New("it has no run; name at least one")
	}
	b := Baseline{Runs: []BaselineRun{}}
	for _, r := range runs {
		if r.State == result.Running {
			return fmt.Errorf("run %q is under way; save it after its end", r.ID)
		}
		entry := BaselineRun{ID: r.ID, Plan: r.Name, Machine: r.Host.Hostname, Started: r.Started.UTC(), Trials: len(r.Trials), Targets: []string{}}
		for _, t := range r.Targets {
			entry.Targets = append(entry.Targets, t.Name)
		}
		b.Runs = append(b.Runs, entry)
	}
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	size := counter{w: zip}
	if err := errors.Join(result.Encode(&size, result.Document{Generator: tool, Runs: runs}), zip.Close()); err != nil {
		return err
	}
	if size.n > maxBaseline {
		return errLargeBaseline
	}
	statement := `INSERT INTO baseline (name, saved, runs, document) VALUES (?, ?, ?, ?)`
	if replace {
		statement += ` ON CONFLICT (name) DO UPDATE SET saved = excluded.saved, runs = excluded.runs, document = excluded.document`
	}
	return s.write(ctx, func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, statement, name, instant{&moment}, document{&b.Runs}, buffer.Bytes())
		if isTaken(err) {
			return fmt.Errorf("%w; remove it first, or replace it", ErrExists)
		}
		return err
	})
}

// counter counts the bytes of a writer.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Baselines lists the baselines by name.
func (s *Store) Baselines(ctx context.Context) ([]Baseline, error) {
	list := []Baseline{}
	err := s.each(ctx, func(scan scan) error {
		var b Baseline
		err := scan(&b.Name, instant{&b.Saved}, document{&b.Runs})
		list = append(list, b)
		return err
	}, `SELECT name, saved, runs FROM baseline ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list baselines: %w", s.explain(err))
	}
	return list, nil
}

// Baseline returns the runs of a baseline. An unknown name is ErrNoBaseline.
func (s *Store) Baseline(ctx context.Context, name string) ([]result.Run, error) {
	runs, err := s.baseline(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read baseline %q: %w", name, s.explain(err))
	}
	return runs, nil
}

func (s *Store) baseline(ctx context.Context, name string) ([]result.Run, error) {
	var content []byte
	err := s.read(ctx, func(tx *transaction) error {
		return tx.QueryRowContext(ctx, `SELECT document FROM baseline WHERE name = ?`, name).Scan(&content)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, s.noBaseline(ctx)
	}
	if err != nil {
		return nil, err
	}
	stream, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("its document is damaged: %w; remove it", err)
	}
	limiter := io.LimitedReader{R: stream, N: maxBaseline + 1}
	doc, err := result.Decode(&limiter)
	switch {
	case limiter.N <= 0:
		return nil, errLargeBaseline
	case errors.Is(err, result.ErrVersion):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("its document is damaged: %w; remove it", err)
	}
	return doc.Runs, nil
}

// RemoveBaseline removes a baseline. The runs of the file stay. An unknown name is ErrNoBaseline.
func (s *Store) RemoveBaseline(ctx context.Context, name string) error {
	err := s.write(ctx, func(tx *transaction) error {
		rows, err := tx.ExecContext(ctx, `DELETE FROM baseline WHERE name = ?`, name)
		if err != nil {
			return err
		}
		if n, err := rows.RowsAffected(); err != nil || n == 1 {
			return err
		}
		return ErrNoBaseline
	})
	if errors.Is(err, ErrNoBaseline) {
		err = s.noBaseline(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove baseline %q: %w", name, s.explain(err))
	}
	return nil
}

// noBaseline is the error for an unknown name, with the names that exist.
func (s *Store) noBaseline(ctx context.Context) error {
	list, err := s.Baselines(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, b := range list {
		names = append(names, b.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: the file has none; save one with touchstone baseline save NAME", ErrNoBaseline)
	}
	return fmt.Errorf("%w; the baselines are %s", ErrNoBaseline, strings.Join(names, ", "))
}
