package cli_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// TestInterruptedImport: an interrupt ends import while it reads from an idle pipe.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	p := start(t, dir, "import", "pipe", "missing.json")
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when import has opened the other end
	must.Do(t, err)
	defer func() {
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	}()
	p.signal(syscall.SIGINT)
	p.ends(130)
	p.says(`^touchstone: import pipe: interrupted$`)
	if _, err := os.Stat(filepath.Join(dir, "out")); !os.IsNotExist(err) {
		t.Error("an interrupted import has created the folder")
	}
}

// TestLargeImport: import refuses a file above the limit without reading it. The file is sparse, and larger than the memory that the
// program may have.
func TestLargeImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "huge.json")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	must.Do(t, os.Truncate(file, result.MaxDocument+1))
	p := startSmall(t, dir, "import", "huge.json")
	p.ends(1)
	p.says(`^touchstone: import huge.json: read result document: it is larger than 4096 MiB; export fewer runs into one file$`)
}
