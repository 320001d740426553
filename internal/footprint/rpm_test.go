package footprint_test

import (
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/footprint"
)

// rpmHost is a host with seven packages of a CBL-Mariner 2.0, and some of their files.
func rpmHost(t *testing.T) (root, database string) {
	t.Helper()
	root = unpack(t, "-- usr/lib/libelf-0.185.so --\n123456789\n-- usr/lib/libz.so.1.2.11 --\n1234\n-- usr/lib/libnpth.so.0.1.2 --\n12\n", nil)
	in, err := os.Open("testdata/rpmdb.sqlite.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it is only read from
	packed, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	database = filepath.Join(root, "var/lib/rpm/rpmdb.sqlite")
	content, err := io.ReadAll(packed)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(database), 0o700), os.WriteFile(database, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	return root, database
}

func TestRPM(t *testing.T) {
	root, _ := rpmHost(t)
	host := footprint.NewHost(root, t.TempDir())
	f, err := host.Of([]string{"/usr/lib/libelf-0.185.so"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"elfutils-libelf", "filesystem", "glibc", "zlib"}; !slices.Equal(names(f.Packages, all), want) {
		t.Errorf("the packages are %q, want %q", names(f.Packages, all), want)
	}
	// bzip2-libs and others need glibc, and nothing else needs zlib.
	if want := []string{"elfutils-libelf", "zlib"}; !slices.Equal(names(f.Packages, added), want) {
		t.Errorf("it adds %q, want %q", names(f.Packages, added), want)
	}
	if f.Manager != "rpm" || f.Recommended != nil || f.Minimal.Bytes != 10+5 || f.Added.Bytes != 10+5 {
		t.Errorf("the footprint is %+v", f)
	}
	f, err = host.Of([]string{"/usr/lib/libnpth.so.0.1.2"})
	if err != nil || !slices.Contains(f.Notes, "dependencies that are not installed, and count nothing: /bin/sh") {
		t.Errorf("the notes are %q, %v", f.Notes, err)
	}
}

// A database in use has a lock and a write-ahead log. The footprint is of the last committed state, and the host's files stay as they
// are.
func TestRPMInUse(t *testing.T) {
	root, database := rpmHost(t)
	db, err := sql.Open("sqlite", database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA journal_mode=WAL", "DELETE FROM Packages WHERE hnum = (SELECT max(hnum) FROM Packages)", "BEGIN EXCLUSIVE", "DELETE FROM Packages"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	before := filesOf(t, filepath.Dir(database))
	f, err := footprint.NewHost(root, t.TempDir()).Of([]string{"/usr/lib/libelf-0.185.so"})
	if err != nil || f.Manager != "rpm" || f.Minimal.Bytes == 0 {
		t.Errorf("the footprint is %+v, %v", f, err)
	}
	if after := filesOf(t, filepath.Dir(database)); !maps.Equal(before, after) {
		t.Errorf("the files of the database changed from %v to %v", before, after)
	}
}

// filesOf returns the sizes and times of the files in a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = fmt.Sprint(info.Size(), info.ModTime())
	}
	return files
}

// A file that is cut off, or is no database, is an error with the name of the database.
func TestBrokenRPM(t *testing.T) {
	for _, size := range []int64{4096, 16, 0} {
		root, database := rpmHost(t)
		if err := os.Truncate(database, size); err != nil {
			t.Fatal(err)
		}
		_, err := footprint.NewHost(root, t.TempDir()).Of([]string{"/usr/lib/libelf-0.185.so"})
		var unreadable *footprint.UnreadableError
		if !errors.As(err, &unreadable) || unreadable.Manager != "rpm" || !strings.Contains(err.Error(), "rpmdb.sqlite") {
			t.Errorf("after %d bytes the error is %v", size, err)
		}
	}
}
