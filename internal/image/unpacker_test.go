package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// unpacked unpacks an image to a new directory, and checks that the directory "outside" beside it does not change.
func unpacked(t *testing.T, image v1.Image, limit limits) (dir string, err error) {
	t.Helper()
	parent := t.TempDir()
	neighbour := filepath.Join(parent, "outside")
	must.Do(t, os.Mkdir(neighbour, 0o700), os.WriteFile(filepath.Join(neighbour, "kept"), []byte("kept"), 0o600))
	dir = filepath.Join(parent, "rootfs")
	err = unpackImage(t.Context(), image, dir, limit)
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 2 {
		t.Errorf("the parent contains %v (%v)", entries, err)
	}
	if content, err := os.ReadFile(filepath.Join(neighbour, "kept")); err != nil || string(content) != "kept" {
		t.Errorf("outside: %q, %v", content, err)
	}
	if info, err := os.Stat(filepath.Join(neighbour, "kept")); err != nil || info.Mode() != 0o600 {
		t.Errorf("outside: %v, %v", info, err)
	}
	if entries, err := os.ReadDir(neighbour); err != nil || len(entries) != 1 {
		t.Errorf("outside contains %v (%v)", entries, err)
	}
	return dir, err
}

func TestUnpackLayers(t *testing.T) {
	date := time.Unix(1_600_000_000, 0)
	symlink := func(name, destination string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: destination}
	}
	directory := func(name string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: date}
	}
	image := made(t,
		archive(t,
			tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "git"}},
			directory("./", 0o750), directory("./usr/lib/", 0o555), regularFile("./usr/lib/library"), symlink("lib", "usr/lib"),
			tar.Header{Typeflag: tar.TypeReg, Name: "/absolute", Mode: 0o4755, ModTime: date},
			tar.Header{Typeflag: tar.TypeLink, Name: "hard", Linkname: "absolute"},
			symlink("out", "/etc/passwd"), symlink("away", "../../outside/kept"),
			regularFile("gone/file"), regularFile("emptied/old"), regularFile("emptied/below/old"), regularFile("becomes-dir"), directory("becomes-file", 0o755),
		),
		archive(t,
			regularFile(".wh.gone"), regularFile("emptied/new"), regularFile("emptied/.wh..wh..opq"),
			directory("becomes-dir", 0o1777), regularFile("becomes-dir/file"), regularFile("becomes-file"),
			regularFile("usr/lib/.wh.library"), regularFile("never/.wh.there"),
			directory("lib", 0o755), // replaces the link
		),
	)
	dir, err := unpacked(t, image, defaultLimits)
	must.Do(t, err)
	want := map[string]fs.FileMode{
		".": fs.ModeDir | 0o750, "usr": fs.ModeDir | 0o755, "usr/lib": fs.ModeDir | 0o555, "lib": fs.ModeDir | 0o755, "absolute": fs.ModeSetuid | 0o755,
		"hard": fs.ModeSetuid | 0o755, "out": fs.ModeSymlink | 0o777, "away": fs.ModeSymlink | 0o777, "emptied": fs.ModeDir | 0o755, "emptied/new": 0o644,
		"becomes-dir": fs.ModeDir | fs.ModeSticky | 0o777, "becomes-dir/file": 0o644, "becomes-file": 0o644, "never": fs.ModeDir | 0o755,
	}
	if os.Geteuid() != 0 { // the owner must be able to remove its content
		want["usr/lib"] |= 0o700
	}
	for name, got := range filesIn(t, dir) {
		if mode, ok := want[name]; !ok || mode != got.mode {
			t.Errorf("%s has mode %v, want %v", name, got.mode, mode)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
	one, err1 := os.Stat(filepath.Join(dir, "absolute"))
	two, err2 := os.Stat(filepath.Join(dir, "hard"))
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(one, two) || !one.ModTime().Equal(date) {
		t.Errorf("the hard link is another file, or has another time: %v, %v", one, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "usr/lib")); err != nil || !info.ModTime().Equal(date) {
		t.Errorf("the time of a directory: %v, %v", info, err)
	}
}

func TestUnpackLayersRefuses(t *testing.T) {
	symlink := func(name, destination string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: destination}
	}
	tests := []struct {
		name   string
		layers [][]byte
		want   string
	}{
		{"parent", [][]byte{archive(t, regularFile("../outside/new"))}, "leads out"},
		{"parent from below", [][]byte{archive(t, regularFile("a/../../outside/new"))}, "leads out"},
		{"parent after a slash", [][]byte{archive(t, regularFile("/../outside/new"))}, "leads out"},
		{"through a link", [][]byte{archive(t, symlink("a", "../outside"), regularFile("a/new"))}, "escapes"},
		{"through an absolute link", [][]byte{archive(t, symlink("a", "/tmp"), regularFile("a/new"))}, "escapes"},
		{"through a link of the layer below", [][]byte{archive(t, symlink("a", "../outside")), archive(t, regularFile("a/new"))}, "escapes"},
		{"directory through a link", [][]byte{archive(t, symlink("a", ".."), tar.Header{Typeflag: tar.TypeDir, Name: "a/new", Mode: 0o755})}, "escapes"},
		{"removal through a link", [][]byte{archive(t, symlink("a", "../outside")), archive(t, regularFile("a/.wh.kept"))}, "escapes"},
		{"emptying through a link", [][]byte{archive(t, symlink("a", "../outside")), archive(t, regularFile("a/.wh..wh..opq"))}, "escapes"},
		{"hard link outside", [][]byte{archive(t, tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "../outside/kept"})}, "leads out"},
		{"hard link through a link", [][]byte{archive(t, symlink("a", "../outside"), tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a/kept"})}, "escapes"},
		{"removal of nothing", [][]byte{archive(t, regularFile(".wh."))}, "whiteout has no name"},
		{"removal of the parent", [][]byte{archive(t, regularFile("a/.wh..."))}, "whiteout has no name"},
		{"device", [][]byte{archive(t, tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3})}, "device"},
		{"disk", [][]byte{archive(t, tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8})}, "device"},
		{"fifo", [][]byte{archive(t, tar.Header{Typeflag: tar.TypeFifo, Name: "fifo"})}, "device"},
		{"root that is a file", [][]byte{archive(t, regularFile("."))}, "root is not a directory"},
		{"too many files", [][]byte{archive(t, regularFile("1"), regularFile("2")), archive(t, regularFile("3"), regularFile("4"))}, "has too many files"},
		{"too many bytes", [][]byte{tooLarge(t)}, "has too many bytes"},
		{"cut off", [][]byte{archive(t, regularFile("file"))[:515]}, "damaged"},
		{"no archive", [][]byte{bytes.Repeat([]byte("x"), 1024)}, "damaged"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := unpacked(t, made(t, test.layers...), limits{bytes: 1 << 20, entries: 3}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// wholeDisk is a reserve that exceeds the free space of every disk.
var wholeDisk = reserve{bytes: 1 << 60, share: 2}

// Unpacking stops before the disk is full.
func TestUnpackKeepsReserve(t *testing.T) {
	for name, layer := range map[string][]byte{
		"a file": archive(t, regularFile("file")), "a directory": archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "dir", Mode: 0o755}),
	} {
		_, err := unpacked(t, made(t, layer), limits{bytes: 1 << 20, entries: 3, reserve: wholeDisk})
		if !errors.Is(err, errNoSpace) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "would stay free") {
			t.Errorf("%s: %v, want %v", name, err, errNoSpace)
		}
	}
	if _, err := stage(t.Context(), t.TempDir(), made(t, archive(t, regularFile("file"))), wholeDisk); !errors.Is(err, errNoSpace) {
		t.Errorf("Put: %v, want %v", err, errNoSpace)
	}
	// The smaller value applies: the share on a small disk, the bytes on a large one.
	for _, r := range []reserve{{1 << 60, 0}, {0, 1}} {
		if _, err := unpacked(t, made(t, archive(t, regularFile("file"))), limits{bytes: 1 << 20, entries: 3, reserve: r}); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestSpaceGuardChecksAgain(t *testing.T) {
	space := &spaceGuard{dir: t.TempDir()}
	must.Do(t, space.take(1))
	space.reserve = wholeDisk
	if err := space.take(checkInterval - 2); err != nil {
		t.Errorf("before the interval: %v", err)
	}
	if err := space.take(checkInterval); !errors.Is(err, errNoSpace) {
		t.Errorf("after the interval: %v, want %v", err, errNoSpace)
	}
}

func TestUnpackDigests(t *testing.T) {
	if _, err := unpacked(t, lyingImage{made(t, archive(t, regularFile("file")))}, defaultLimits); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
}
