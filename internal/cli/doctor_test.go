package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/doctor"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
)

// The report has the failing calls, and one log for each engine with a failing call.
func TestSymptoms(t *testing.T) {
	drivers, _, _ := lab(t, nil)
	drivers[1].(stub).fails["containerd/runsc"] = &engine.OpenError{Err: &engine.UnsupportedError{What: "it", Reason: "a cause (… part …)", Advice: "mend it", Output: "all\nof it", Log: "the end\n"}}
	rows, err := New(Environment{Stderr: &bytes.Buffer{}}).tryAll(t.Context(), drivers, plan.Quick(), &engine.Session{RunID: "r"})
	must.Do(t, err)
	report := doctor.Report{Targets: symptoms(rows), Logs: logs(t.Context(), nil, rows)}
	_, text, _ := strings.Cut(report.Text(), "\nWorks: ")
	const want = `oci/runc, oci/runsc, containerd/runc

Does not work: oci/crun, containerd/crun
  crun is not on PATH
  remedy: install it

Does not work: oci/runsc@platform=kvm, containerd/runsc@platform=kvm
  no answer within 20s
  delete the container: it is gone

Does not work: containerd/runsc
  a cause (… part …)
  remedy: mend it
  the failing call:
    all
    of it

Does not work: containerd/kata
  its shim` + "\x1b" + `[2J is missing
  remedy: install it

The end of the log of containerd
  the end
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDoctorOverwritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	must.Do(t, writeNew(file, []byte("first")))
	for name, err := range map[string]error{
		"write":    writeNew(file, []byte("second")),
		"diagnose": New(Environment{}).diagnose(t.Context(), plan.Quick(), formatTable, file),
	} {
		if codeOf(err) != ExitUsage || !strings.Contains(err.Error(), file+" exists; name a new file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := os.ReadFile(file)
	must.Do(t, err)
	info, err := os.Stat(file)
	must.Do(t, err)
	if string(text) != "first" || info.Mode() != 0o600 {
		t.Errorf("the file has %q with the mode %v", text, info.Mode())
	}
}

// ^C leaves no file.
func TestDoctorInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(ErrInterrupted)
	var out bytes.Buffer
	app := New(Environment{Stdout: &out, Stderr: &bytes.Buffer{}, RunID: func() string { return "doctor-interrupted" }})
	if err := app.diagnose(ctx, plan.Quick(), formatTable, file); !errors.Is(err, ErrInterrupted) {
		t.Errorf("an interrupted doctor returns %v", err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) || out.Len() > 0 {
		t.Errorf("an interrupted doctor leaves %v and printed %q", err, out.String())
	}
}
