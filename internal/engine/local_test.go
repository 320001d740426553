package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

func TestReadPID(t *testing.T) {
	for text, want := range map[string]int{"1234": 1234, "77\n": 77, "": 0, "0": 0, "1": 0, "-5": 0, "12x": 0, "12 13": 0} {
		file := filepath.Join(t.TempDir(), "pid")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := engine.ReadPID(file)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("ReadPID of %q = %d, %v; want %d", text, got, err, want)
		}
	}
}
