package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Location is the origin of a value: a place in a file, or the command line.
type Location struct {
	File string
	// Line and Column count from 1, columns in characters. Both are 0 for the whole file.
	Line, Column int
	// Flag is a flag with its dashes, or the name of a variable; empty for a file.
	Flag string
}

func (l Location) String() string {
	if l.Flag != "" || l.Line == 0 {
		return l.Flag + l.File
	}
	return strings.TrimPrefix(fmt.Sprintf("%s:%d:%d", l.File, l.Line, l.Column), ":")
}

// Error is a problem at one location of a plan, or of a flag that overrides it.
type Error struct {
	Location
	// Value is the wrong value as written, empty if something is missing.
	Value   string
	Problem string
	Advice  string // the remedy; may be empty
}

func (e *Error) Error() string {
	text := e.Problem
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	if location := e.String(); location != "" {
		text = location + ": " + text
	}
	return text
}

// problem is a problem of a value, independent of its location.
type problem struct{ message, advice string }

// error returns the error for a wrong value.
func (l Location) error(value string, f problem) error {
	return &Error{Location: l, Value: value, Problem: f.message, Advice: f.advice}
}

// maxProblems is the maximum number of reported errors. More do not help, and the search for similar names costs time.
const maxProblems = 20

// problems collects errors in the order of their detection.
type problems struct{ errs []error }

func (f *problems) full() bool { return len(f.errs) >= maxProblems }

// add records the error for a wrong value, up to maxProblems.
func (f *problems) add(location Location, value string, fl problem) {
	if !f.full() {
		f.errs = append(f.errs, location.error(value, fl))
	}
}

// with adds errors that are probably the cause, if there are any.
func (f *problems) with(causes problems) *problems {
	if len(f.errs) == 0 {
		return f
	}
	return &problems{slices.Concat(causes.errs, f.errs)}
}

// err joins the collected errors; nil if there are none.
func (f *problems) err() error { return errors.Join(f.errs...) }

// quote prepares a value from a file for a message: quoted, so no raw character reaches the terminal, and shortened if it is long.
func quote(s string) string {
	const limit = 60
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// printable replaces characters that can control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// didYouMean returns advice with the candidate nearest to a mistyped name, or fallback if no candidate is near.
func didYouMean(name string, candidates []string, fallback string) string {
	best, limit := "", 1+max(1, min((len(name)+1)/3, 3))
	for _, c := range candidates {
		if d := distance(name, c, limit); d < limit {
			best, limit = c, d
		}
	}
	if best == "" {
		return fallback
	}
	return "did you mean " + best + "?"
}

// distance returns the number of bytes to insert, delete, replace or swap with a neighbour to turn a into b (optimal string
// alignment), at most limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	var previous, last, row []int
	for j := range len(b) + 1 {
		last = append(last, j)
	}
	for i := range len(a) {
		row = append(make([]int, 0, len(b)+1), i+1)
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, previous[j-1]+1)
			}
			row = append(row, d)
		}
		previous, last = last, row
	}
	return min(last[len(b)], limit)
}
