package enginetest_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/test/record"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	fatal, skipped string
	logged         string
	errors         []string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) {
	r.fatal = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Name() string { return "TestRecorder" }

func (r *recorder) Logf(format string, args ...any) { r.logged += fmt.Sprintf(format, args...) }

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// observe calls a test, and returns its outcome. Its skips are not recorded.
func observe(t *testing.T, test func(testing.TB)) *recorder {
	t.Helper()
	t.Setenv(record.Variable, "")
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r
}

func TestRequire(t *testing.T) {
	missing := fmt.Errorf("open: %w", &engine.UnsupportedError{What: "oci/runc", Reason: "there is no runc on PATH"})
	for _, tt := range []struct {
		mustRun, target string
		err             error
		fatal, skipped  bool
	}{
		{"", "oci/runc", nil, false, false},
		{"oci/runc", "oci/runc", nil, false, false},
		{"", "oci/runc", missing, false, true},
		{"oci/crun", "oci/runc", missing, false, true},
		{"oci/runc@a=b", "oci/runc", missing, false, true},
		{"oci/runc", "oci/runc", missing, true, false},
		{"native, oci/runc", "oci/runc", missing, true, false},
		{"oci/runsc@platform=ptrace,network=none,native", "oci/runsc@network=none,platform=ptrace", missing, true, false},
		{"oci/runsc@platform=ptrace,native", "native", missing, true, false},
		{"", "oci/runc", errors.New("permission denied"), true, false},
		{"oci/runc@", "oci/crun", missing, true, false},
	} {
		t.Setenv(enginetest.MustRun, tt.mustRun)
		r := observe(t, func(t testing.TB) { enginetest.Require(t, tt.target, tt.err) })
		if (r.fatal != "") != tt.fatal || (r.skipped != "") != tt.skipped {
			t.Errorf("%q: Require(%s, %v): fatal %q, skipped %q", tt.mustRun, tt.target, tt.err, r.fatal, r.skipped)
		}
		if tt.skipped && !strings.Contains(r.skipped, "there is no runc on PATH") {
			t.Errorf("the skip has no reason: %s", r.skipped)
		}
	}
}

func TestCheckMustRun(t *testing.T) {
	for _, tt := range []struct {
		mustRun string
		errors  int
	}{
		{"", 0},
		{"oci/runc,oci/runsc@platform=ptrace,network=none", 0},
		{"native,fake/x", 0}, // of other engines
		{"oci/rnuc", 1},
		{"oci/rnuc,oci/crun,oci/runc", 2},
		{"oci/runsc@platform=ptrace", 1},
	} {
		t.Setenv(enginetest.MustRun, tt.mustRun)
		targets := []string{"oci/runc", "oci/runsc@platform=ptrace,network=none"}
		r := observe(t, func(t testing.TB) { enginetest.CheckMustRun(t, "oci", targets...) })
		if len(r.errors) != tt.errors || r.fatal != "" {
			t.Errorf("%q: %q, fatal %q; want %d errors", tt.mustRun, r.errors, r.fatal, tt.errors)
		}
		if targets[1] != "oci/runsc@platform=ptrace,network=none" {
			t.Errorf("CheckMustRun changed its caller's list to %q", targets)
		}
	}
}

func TestCheckMustRunEngines(t *testing.T) {
	for _, tt := range []struct {
		mustRun string
		errors  int
		fatal   bool
	}{
		{"native,oci/runc", 0, false},
		{"naive/x,ocii/runc,oci/runc", 2, false},
		{"oci", 0, true}, // names no target
	} {
		t.Setenv(enginetest.MustRun, tt.mustRun)
		r := observe(t, func(t testing.TB) { enginetest.CheckMustRunEngines(t, "native", "oci") })
		if len(r.errors) != tt.errors || (r.fatal != "") != tt.fatal {
			t.Errorf("%q: %q, fatal %q; want %d errors, fatal %v", tt.mustRun, r.errors, r.fatal, tt.errors, tt.fatal)
		}
	}
}
