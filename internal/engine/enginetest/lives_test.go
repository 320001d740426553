package enginetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/record"
)

func TestLimitsWithoutController(t *testing.T) {
	for mustRun, fatal := range map[string]bool{"": false, "oci/runc": true} {
		t.Setenv(enginetest.MustRun, mustRun)
		r := observe(t, func(t testing.TB) {
			enginetest.Limits(t, engine.Session{Cgroups: &cgroup.Hierarchy{}}, "/touchstone-x")
		})
		if (r.fatal != "") != fatal || (r.skipped != "") == fatal {
			t.Errorf("%q: fatal %q, skipped %q", mustRun, r.fatal, r.skipped)
		}
	}
}

// opener fails its first attempts.
type opener struct {
	errs  []error
	calls int
}

func (o *opener) Open(context.Context, target.Target, engine.Session) (engine.Engine, error) {
	o.calls++
	return nil, o.errs[o.calls-1]
}

// A target is opened again only if its first container did not work, and three times at most. Each repeat has its reason.
//
// Invariant recorded-repeats.
func TestAttempt(t *testing.T) {
	t.Setenv(record.Variable, "")
	openErr := &engine.OpenError{Transient: true, Err: &engine.UnsupportedError{What: "oci/runsc", Reason: "no answer"}}
	missing := &engine.OpenError{Err: &engine.UnsupportedError{What: "oci/runsc", Reason: "there is no runsc"}}
	for _, tt := range []struct {
		name  string
		errs  []error
		calls int
		want  error
	}{
		{"works", []error{nil}, 1, nil},
		{"works at last", []error{openErr, openErr, nil}, 3, nil},
		{"never works", []error{openErr, openErr, openErr, nil}, 3, openErr},
		{"is missing", []error{missing, nil}, 1, missing},
	} {
		o := &opener{errs: tt.errs}
		r := &recorder{TB: t}
		_, err := enginetest.Attempt(r, o, "oci/runsc", engine.Session{})
		if !errors.Is(err, tt.want) || o.calls != tt.calls || strings.Count(r.logged, "no answer") != tt.calls-1 {
			t.Errorf("%s: %d calls, %v, log %q; want %d calls, %v", tt.name, o.calls, err, r.logged, tt.calls, tt.want)
		}
	}
}

// Leftovers are compared by their names. An object that was removed meanwhile hides no other one.
func TestSurplus(t *testing.T) {
	for _, tt := range []struct{ before, now, want []string }{
		{nil, nil, nil},
		{[]string{"a", "b"}, []string{"b"}, nil},
		{[]string{"a", "b"}, []string{"b", "c"}, []string{"c"}},
		{nil, []string{"c"}, []string{"c"}},
	} {
		if got := enginetest.Surplus(tt.before, tt.now); !slices.Equal(got, tt.want) {
			t.Errorf("Surplus(%q, %q) = %q, want %q", tt.before, tt.now, got, tt.want)
		}
	}
}
