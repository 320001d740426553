package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestGracePeriod(t *testing.T) {
	type key struct{}
	errGivenUp := errors.New("given up")
	outer, give := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))

	longCtx, end := engine.WithGracePeriod(outer, time.Hour)
	shortCtx, done := engine.WithGracePeriod(outer, time.Nanosecond)
	defer done()
	if longCtx.Value(key{}) != "value" || longCtx.Err() != nil || shortCtx.Err() != nil {
		t.Errorf("before the caller's context ended: %v, %v, %v", longCtx.Value(key{}), longCtx.Err(), shortCtx.Err())
	}
	give(errGivenUp)
	<-shortCtx.Done()
	if cause := context.Cause(shortCtx); !errors.Is(cause, errGivenUp) {
		t.Errorf("after the grace period the cause is %v, want the caller's cause", cause)
	}
	if longCtx.Err() != nil {
		t.Errorf("within the grace period: %v", longCtx.Err())
	}
	end()
	if longCtx.Err() == nil {
		t.Error("the context is alive after its cancel function was called")
	}
}

// A program without namespaces gets the remedy of its container, if it is in one.
func TestAdmitsNamesTheWayOut(t *testing.T) {
	errConfined := errors.New("no mounts")
	for _, tt := range []struct {
		session engine.Session
		advice  string
	}{
		{engine.Session{}, ""},
		{engine.Session{Confined: errConfined}, "give it CAP_SYS_ADMIN, without a filter of seccomp or AppArmor"},
		{engine.Session{Confined: errConfined, Container: "lxc", ContainerRemedy: "go out"}, "it runs in a container (lxc): go out"},
	} {
		err := tt.session.Admits(target.Target{Engine: target.Native})
		var unsupported *engine.UnsupportedError
		if errors.As(err, &unsupported) != (tt.advice != "") || unsupported != nil && unsupported.Advice != tt.advice {
			t.Errorf("%+v: %v, want the advice %q", tt.session, err, tt.advice)
		}
	}
}

func TestReadPID(t *testing.T) {
	for text, want := range map[string]int{"1234": 1234, "77\n": 77, "": 0, "0": 0, "1": 0, "-5": 0, "12x": 0, "12 13": 0} {
		file := filepath.Join(t.TempDir(), "pid")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := engine.ReadPID(file)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("ReadPID of %q = %d, %v; want %d", text, got, err, want)
		}
	}
}
