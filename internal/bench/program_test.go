package bench

import (
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The error of a program that was killed in a guest names the remedy, unless the container has a memory limit.
func TestExitErrorOfGuests(t *testing.T) {
	spec := engine.Spec{Process: engine.Process{Args: []string{"/probe", "grow"}}}
	limitSpec := spec
	limitSpec.Resources.Memory = 1 << 20
	const advice = "enlarge it"
	kill := engine.Exit{Signal: syscall.SIGKILL}
	for _, c := range []struct {
		spec    engine.Spec
		advice  string
		exit    engine.Exit
		advised bool
	}{
		{spec, advice, kill, true},
		{limitSpec, advice, kill, false},
		{spec, "", kill, false},
		{spec, advice, engine.Exit{Code: 1}, false},
	} {
		err := exitError(c.spec, c.advice, c.exit)
		if err == nil || !strings.Contains(err.Error(), c.exit.String()) || strings.Contains(err.Error(), advice) != c.advised {
			t.Errorf("%+v with the advice %q: %v; want it: %v", c.exit, c.advice, err, c.advised)
		}
	}
	if err := exitError(spec, advice, engine.Exit{}); err != nil {
		t.Errorf("a program that succeeds: %v", err)
	}
}
