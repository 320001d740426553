package supply

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestSpace(t *testing.T) {
	free, total, err := Space(t.TempDir())
	if err != nil || free <= 0 || total < free {
		t.Errorf("Space = %d of %d, %v", free, total, err)
	}
	if _, _, err := Space("/no/such/directory"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Space of a missing directory: %v", err)
	}
}

func TestAvailable(t *testing.T) {
	free, total, err := Memory(rootWith(t, "proc/meminfo", "MemTotal: 8 kB\nMemFree: 2 kB\nMemAvailable:    3 kB\n"))
	if free != 3<<10 || total != 8<<10 || err != nil {
		t.Errorf("Available = %d of %d, %v, want 3 of 8 KiB", free, total, err)
	}
	for _, text := range []string{"", "MemFree: 2 kB\n", "MemAvailable: much\n"} {
		if free, _, err := Memory(rootWith(t, "proc/meminfo", text)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Available of %q = %d, %v", text, free, err)
		}
	}
}

func TestMeminfo(t *testing.T) {
	got, err := Meminfo(rootWith(t, "proc/meminfo", "MemTotal: 8 kB\nHugePages_Total: 3\nnonsense\n"))
	if err != nil || len(got) != 2 || got["MemTotal"] != 8<<10 || got["HugePages_Total"] != 3 {
		t.Errorf("Meminfo = %v, %v", got, err)
	}
	root := rootWith(t, "proc/meminfo", "MemFree: 8 kB\n")
	zones := "Node 0, zone   Normal\n  pages free     5508\n  pagesets\n    cpu: 0\n              count:    34\n              high:     1444\n    cpu: 1\n              count:    15\n"
	hosttest.Write(t, root, hosttest.Files{"proc/zoneinfo": zones})
	if got, err := Meminfo(root); err != nil || len(got) != 1 || got["MemFree"] != 8<<10+49*int64(os.Getpagesize()) {
		t.Errorf("Meminfo with free pages in lists = %v, %v", got, err)
	}
	if got, err := Meminfo(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Meminfo without the file = %v, %v", got, err)
	}
}

// The count needs no process directory, which hidepid hides from ordinary users.
func TestTasks(t *testing.T) {
	const pidMax, threadsMax, load = "proc/sys/kernel/pid_max", "proc/sys/kernel/threads-max", "proc/loadavg"
	for _, tt := range []struct {
		name        string
		files       map[string]string
		free, total int64
		missing     bool
	}{
		{"fewer IDs", map[string]string{pidMax: "32768\n", threadsMax: "192730\n", load: "0.10 0.20 0.30 1/768 4711\n"}, 32_000, 32_768, false},
		{"fewer threads", map[string]string{pidMax: "4194304\n", threadsMax: "7000\n", load: "0.10 0.20 0.30 1/8000 4711\n"}, 0, 7000, false},
		{"nothing in /proc", nil, 0, 0, true},
		{"no load", map[string]string{pidMax: "32768\n", threadsMax: "192730\n"}, 0, 0, true},
		{"no limit", map[string]string{pidMax: "32768\n", load: "0.10 0.20 0.30 1/768 4711\n"}, 0, 0, true},
	} {
		root := t.TempDir()
		hosttest.Write(t, root, tt.files)
		free, total, err := Tasks(root)
		if errors.Is(err, fs.ErrNotExist) != tt.missing || !tt.missing && (free != tt.free || total != tt.total) {
			t.Errorf("%s: Tasks = %d of %d, %v; want %d of %d", tt.name, free, total, err, tt.free, tt.total)
		}
	}
}

func TestFiles(t *testing.T) {
	start, total, err := Files()
	if err != nil || total <= start {
		t.Fatalf("Files = %d of %d, %v", start, total, err)
	}
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer func() { _, _ = r.Close(), w.Close() }()
	if rest, _, err := Files(); err != nil || rest != start-2 {
		t.Errorf("with a pipe: Files = %d, %v, want %d", rest, err, start-2)
	}
}

func rootWith(t *testing.T, file, text string) (root string) {
	t.Helper()
	root = t.TempDir()
	hosttest.Write(t, root, hosttest.Files{file: text})
	return root
}

func TestCachesAreDropped(t *testing.T) {
	root := rootWith(t, "proc/sys/vm/drop_caches", "")
	caches := NewCaches(root)
	must.Do(t, errors.Join(caches.Check(), caches.Drop(t.Context())))
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
	reason := errors.New("the trial is over")
	cancel(reason)
	if err := NewCaches(rootWith(t, "proc/sys/vm/drop_caches", "")).Drop(ctx); !errors.Is(err, reason) {
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
