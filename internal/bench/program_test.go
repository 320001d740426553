package bench

import (
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The error of a program that was killed in a guest names the remedy, unless the container has a memory limit.
func TestExitErrorOfGuests(t *testing.T) {
	plain := engine.Spec{Process: engine.Process{Args: []string{"/probe", "grow"}}}
	limited := plain
	limited.Resources.Memory = 1 << 20
	killed := engine.Exit{Signal: syscall.SIGKILL}
	for _, c := range []struct {
		spec      engine.Spec
		isolation engine.Isolation
		exit      engine.Exit
		advised   bool
	}{
		{plain, engine.VM, killed, true},
		{limited, engine.VM, killed, false},
		{plain, engine.SharedKernel, killed, false},
		{plain, engine.VM, engine.Exit{Code: 1}, false},
	} {
		err := exitError(c.spec, c.isolation, c.exit)
		if err == nil || !strings.Contains(err.Error(), c.exit.String()) || strings.Contains(err.Error(), "memory=MIB") != c.advised {
			t.Errorf("%+v in a %s: %v; want advice: %v", c.exit, c.isolation, err, c.advised)
		}
	}
	if err := exitError(plain, engine.VM, engine.Exit{}); err != nil {
		t.Errorf("a program that succeeds: %v", err)
	}
}
