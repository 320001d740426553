// Package workloadtest has the output that was captured from programs, for the tests of their parsers. Only tests import it.
package workloadtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// dir is beside the packages whose tests read it.
const dir = "../testdata"

// Read returns captured output.
func Read(t testing.TB, file string) []byte {
	t.Helper()
	output, err := os.ReadFile(filepath.Join(dir, file))
	must.Do(t, err)
	return output
}

// All returns the captured outputs that match a pattern. There is at least one.
func All(t testing.TB, pattern string) [][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	must.Do(t, err)
	if paths == nil {
		t.Fatalf("no capture matches %s", pattern)
	}
	var outputs [][]byte
	for _, path := range paths {
		outputs = append(outputs, Read(t, filepath.Base(path)))
	}
	return outputs
}
