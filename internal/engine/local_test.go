package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

func TestGracePeriod(t *testing.T) {
	type key struct{}
	given := errors.New("given up")
	outer, give := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))

	long, end := engine.WithGracePeriod(outer, time.Hour)
	short, done := engine.WithGracePeriod(outer, time.Nanosecond)
	defer done()
	if long.Value(key{}) != "value" || long.Err() != nil || short.Err() != nil {
		t.Errorf("before the caller's context ended: %v, %v, %v", long.Value(key{}), long.Err(), short.Err())
	}
	give(given)
	<-short.Done()
	if cause := context.Cause(short); !errors.Is(cause, given) {
		t.Errorf("after the grace period the cause is %v, want the caller's cause", cause)
	}
	if long.Err() != nil {
		t.Errorf("within the grace period: %v", long.Err())
	}
	end()
	if long.Err() == nil {
		t.Error("the context is alive after its cancel function was called")
	}
}
