package cri

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// awaitFile returns for a file that exists, for one that is made, and when its context ends.
func TestAwaitFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "id")
	done := make(chan error, 1)
	go func() { done <- awaitFile(t.Context(), file) }()
	for _, name := range []string{"other", "id"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("Exited"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("a file that is made: %v", err)
	}
	if err := awaitFile(t.Context(), file); err != nil {
		t.Errorf("a file that exists: %v", err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { done <- awaitFile(ctx, filepath.Join(dir, "never")) }()
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("after the end of the context: %v, want %v", err, why)
	}
	if err := awaitFile(t.Context(), filepath.Join(dir, "no/such")); err == nil {
		t.Error("a directory that does not exist is no error")
	}
}
