package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// memoryReserve is the fraction of the available memory, one in memoryReserve, that files in memory must leave free.
const memoryReserve = 4

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
	t.scratch[m] = filepath.Join(parent, fmt.Sprintf("t%d", t.seq))
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
	if t.r.DropCaches == nil {
		return &engine.UnsupportedError{
			What: "a cold page cache", Reason: "the page cache belongs to the whole host, and dropping it was not allowed",
			Advice: "allow it with --drop-caches, or measure with cache=warm",
		}
	}
	return t.bounded(ctx, "dropping the page cache", t.r.DropCaches)
}

// room returns an *engine.UnsupportedError if there is not enough space.
func (r *run) room(need bench.Space) error {
	if r.Memory == "" {
		need.Memory = 0 // Scratch reports that the host has no such directory
	}
	for _, at := range []struct {
		dir  string
		need int64
	}{{r.Data, need.Disk}, {r.Memory, need.Memory}} {
		if at.need == 0 || r.Free == nil {
			continue
		}
		free, err := r.Free(at.dir)
		if err != nil {
			return err
		}
		if at.need > free {
			return noRoom(fmt.Sprintf("it writes up to %s, and %s has %s free", mebibytes(at.need), at.dir, mebibytes(free)), "make room there")
		}
	}
	memory := need.Memory + need.Tmpfs
	if memory == 0 || r.Available == nil {
		return nil
	}
	available, err := r.Available()
	if err != nil {
		return err
	}
	if memory > available-available/memoryReserve {
		return noRoom(fmt.Sprintf("it writes up to %s to memory; this host has %s available, and a quarter of it must stay free",
			mebibytes(memory), mebibytes(available)), "free memory")
	}
	return nil
}

func noRoom(reason, advice string) error {
	return &engine.UnsupportedError{What: "space for its files", Reason: reason, Advice: advice + ", or set smaller parameters"}
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
