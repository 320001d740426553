// Package record keeps the repeats and skips of tests in a file. A test that passes in its second attempt, or is skipped, looks like success.
// The file shows after many runs which tests depend on chance, and why.
//
// Each call appends one line of four fields with tabs between them: the kind, the package, the test and the reason. Processes of several
// packages share the file, because the kernel appends a line as a whole. Without a file the lines are in the logs of the tests only.
//
// The package refuses a relative path, which each package would place in its own directory, and a call without a reason.
package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// Variable is the environment variable with the absolute path of the file.
const Variable = "TOUCHSTONE_TEST_RECORD"

// Kinds of lines.
const (
	repeated = "repeat"
	skipped  = "skip"
)

// Repeat records the repeat of a part of a test, and its reason. A repeat without a record hides a fault.
func Repeat(t testing.TB, reason string) {
	t.Helper()
	t.Logf("repeated, because: %s", reason)
	add(t, repeated, reason)
}

// Skip records the reason, and skips the test.
func Skip(t testing.TB, reason string) {
	t.Helper()
	add(t, skipped, reason)
	t.Skip(reason)
}

// Include appends the lines of another record, such as one from a virtual machine. A missing file is an empty record.
func Include(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		t.Errorf("include a record of tests: %v", err)
	default:
		write(t, string(text))
	}
}

// add appends a line for the test.
func add(t testing.TB, kind, reason string) {
	t.Helper()
	reason = strings.Join(strings.Fields(reason), " ")
	if reason == "" {
		t.Errorf("%s has no reason: name the event that explains it", kind)
		return
	}
	write(t, strings.Join([]string{kind, testedPackage(), t.Name(), reason}, "\t")+"\n")
}

// write appends text to the file in one call.
func write(t testing.TB, text string) {
	t.Helper()
	file := os.Getenv(Variable)
	if file == "" || text == "" {
		return
	}
	if err := appendText(file, text); err != nil {
		t.Errorf("record to the file in %s: %v", Variable, err)
	}
}

func appendText(file, text string) error {
	if !filepath.IsAbs(file) {
		return fmt.Errorf("the path %q is relative: set an absolute one", file)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// testedPackage returns the import path of the package whose tests this program runs.
func testedPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Path == "" {
		return filepath.Base(os.Args[0])
	}
	return strings.TrimSuffix(info.Path, ".test")
}
