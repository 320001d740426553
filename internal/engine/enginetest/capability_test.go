package enginetest

import (
	"errors"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/test/record"
)

// A chance failure of a runtime is repeated twice at most, and another error not at all.
//
// Invariant recorded-repeats.
func TestRepeat(t *testing.T) {
	t.Setenv(record.Variable, "")
	silentErr := &runtimes.SilentExecError{Err: errors.New("EOF")}
	unsealed := errors.New("exit status 1: Error: failed to seal /proc/self/exe: Device or resource busy")
	errOther := errors.New("no such container")
	exec := func(call func() error) error {
		_, err := repeatSilent(t, func() (engine.Exit, error) { return engine.Exit{}, call() })
		return err
	}
	create := func(call func() error) error {
		_, err := repeatUnsealed(t, func() (engine.Container, error) { return nil, call() })
		return err
	}
	unfrozen := errors.New("OCI runtime pause failed: unable to freeze")
	ofPodman := errors.New("pause container \"a\" with podman/runc: `/usr/sbin/runc pause 449372a2` failed: exit status 1")
	pause := func(call func() error) error { return repeatUnfrozen(t, call) }
	lateErr := errors.New("start container \"a\": starting container: open /proc/3012/oom_score_adj: no such process; exit status 128")
	start := func(call func() error) error {
		_, err := repeatEnded(t, func() (struct{}, error) { return struct{}{}, call() })
		return err
	}
	for _, tt := range []struct {
		name    string
		repeat  func(call func() error) error
		results []error
		calls   int
		want    error
	}{
		{"an exec works", exec, []error{nil}, 1, nil},
		{"an exec is lost twice", exec, []error{silentErr, silentErr, nil}, 3, nil},
		{"an exec is always lost", exec, []error{silentErr, silentErr, silentErr, nil}, 3, silentErr},
		{"an exec has a reason", exec, []error{errOther, nil}, 1, errOther},
		{"an exec has a reason later", exec, []error{silentErr, errOther, nil}, 2, errOther},
		{"an exec of youki", exec, []error{unsealed, nil}, 1, unsealed},
		{"a create works", create, []error{nil}, 1, nil},
		{"a create is refused twice", create, []error{unsealed, unsealed, nil}, 3, nil},
		{"a create is always refused", create, []error{unsealed, unsealed, unsealed, nil}, 3, unsealed},
		{"a start is late twice", start, []error{lateErr, lateErr, nil}, 3, nil},
		{"a start is always late", start, []error{lateErr, lateErr, lateErr, nil}, 3, lateErr},
		{"a start has another reason", start, []error{errOther, nil}, 1, errOther},
		{"a pause is refused twice", pause, []error{unfrozen, ofPodman, nil}, 3, nil},
		{"a pause has another reason", pause, []error{errOther, nil}, 1, errOther},
		{"a create has another reason", create, []error{errOther, nil}, 1, errOther},
	} {
		calls := 0
		err := tt.repeat(func() error {
			calls++
			return tt.results[calls-1]
		})
		if !errors.Is(err, tt.want) || calls != tt.calls {
			t.Errorf("%s: %d calls, %v; want %d, %v", tt.name, calls, err, tt.calls, tt.want)
		}
	}
}
