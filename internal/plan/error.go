package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Error is a problem at one location of a plan file.
type Error struct {
	File string
	// Line and Column count from 1, columns in characters. Both are 0 for a problem of the whole file.
	Line, Column int
	// Value is the wrong value as written, empty if something is missing.
	Value   string
	Problem string
	Advice  string // the remedy; may be empty
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

// FlagError is a problem of a flag that overrides a plan.
type FlagError struct {
	Flag    string // with its dashes, or the name of a variable
	Value   string
	Problem string
	Advice  string // the remedy; may be empty
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

// problem is a problem of a value, independent of its location.
type problem struct{ message, advice string }

// location is the origin of a value: a file or the command line.
type location struct {
	file         string
	line, column int
	flag         string
}

// error returns the error for a wrong value.
func (p location) error(value string, f problem) error {
	if p.flag != "" {
		return &FlagError{Flag: p.flag, Value: value, Problem: f.message, Advice: f.advice}
	}
	return &Error{File: p.file, Line: p.line, Column: p.column, Value: value, Problem: f.message, Advice: f.advice}
}

// maxProblems is the maximum number of reported errors. More do not help, and the search for similar names costs time.
const maxProblems = 20

// problems collects errors in the order of their detection.
type problems struct{ errs []error }

func (f *problems) full() bool { return len(f.errs) >= maxProblems }

// add records the error for a wrong value, up to maxProblems.
func (f *problems) add(at location, value string, fl problem) {
	if !f.full() {
		f.errs = append(f.errs, at.error(value, fl))
	}
}

// err joins the collected errors; nil if there are none.
func (f *problems) err() error { return errors.Join(f.errs...) }

// quote prepares a value from a file for a message: quoted, so no raw character reaches the terminal, and shortened if it is long.
func quote(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
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
