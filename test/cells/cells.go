// Package cells divides the heavy tests into cells. Each change runs some of them. A cell is a runtime below an engine in the whole
// conformance suite, a virtual machine of the lab, a case of the campaign, or a long test of a command.
//
// A change runs the cells whose code it touches, and those that have not run for the longest time: in six changes every cell of the
// rotation runs, and make test-all runs all cells. The file runs.tsv has the last run of each cell. All other tests run with each change. See
// docs/adr/0038-cells.md.
package cells

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Chosen is the environment variable with the cells to run, separated by commas. Without it, or with the value "all", all of them run.
const Chosen = "TOUCHSTONE_CELLS"

// A Cell is a heavy part of the tests.
type Cell struct {
	Name string
	// Paths are the directories whose change runs the cell, with the directories below them.
	Paths []string
}

// Need skips the test unless its cell runs in this change.
func Need(t testing.TB, name string) {
	t.Helper()
	if !Runs(t, name) {
		t.Skipf("cell %s does not run in this change: %s does not name it", name, Chosen)
	}
}

// OfClusters reports whether the tests of a cell start clusters.
func OfClusters(name string) bool {
	kind, part, _ := strings.Cut(name, "/")
	return kind == "cluster" || kind == "fleet" || kind == "pods" || kind == "lab" && part == "cluster"
}

// Whole reports whether a target runs the whole conformance suite in this change: one without a cell, whose name is empty, always does.
func Whole(t testing.TB, name string) bool {
	t.Helper()
	return name == "" || Runs(t, name)
}

// Runs reports whether a cell runs in this change. A name without a cell fails the test.
func Runs(t testing.TB, name string) bool {
	t.Helper()
	if !slices.ContainsFunc(All(), func(c Cell) bool { return c.Name == name }) {
		t.Fatalf("cell %s is not in the list of package cells", name)
	}
	list := os.Getenv(Chosen)
	return list == "" || list == "all" || slices.Contains(strings.Split(list, ","), name)
}
