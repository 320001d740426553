package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

func TestPatient(t *testing.T) {
	type key struct{}
	given := errors.New("given up")
	outer, give := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))

	long, end := engine.Patient(outer, time.Hour)
	short, done := engine.Patient(outer, time.Nanosecond)
	defer done()
	if long.Value(key{}) != "value" || long.Err() != nil || short.Err() != nil {
		t.Errorf("before the end: %v, %v, %v", long.Value(key{}), long.Err(), short.Err())
	}
	give(given)
	<-short.Done()
	if cause := context.Cause(short); !errors.Is(cause, given) {
		t.Errorf("after the limit the cause is %v, want that of the caller", cause)
	}
	if long.Err() != nil {
		t.Errorf("within the limit: %v", long.Err())
	}
	end()
	if long.Err() == nil {
		t.Error("it goes on after its own end")
	}
}
