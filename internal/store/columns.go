package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// table describes a table whose rows are values of type T, for reading and writing.
type table[T any] struct {
	// name is the name of the table; owner are its columns that T does not hold.
	name, owner string
	// columns are the other columns, with the pointers to their values in the order of columns.
	columns string
	values  func(*T) []any
}

var (
	runTable = table[result.Run]{
		"run", "imported",
		"id, name, state, started, ended, tool, seed, baseline, plan, host, targets, benchmarks, overhead, images, caveats",
		func(r *result.Run) []any {
			return []any{
				&r.ID, &r.Name, &r.State,
				instant{&r.Started},
				instant{&r.Ended},
				document{&r.Tool},
				document{&r.Seed},
				&r.Baseline, &r.Plan,
				document{&r.Host},
				document{&r.Targets},
				document{&r.Bench},
				document{&r.Overhead},
				document{&r.Images},
				document{&r.Caveats},
			}
		},
	}
	trialTable = table[result.Trial]{
		"trial", "run",
		"seq, benchmark, params, target, block, warmup, status, reason, output, started, elapsed_ns, conditions, failed_calls, host, self_cpu_ns",
		func(t *result.Trial) []any {
			return []any{
				&t.Seq, &t.Benchmark, &t.Params, &t.Target, &t.Block, &t.Warmup, &t.Status, &t.Reason, &t.Output,
				instant{&t.Started},
				&t.Elapsed,
				document{&t.Conditions},
				document{&t.FailedCalls},
				document{&t.Host},
				&t.Self,
			}
		},
	}
	phaseTable = table[result.Phase]{
		"phase", "trial, ord", "name, start_ns, duration_ns",
		func(p *result.Phase) []any { return []any{&p.Name, &p.Start, &p.Duration} },
	}
	sampleTable = table[result.Sample]{
		"sample", "trial, ord", "metric, value",
		func(s *result.Sample) []any { return []any{&s.Metric, &s.Value} },
	}
	distributionTable = table[result.Distribution]{
		"distribution", "trial, ord", "metric, histogram",
		func(d *result.Distribution) []any { return []any{&d.Metric, document{d}} },
	}
	timelineTable = table[result.Timeline]{
		"timeline", "trial, ord", "line",
		func(l *result.Timeline) []any { return []any{document{l}} },
	}
)

// insert writes items as rows, and returns the key of the last row. owner returns the values of the owner columns of an item. A
// recorded run or trial is ErrExists.
func (t table[T]) insert(ctx context.Context, tx *sql.Tx, items []T, owner func(i int) []any) (key int64, err error) {
	if len(items) == 0 {
		return 0, nil
	}
	columns := t.owner + ", " + t.columns
	statement, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)", t.name, columns, strings.Repeat(", ?", strings.Count(columns, ","))))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	for i := range items {
		row, err := statement.ExecContext(ctx, append(owner(i), t.values(&items[i])...)...)
		if isTaken(err) {
			return 0, ErrExists
		}
		if err != nil {
			return 0, err
		}
		if key, err = row.LastInsertId(); err != nil {
			return 0, err
		}
	}
	return key, nil
}

// query calls add for each row, with the integer in the column key. from follows FROM and has one parameter.
func (t table[T]) query(ctx context.Context, tx *sql.Tx, key, from string, parameter any, add func(key int64, item T) error) error {
	return each(ctx, tx, func(scan scan) error {
		var item T
		var number int64
		err := scan(append([]any{&number}, t.values(&item)...)...)
		if err == nil {
			err = add(number, item)
		}
		return err
	}, "SELECT "+key+", "+t.columns+" FROM "+from, parameter)
}

// ofTrials appends the rows of a run's trials to the lists of their trials.
func (t table[T]) ofTrials(ctx context.Context, tx *sql.Tx, run int64, list func(trial int64) *[]T) error {
	from := fmt.Sprintf("trial JOIN %s ON %[1]s.trial = trial.key WHERE run = ? ORDER BY seq, ord", t.name)
	return t.query(ctx, tx, "trial", from, run, func(key int64, item T) error {
		items := list(key)
		*items = append(*items, item)
		return nil
	})
}

// ofTrial returns the rows of one trial.
func (t table[T]) ofTrial(ctx context.Context, tx *sql.Tx, trial int64) (items []T, err error) {
	err = t.query(ctx, tx, "trial", t.name+" WHERE trial = ? ORDER BY ord", trial, func(_ int64, item T) error {
		items = append(items, item)
		return nil
	})
	return items, err
}

// timeLayout is RFC 3339 in UTC with a fixed number of digits, so times sort as text.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

// instant stores a time as text, and the zero time as NULL.
type instant struct{ *time.Time }

// Value implements driver.Valuer.
func (i instant) Value() (driver.Value, error) {
	if i.IsZero() {
		return nil, nil
	}
	return i.UTC().Format(timeLayout), nil
}

// Scan implements sql.Scanner.
func (i instant) Scan(column any) error {
	switch text := column.(type) {
	case nil:
		*i.Time = time.Time{}
		return nil
	case string:
		t, err := time.Parse(timeLayout, text)
		*i.Time = t
		return err
	default:
		return fmt.Errorf("the column of a time has type %T", column)
	}
}

// document stores the value behind a pointer as JSON.
type document struct{ pointer any }

// Value implements driver.Valuer.
func (d document) Value() (driver.Value, error) {
	data, err := json.Marshal(d.pointer)
	return string(data), err
}

// Scan implements sql.Scanner.
func (d document) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("the column of a JSON document has type %T", column)
	}
	return json.Unmarshal([]byte(text), d.pointer)
}
