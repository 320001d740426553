package enginetest

import (
	"errors"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/test/record"
)

// A call is made again only after a failure without a reason, and three times at most.
func TestRepeatSilent(t *testing.T) {
	t.Setenv(record.Variable, "")
	silent, other := &runtimes.SilentExecError{Err: errors.New("EOF")}, errors.New("no such container")
	for _, tt := range []struct {
		name    string
		results []error
		calls   int
		want    error
	}{
		{"works", []error{nil}, 1, nil},
		{"fails twice", []error{silent, silent, nil}, 3, nil},
		{"always fails", []error{silent, silent, silent, nil}, 3, silent},
		{"has a reason", []error{other, nil}, 1, other},
		{"has a reason later", []error{silent, other, nil}, 2, other},
	} {
		calls := 0
		_, err := repeatSilent(t, func() (engine.Exit, error) {
			calls++
			return engine.Exit{}, tt.results[calls-1]
		})
		if !errors.Is(err, tt.want) || calls != tt.calls {
			t.Errorf("%s: %d calls, %v; want %d, %v", tt.name, calls, err, tt.calls, tt.want)
		}
	}
}

func TestRepeatUnsealed(t *testing.T) {
	t.Setenv(record.Variable, "")
	unsealed, other := errors.New("exit status 1: Error: failed to seal /proc/self/exe: Device or resource busy"), errors.New("no such program")
	for _, tt := range []struct {
		name    string
		results []error
		calls   int
		want    error
	}{
		{"works", []error{nil}, 1, nil},
		{"fails twice", []error{unsealed, unsealed, nil}, 3, nil},
		{"always fails", []error{unsealed, unsealed, unsealed, nil}, 3, unsealed},
		{"another error", []error{other, nil}, 1, other},
	} {
		calls := 0
		_, err := repeatUnsealed(t, func() (engine.Container, error) {
			calls++
			return nil, tt.results[calls-1]
		})
		if !errors.Is(err, tt.want) || calls != tt.calls {
			t.Errorf("%s: %d calls, %v; want %d, %v", tt.name, calls, err, tt.calls, tt.want)
		}
	}
}
