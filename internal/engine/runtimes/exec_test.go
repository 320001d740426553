package runtimes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The errors are those of the engines for a runsc that exits with 128 and writes nothing, and for a missing program.
func TestExplainExec(t *testing.T) {
	for _, tt := range []struct {
		text   string
		silent bool
	}{
		{"command error: EOF, stdout: , stderr: , exit code -1", true},
		{"failed to start exec \"9469\": OCI runtime exec failed: /usr/bin/runsc did not terminate successfully", true},
		{"OCI runtime exec failed: /var/lib/d/runtimes/runsc-3 did not terminate successfully: exit status 128: unknown", true},
		{`container create failed (no logs from conmon): conmon bytes "": readObjectStart: expect { or n`, true},
		{"command error: EOF, stdout: , stderr: no space left on device, exit code -1", false},
		{"OCI runtime exec failed: failed to load /no-such-program: no such file or directory", false},
	} {
		err := fmt.Errorf("execute in container %q: %w", "c", errors.New(tt.text))
		var execErr *SilentExecError
		if got := errors.As(ExplainExec(engine.UserKernel, err), &execErr); got != tt.silent {
			t.Errorf("the known cause explains %q: %v, want %v", tt.text, got, tt.silent)
		}
		if tt.silent && !errors.Is(execErr, err) {
			t.Errorf("the explanation of %q loses the error", tt.text)
		}
		if got := ExplainExec(engine.SharedKernel, err); got != err { //nolint:errorlint // it is the same value
			t.Errorf("without gVisor %q becomes %v", tt.text, got)
		}
	}
}
