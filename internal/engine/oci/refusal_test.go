package oci

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// Invariant refused-calls.
func TestRemedy(t *testing.T) {
	pidfd := refusal.SystemCall("pidfd_open", "5.3", unix.EPERM)
	clone := refusal.SystemCall("clone3", "5.7", unix.ENOSYS)
	for name, tt := range map[string]struct {
		err     error
		refused []*refusal.Error
		want    string // a part of the advice
	}{
		"a refusal of this program":          {fmt.Errorf("try: %w", clone), []*refusal.Error{clone}, ""},
		"the runtime names the call":         {errors.New("crun: pidfd_open: Operation not permitted"), []*refusal.Error{pidfd, clone}, "pidfd_open is refused"},
		"the runtime names the other call":   {errors.New("youki: failed to clone3: ENOSYS"), []*refusal.Error{pidfd, clone}, "clone3 is refused"},
		"the runtime names no call":          {errors.New("runc: operation not permitted"), []*refusal.Error{pidfd}, "the reason may be pidfd_open"},
		"no call is refused to this program": {errors.New("something else"), nil, ""},
	} {
		got, ok := remedy(tt.err, tt.refused)
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" || ok != (len(tt.refused) > 0) {
			t.Errorf("%s: advice %q, %v, want %q", name, got, ok, tt.want)
		}
		if os.Geteuid() == 0 && strings.Contains(got, "run as root") {
			t.Errorf("%s: root is told: %s", name, got)
		}
	}
}
