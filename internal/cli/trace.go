package cli

import (
	"fmt"
	"log/slog"
	"os"
)

// traceVariable is the environment variable with the file for the calls of engines.
const traceVariable = "TOUCHSTONE_TRACE"

// trace is the open file; nil without one.
type trace struct{ file *os.File }

// openTrace opens the file of a trace, or creates it. A trace of several runs has all of them.
func openTrace(file string) (trace, error) {
	if file == "" {
		return trace{}, nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return trace{}, usage(fmt.Errorf("%s: %w; name a file that you can write, or unset the variable", traceVariable, err))
	}
	return trace{f}, nil
}

// handler writes a JSON object with a newline for each call.
func (t trace) handler() slog.Handler {
	if t.file == nil {
		return nil
	}
	return slog.NewJSONHandler(t.file, nil)
}

func (t trace) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}
