package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Error says what is wrong at one place of a plan file.
type Error struct {
	File string
	// Line and Column count from 1, columns in characters. Both are 0 where the
	// error is about the file as a whole.
	Line, Column int
	// Value is what is wrong, as it was written; empty if something is missing.
	Value   string
	Problem string
	Advice  string // what to do about it; may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line != 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	return b.String() + withAdvice(e.Problem, e.Advice)
}

// FlagError says what is wrong with a flag that overrides a plan.
type FlagError struct {
	Flag    string // with its dashes, or the name of a variable
	Value   string
	Problem string
	Advice  string // what to do about it; may be empty
}

func (e *FlagError) Error() string {
	return e.Flag + ": " + withAdvice(e.Problem, e.Advice)
}

func withAdvice(problem, advice string) string {
	if advice == "" {
		return problem
	}
	return problem + "; " + advice
}

// problem is what is wrong with a value, wherever it was written.
type problem struct{ message, advice string }

// place is where a value was written: in a file, or on the command line.
type location struct {
	file         string
	line, column int
	flag         string
}

// fault makes the error for a flawed value.
func (p location) error(value string, f problem) error {
	if p.flag != "" {
		return &FlagError{Flag: p.flag, Value: value, Problem: f.message, Advice: f.advice}
	}
	return &Error{File: p.file, Line: p.line, Column: p.column, Value: value, Problem: f.message, Advice: f.advice}
}

// maxProblems is how many errors are told at once: more help nobody, and looking for near
// names costs time.
const maxProblems = 20

// problems collects errors in the order in which they are found.
type problems struct{ errs []error }

func (f *problems) full() bool { return len(f.errs) >= maxProblems }

// add keeps the error for a flawed value; beyond maxProblems it drops it.
func (f *problems) add(at location, value string, fl problem) {
	if !f.full() {
		f.errs = append(f.errs, at.error(value, fl))
	}
}

// err joins what was collected, nil if that is nothing.
func (f *problems) err() error { return errors.Join(f.errs...) }

// quote shows a value from a file in a message: quoted, so that nothing in it
// reaches the terminal raw, and cut where it is long.
func quote(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return strconv.Quote(s)
}

// printable replaces what a terminal might obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
