package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
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
		"id, name, state, started, ended, tool, seed, baseline, plan, host, targets, benchmarks, overhead, images, caveats, stopping",
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
				document{&r.Stopping},
			}
		},
	}
	trialTable = table[result.Trial]{
		"trial", "run",
		"seq, benchmark, params, target, block, warmup, status, reason, output, started, elapsed_ns, conditions, failed_calls, host, self_cpu_ns",
		func(t *result.Trial) []any {
			return []any{
				&t.Seq,
				&word[string]{text: &t.Benchmark},
				&word[string]{text: &t.Params},
				&word[string]{text: &t.Target},
				&t.Block, &t.Warmup,
				&word[result.Status]{text: &t.Status},
				&t.Reason, &t.Output,
				instant{&t.Started},
				&t.Elapsed,
				&repeated{pointer: &t.Conditions},
				document{&t.FailedCalls},
				document{&t.Host},
				&t.Self,
			}
		},
	}
	phaseTable = table[result.Phase]{
		"phase", "trial, ord", "name, start_ns, duration_ns",
		func(p *result.Phase) []any {
			return []any{&word[string]{text: &p.Name}, number[int64]{(*int64)(&p.Start)}, number[int64]{(*int64)(&p.Duration)}}
		},
	}
	sampleTable = table[result.Sample]{
		"sample", "trial, ord", "metric, value",
		func(s *result.Sample) []any { return []any{&word[string]{text: &s.Metric}, number[float64]{&s.Value}} },
	}
	distributionTable = table[result.Distribution]{
		"distribution", "trial, ord", "metric, histogram",
		func(d *result.Distribution) []any { return []any{&d.Metric, document{d}} },
	}
	traceTable = table[result.Trace]{
		"trace", "run", "seq, trace",
		func(t *result.Trace) []any { return []any{&t.Seq, document{t}} },
	}
	timelineTable = table[result.Timeline]{
		"timeline", "trial, ord", "line",
		func(l *result.Timeline) []any { return []any{document{l}} },
	}
)

// mostRows is the largest number of rows of a statement. A statement for each row takes half as long again.
const mostRows = 16

// insert writes items as rows, and returns the key of the last row. owner appends the values of the owner columns of an item. A
// recorded run or trial is ErrExists.
func (t table[T]) insert(ctx context.Context, tx *transaction, items []T, owner func(values []any, i int) []any) (key int64, err error) {
	var values []any
	for first := 0; first < len(items); first += mostRows {
		rows := min(len(items)-first, mostRows)
		statement, err := tx.insertion(ctx, t.name, t.owner+", "+t.columns, rows) //nolint:sqlclosecheck // it ends with the transaction
		if err != nil {
			return 0, err
		}
		values = values[:0]
		for i := first; i < first+rows; i++ {
			values = owner(values, i)
			for _, column := range t.values(&items[i]) {
				value, err := plain(column)
				if err != nil {
					return 0, err
				}
				values = append(values, value)
			}
		}
		outcome, err := statement.ExecContext(ctx, values...)
		if isTaken(err) {
			return 0, ErrExists
		}
		if err != nil {
			return 0, err
		}
		if key, err = outcome.LastInsertId(); err != nil {
			return 0, err
		}
	}
	return key, nil
}

// plain is the value of a column for the driver. database/sql needs reflection for the same conversion.
func plain(column any) (driver.Value, error) {
	switch c := column.(type) {
	case driver.Valuer:
		return c.Value()
	case *string:
		return *c, nil
	case *bool:
		return *c, nil
	case *int:
		return int64(*c), nil
	case *time.Duration:
		return int64(*c), nil
	}
	return column, nil
}

// insertLists writes the lists of trials as rows. keys are the keys of the trials.
func (t table[T]) insertLists(ctx context.Context, tx *transaction, trials []result.Trial, keys []int64, list func(*result.Trial) []T) error {
	type owner struct {
		trial int64
		place int
	}
	total := 0
	for i := range trials {
		total += len(list(&trials[i]))
	}
	items, owners := make([]T, 0, total), make([]owner, 0, total)
	for i := range trials {
		for place, item := range list(&trials[i]) {
			items, owners = append(items, item), append(owners, owner{keys[i], place})
		}
	}
	_, err := t.insert(ctx, tx, items, func(values []any, i int) []any { return append(values, owners[i].trial, owners[i].place) })
	return err
}

// query calls add for each row, with the integer in the column key. clause follows FROM. The item is valid during the call only.
func (t table[T]) query(ctx context.Context, tx *transaction, key, clause string, parameters []any, add func(key int64, item *T) error) error {
	var item, empty T
	var owner int64
	columns := append([]any{number[int64]{&owner}}, t.values(&item)...)
	return each(ctx, tx, func(scan scan) error {
		item = empty
		if err := scan(columns...); err != nil {
			return err
		}
		return add(owner, &item)
	}, "SELECT "+key+", "+t.columns+" FROM "+clause, parameters...)
}

// distantKeys is the least distance of the keys of two trials between which a query ends. Up to it the rows of other runs are read and left out.
const distantKeys = 64

// ofTrials sets the lists of trials, which are in order of their keys, to their rows.
func (t table[T]) ofTrials(ctx context.Context, tx *transaction, trials []trialRow, list func(*result.Trial) *[]T) error {
	var p packer[T]
	for len(trials) > 0 {
		end := 1
		for end < len(trials) && trials[end].key-trials[end-1].key < distantKeys {
			end++
		}
		if err := t.ofNeighbours(ctx, tx, trials[:end], &p, list); err != nil {
			return err
		}
		trials = trials[end:]
	}
	return nil
}

// ofNeighbours is ofTrials for trials with keys near each other.
func (t table[T]) ofNeighbours(ctx context.Context, tx *transaction, trials []trialRow, p *packer[T], list func(*result.Trial) *[]T) error {
	var rows []T // of the first trial
	end := func() {
		if len(rows) > 0 {
			*list(trials[0].Trial) = p.pack(rows)
			rows = rows[:0]
		}
	}
	clause := t.name + " WHERE trial BETWEEN ? AND ? ORDER BY trial, ord"
	err := t.query(ctx, tx, "trial", clause, []any{trials[0].key, trials[len(trials)-1].key}, func(key int64, item *T) error {
		for trials[0].key < key {
			end()
			trials = trials[1:]
		}
		if trials[0].key == key {
			rows = append(rows, *item)
		}
		return nil
	})
	end()
	return err
}

// packer copies short lists into long ones. A list that grows by append needs up to twice its length, and a run has a list for each trial.
type packer[T any] struct{ free []T }

// packLength is the length of a long list.
const packLength = 4096

func (p *packer[T]) pack(rows []T) []T {
	if len(rows) > packLength/4 {
		return slices.Clip(slices.Clone(rows))
	}
	if len(rows) > len(p.free) {
		p.free = make([]T, packLength)
	}
	n := copy(p.free, rows)
	block := p.free[:n:n]
	p.free = p.free[n:]
	return block
}

// ofTrial returns the rows of one trial.
func (t table[T]) ofTrial(ctx context.Context, tx *transaction, trial int64) (items []T, err error) {
	err = t.query(ctx, tx, "trial", t.name+" WHERE trial = ? ORDER BY ord", []any{trial}, func(_ int64, item *T) error {
		items = append(items, *item)
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
	if text == "null" {
		switch kind := reflect.TypeOf(d.pointer).Elem().Kind(); kind {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			return nil // the value is zero already
		default:
			return fmt.Errorf("the column of a JSON document is null in the place of a %v", kind)
		}
	}
	if err := json.Unmarshal([]byte(text), d.pointer); err != nil {
		return err
	}
	return result.CheckNumbers([]byte(text), d.pointer)
}

// mostKnown is the largest number of texts that the readers of repeated texts remember.
const mostKnown = 4096

// word stores a text that many rows have, such as a name. The rows share one string.
type word[T ~string] struct {
	text  *T
	last  string
	known map[string]T
}

// Value implements driver.Valuer.
func (w *word[T]) Value() (driver.Value, error) { return string(*w.text), nil }

// Scan implements sql.Scanner.
func (w *word[T]) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("the column of a name has type %T", column)
	}
	if text != w.last {
		value, has := w.known[text]
		if !has {
			value = T(text)
			w.known = remember(w.known, text, value)
		}
		w.last = string(value)
	}
	*w.text = T(w.last)
	return nil
}

// remember adds a text and its value to the cache, and forgets all others if there are too many.
func remember[T any](cache map[string]T, text string, value T) map[string]T {
	if cache == nil || len(cache) >= mostKnown {
		cache = map[string]T{}
	}
	cache[text] = value
	return cache
}

// repeated stores a map as JSON, like document. Rows with the same text share one map, because most trials of a run have the
// same conditions.
type repeated struct {
	pointer *map[string]string
	known   map[string]map[string]string
}

// Value implements driver.Valuer.
func (r *repeated) Value() (driver.Value, error) { return document{r.pointer}.Value() }

// Scan implements sql.Scanner.
func (r *repeated) Scan(column any) error {
	text, _ := column.(string)
	if value, has := r.known[text]; has {
		*r.pointer = value
		return nil
	}
	err := document{r.pointer}.Scan(column)
	if err == nil {
		r.known = remember(r.known, text, *r.pointer)
	}
	return err
}

// number stores an integer or a real number. It needs no reflection, unlike a pointer.
type number[T int64 | float64] struct{ pointer *T }

// Value implements driver.Valuer.
func (n number[T]) Value() (driver.Value, error) { return *n.pointer, nil }

// Scan implements sql.Scanner.
func (n number[T]) Scan(column any) error {
	value, ok := column.(T)
	if !ok {
		return fmt.Errorf("the column of a number has type %T", column)
	}
	*n.pointer = value
	return nil
}
