package cli

import (
	"fmt"
	"log/slog"
	"os"
)

// traceVariable is the environment variable with the file for the calls of engines.
const traceVariable = "TOUCHSTONE_TRACE"

// callTrace is the open file; nil without one.
type callTrace struct{ file *os.File }

// openTrace opens the file of a trace, or creates it. A trace of several runs has all of them.
func openTrace(file string) (callTrace, error) {
	if file == "" {
		return callTrace{}, nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return callTrace{}, usage(fmt.Errorf("%s: %w; name a file that you can write, or unset the variable", traceVariable, err))
	}
	return callTrace{f}, nil
}

// handler writes a JSON object with a newline for each call.
func (t callTrace) handler() slog.Handler {
	if t.file == nil {
		return nil
	}
	return slog.NewJSONHandler(t.file, nil)
}

func (t callTrace) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}
