package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"
)

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
