package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// trialStorage implements bench.Storage.
type trialStorage struct{ *trial }

func (t trialStorage) Scratch(m bench.Medium) (string, error) {
	parent := t.r.Data
	if m == bench.Memory {
		parent = t.r.Memory
	}
	if parent == "" {
		return "", &engine.UnsupportedError{What: "a directory in memory", Reason: "this host has no file system in memory at /run or /dev/shm"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scratch == nil {
		t.scratch = map[bench.Medium]string{}
	}
	t.scratch[m] = filepath.Join(parent, t.name)
	if err := os.MkdirAll(t.scratch[m], 0o700); err != nil {
		return "", fmt.Errorf("make a directory for the trial: %w", err)
	}
	dir, err := os.MkdirTemp(t.scratch[m], "")
	if err != nil {
		return "", fmt.Errorf("make a directory for the trial: %w", err)
	}
	return dir, nil
}

func (t trialStorage) DropCaches(ctx context.Context) error {
	if err := t.engine.Supports(engine.OnMachine); err != nil {
		return err
	}
	if t.r.DropCaches == nil {
		return &engine.UnsupportedError{
			What: "a cold page cache", Reason: "the page cache belongs to the whole host, and dropping it was not allowed",
			Advice: "allow it with --drop-caches, or measure with cache=warm",
		}
	}
	return t.bounded(ctx, "dropping the page cache", t.r.DropCaches)
}
