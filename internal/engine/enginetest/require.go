package enginetest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/record"
)

// MustRun is the environment variable with the targets whose tests may not be skipped, separated by commas:
// TOUCHSTONE_MUST_RUN=native,oci/runc. An item without a slash after a target with options is a further option of that
// target, as in oci/runsc@network=none,platform=ptrace.
const MustRun = "TOUCHSTONE_MUST_RUN"

// Require passes if err is nil. If the target is unsupported on this host it skips the test with the reason, or fails it if
// MustRun names the target. Any other error fails the test.
//
// Invariant must-run: CI cannot go green by skipping.
func Require(t testing.TB, name string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case !engine.Unsupported(err):
		t.Fatalf("open target %s: %v", name, err)
	case required(t, Parse(t, name)):
		t.Fatalf("%s names %s, which cannot run: %v", MustRun, name, err)
	default:
		record.Skip(t, fmt.Sprintf("%s cannot run here: %v", name, err))
	}
}

// required reports whether MustRun names a target.
func required(t testing.TB, candidate target.Target) bool {
	t.Helper()
	return slices.ContainsFunc(mustRun(t), func(m target.Target) bool { return m.String() == candidate.String() })
}

// CheckMustRun fails the test if MustRun names a target of an engine that is not in targets, the list of the engine's tests.
// Without this check a misspelled target would have no effect.
func CheckMustRun(t testing.TB, engineName string, targets ...string) {
	t.Helper()
	var names []string
	for _, name := range targets {
		names = append(names, Parse(t, name).String())
	}
	for _, m := range mustRun(t) {
		if m.Engine == engineName && !slices.Contains(names, m.String()) {
			t.Errorf("%s names %s, which has no test of engine %s; the tests cover %s",
				MustRun, m, engineName, strings.Join(names, ", "))
		}
	}
}

// CheckMustRunEngines fails the test if MustRun names an unknown engine. It belongs in the tests of the package with the list
// of engines.
func CheckMustRunEngines(t testing.TB, engineNames ...string) {
	t.Helper()
	for _, m := range mustRun(t) {
		if !slices.Contains(engineNames, m.Engine) {
			t.Errorf("%s names %s with an unknown engine %s; the engines are %s",
				MustRun, m, m.Engine, strings.Join(engineNames, ", "))
		}
	}
}

// mustRun returns the targets in the variable.
func mustRun(t testing.TB) []target.Target {
	t.Helper()
	targets, err := parseMustRun(os.Getenv(MustRun))
	if err != nil {
		t.Fatalf("read %s: %v", MustRun, err)
	}
	return targets
}

func parseMustRun(list string) ([]target.Target, error) {
	var spellings []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		last := len(spellings) - 1
		switch {
		case item == "":
		case last >= 0 && strings.Contains(spellings[last], "@") && isOption(item):
			spellings[last] += "," + item
		default:
			spellings = append(spellings, item)
		}
	}
	var targets []target.Target
	for _, s := range spellings {
		t, err := target.Parse(s)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// isOption reports whether an item is name=value. In a target "=" comes after "@".
func isOption(item string) bool {
	head, _, ok := strings.Cut(item, "=")
	return ok && !strings.Contains(head, "@")
}

// Parse reads the name of a target.
func Parse(t testing.TB, name string) target.Target {
	t.Helper()
	parsed, err := target.Parse(name)
	must.Do(t, err)
	return parsed
}
