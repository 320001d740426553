package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// TestOpenVersion3 opens a database of file version 3, which an earlier touchstone wrote. Its runs equal the runs of the export
// that the same touchstone made.
func TestOpenVersion3(t *testing.T) {
	const folder = "../result/testdata/v1/"
	old, err := os.ReadFile(folder + "results.sqlite")
	must(t, err)
	f, err := os.Open(folder + "export.json")
	must(t, err)
	defer func() { must(t, f.Close()) }()
	want, err := result.Decode(f)
	must(t, err)
	path := filepath.Join(t.TempDir(), "touchstone.db")
	must(t, os.WriteFile(path, old, 0o600))
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct {
		name string
		open func(context.Context, string) (*store.Store, error)
	}{{"read only", store.OpenReadOnly}, {"writable", store.Open}, {"upgraded", store.OpenReadOnly}} {
		s, err := c.open(t.Context(), path)
		must(t, err)
		for i := range want.Runs {
			got, err := s.Run(t.Context(), want.Runs[i].ID)
			must(t, err)
			if diff := cmp.Diff(want.Runs[i], got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: run %s differs from the export (-export +database):\n%s", c.name, got.ID, diff)
			}
		}
		must(t, s.Check(t.Context()))
		// A process that is killed now leaves no file.
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("%s: the temporary folder holds %v: %v", c.name, left, err)
		}
		closeStore(t, s)
		if now, err := os.ReadFile(path); c.name == "read only" && (err != nil || string(now) != string(old)) {
			t.Errorf("a reader changed the file: %v", err)
		}
	}
}

// TestUpgradedCopyRefusesToWrite checks that no write is lost in the copy of an older file.
func TestUpgradedCopyRefusesToWrite(t *testing.T) {
	old, err := os.ReadFile("../result/testdata/v1/results.sqlite")
	must(t, err)
	path := filepath.Join(t.TempDir(), "touchstone.db")
	must(t, os.WriteFile(path, old, 0o600))
	s, err := store.OpenReadOnly(t.Context(), path)
	must(t, err)
	defer closeStore(t, s)
	if err := s.Create(t.Context(), emptyRun("a", 0)); err == nil {
		t.Error("Create writes to the copy")
	}
}
