package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// rootWith makes a root directory with one file.
func rootWith(t *testing.T, file, text string) (root string) {
	t.Helper()
	root = t.TempDir()
	write(t, root, files{file: text})
	return root
}

func TestCachesAreDropped(t *testing.T) {
	root := rootWith(t, "proc/sys/vm/drop_caches", "")
	caches := NewCaches(root)
	if err := errors.Join(caches.Check(), caches.Drop(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(root, "proc/sys/vm/drop_caches")); string(got) != "3\n" || err != nil {
		t.Errorf("Drop wrote %q, %v", got, err)
	}
}

func TestDropFails(t *testing.T) {
	root := t.TempDir()
	caches := NewCaches(root)
	for name, err := range map[string]error{"Check": caches.Check(), "Drop": caches.Drop(t.Context())} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s without the kernel's file: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(root); len(entries) > 0 || err != nil {
		t.Errorf("Drop created %v, %v", entries, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("the trial is over")
	cancel(ended)
	if err := NewCaches(rootWith(t, "proc/sys/vm/drop_caches", "")).Drop(ctx); !errors.Is(err, ended) {
		t.Errorf("Drop with an ended context: %v", err)
	}
}

func TestOOMKills(t *testing.T) {
	for text, want := range map[string]int64{"nr_free_pages 1\noom_kill 12\nswap_ra 0\n": 12, "oom_kill 0\n": 0} {
		if got, err := OOMKills(rootWith(t, "proc/vmstat", text)); got != want || err != nil {
			t.Errorf("OOMKills of %q = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "oom_killer 3\n", "oom_kill\n"} {
		if _, err := OOMKills(rootWith(t, "proc/vmstat", text)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("OOMKills of %q: %v", text, err)
		}
	}
	if _, err := OOMKills(rootWith(t, "proc/vmstat", "oom_kill many\n")); err == nil {
		t.Error("OOMKills accepts a malformed number")
	}
}
