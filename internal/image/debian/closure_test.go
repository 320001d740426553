package debian

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"

	"github.com/touchstone-bench/touchstone/internal/linker/linkertest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// file is an entry of a test's tree: a text with "-> " is a symbolic link, with "=> " a hard link.
type file struct{ name, content string }

func treeOf(t testing.TB, files ...file) *tree {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "tree.tar"))
	must.Do(t, err)
	t.Cleanup(func() { _ = f.Close() })
	w := tar.NewWriter(f)
	directories := map[string]bool{".": true}
	var mkdir func(string)
	mkdir = func(name string) {
		if directories[name] {
			return
		}
		mkdir(path.Dir(name))
		directories[name] = true
		must.Do(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./" + name + "/", Mode: 0o755}))
	}
	for _, e := range files {
		mkdir(path.Dir(e.name))
		h := tar.Header{Typeflag: tar.TypeReg, Name: "./" + e.name, Mode: 0o755, Size: int64(len(e.content))}
		if destination, ok := strings.CutPrefix(e.content, "-> "); ok {
			h.Typeflag, h.Linkname, h.Size, e.content = tar.TypeSymlink, destination, 0, ""
		} else if destination, ok := strings.CutPrefix(e.content, "=> "); ok {
			h.Typeflag, h.Linkname, h.Size, e.content = tar.TypeLink, "./"+destination, 0, ""
		}
		err := w.WriteHeader(&h)
		if err == nil {
			_, err = io.WriteString(w, e.content)
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	result, err := openTree(f)
	must.Do(t, err)
	return result
}

const lib = "usr/lib/x86_64-linux-gnu/"

func TestClosure(t *testing.T) {
	amd64 := func(interpreter, runpath string, libraries ...string) string {
		return linkertest.File(elf.EM_X86_64, interpreter, runpath, libraries...)
	}
	tr := treeOf(t,
		file{"usr/bin/program", amd64("/lib64/ld.so.2", "", "libdirect.so.1", "libc.so.6")},
		file{"usr/bin/alias", "-> /etc/alternatives/alias"},
		file{"etc/alternatives/alias", "-> ../../bin/program"},
		file{"usr/bin/plugged", amd64("/lib64/ld.so.2", "$ORIGIN/../lib/private:/usr/lib/none", "libprivate.so")},
		file{"usr/lib/private/libprivate.so", amd64("", "", "libc.so.6")},
		file{"usr/bin/script", "#! /bin/sh -e\nexec program\n"},
		file{"usr/bin/perl-script", "#!/usr/bin/interpreter\n"},
		file{"usr/bin/interpreter", amd64("/lib64/ld.so.2", "")},
		file{"usr/bin/second-name", "=> usr/bin/interpreter"},
		file{"usr/lib64/ld.so.2", "-> ../lib/x86_64-linux-gnu/ld.so.2"},
		file{lib + "ld.so.2", amd64("", "")},
		file{lib + "libc.so.6", amd64("", "", "ld.so.2")},
		file{lib + "libdirect.so.1", "-> libdirect.so.1.2.3"},
		file{lib + "libdirect.so.1.2.3", amd64("", "", "libindirect.so", "libcycle.so")},
		file{lib + "libindirect.so", amd64("", "", "libc.so.6")},
		file{lib + "libcycle.so", amd64("", "", "libdirect.so.1")},
		file{"usr/share/data", "data"}, file{"usr/share/empty", ""},
		file{"usr/bin/unused", amd64("/lib64/ld.so.2", "", "libunused.so")},
		file{"usr/bin/lacking", amd64("", "", "libmissing.so.7")},
		file{"usr/bin/foreign", linkertest.File(elf.EM_AARCH64, "", "")},
		file{"usr/bin/broken", "\x7fELF and no more"},
		file{"usr/bin/round", "-> round-about"}, file{"usr/bin/round-about", "-> round"},
		file{"usr/bin/dangling", "-> nothing"},
	)
	program := []string{
		"usr/bin/program", "usr/lib64/ld.so.2", lib + "ld.so.2", lib + "libc.so.6", lib + "libcycle.so", lib + "libdirect.so.1", lib + "libdirect.so.1.2.3", lib + "libindirect.so",
	}
	linker := []string{"usr/lib64/ld.so.2", lib + "ld.so.2"}
	tests := []struct {
		add  string
		want []string
		err  string
	}{
		{"/usr/bin/program", program, ""},
		{"/bin/program", program, ""},
		{"/usr/bin/alias", append([]string{"etc/alternatives/alias", "usr/bin/alias"}, program...), ""},
		{"/usr/bin/plugged", append([]string{"usr/bin/plugged", "usr/lib/private/libprivate.so", lib + "libc.so.6"}, linker...), ""},
		{"/usr/bin/script", []string{"usr/bin/script"}, ""},
		{"/usr/bin/perl-script", append([]string{"usr/bin/interpreter", "usr/bin/perl-script"}, linker...), ""},
		{"/usr/bin/second-name", append([]string{"usr/bin/second-name"}, linker...), ""},
		{"/usr/share/data", []string{"usr/share/data"}, ""},
		{"/usr/share/empty", []string{"usr/share/empty"}, ""},
		{"/usr/bin/lacking", nil, "/usr/bin/lacking: library libmissing.so.7: file does not exist"},
		{"/usr/bin/foreign", nil, "it is for EM_AARCH64, not for EM_X86_64"},
		{"/usr/bin/broken", nil, "/usr/bin/broken"},
		{"/usr/bin/round", nil, "too many links"},
		{"/usr/bin/dangling", nil, "file does not exist"},
		{"/usr/bin/none", nil, "/usr/bin/none: file does not exist"},
	}
	for _, test := range tests {
		t.Run(test.add, func(t *testing.T) {
			c := newClosure(tr, architectures["amd64"], "/bin/sh")
			err := c.add(test.add)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			must.Do(t, err)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, c.list()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	dir := filepath.Join(t.TempDir(), "encoder")
	argv, err := unpackProgram(tr, architectures["amd64"], "/usr/bin/plugged", dir)
	if err == nil {
		t.Errorf("it has no dynamic linker of a known name, and is called by %q", argv)
	}
	for _, name := range []string{"plugged", "libprivate.so", "libc.so.6", "ld.so.2"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func debOf(t testing.TB, compression string, control ...file) string {
	t.Helper()
	var buffer bytes.Buffer
	var compressed io.WriteCloser
	switch compression {
	case ".xz":
		w, err := xz.NewWriter(&buffer)
		must.Do(t, err)
		compressed = w
	default:
		compressed = nopCloser{&buffer}
	}
	w := tar.NewWriter(compressed)
	for _, f := range control {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "./" + f.name, Mode: 0o644, Size: int64(len(f.content))})
		if err == nil {
			_, err = io.WriteString(w, f.content)
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close(), compressed.Close())
	member := func(name, content string) string {
		padding := ""
		if len(content)%2 == 1 {
			padding = "\n"
		}
		return fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n%s%s", name, 0, 0, 0, "100644", len(content), content, padding)
	}
	return "!<arch>\n" + member("debian-binary", "2.0\n") + member("odd", "x") + member("control.tar"+compression, buffer.String()) + member("data.tar.xz", "no matter")
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func section(content string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(content), 0, int64(len(content)))
}

func TestReadDeb(t *testing.T) {
	control := file{"control", "Package: fio\nSource: fio (3.39)\nVersion: 3.39-1+b2\nDescription: flexible\n Version: 7 of it\n"}
	for _, compression := range []string{".xz", ""} {
		content := debOf(t, compression, control,
			file{"md5sums", strings.Repeat("0", 32) + "  usr/bin/fio\n" + strings.Repeat("1", 32) + "  lib/udev rules/x\n"},
			file{"conffiles", "/etc/fio.conf\nremove-on-upgrade /etc/old.conf\n"})
		got, err := readDeb(section(content))
		must.Do(t, err)
		hash := sha256.Sum256([]byte(content))
		want := &deb{
			Package: Package{Name: "fio", Version: "3.39-1+b2", SHA256: hex.EncodeToString(hash[:]), Size: int64(len(content))},
			source:  "fio", files: []string{"usr/bin/fio", "usr/lib/udev rules/x", "etc/fio.conf"},
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(deb{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", compression, diff)
		}
	}
	good := debOf(t, "", control)
	for name, content := range map[string]string{
		"empty": "", "no package": strings.Repeat("x", 200), "cut off in the head": good[:30], "cut off in the control archive": good[:280],
		"no control": "!<arch>\n", "a negative size": strings.Replace(good, fmt.Sprintf("%-10d`", 4), fmt.Sprintf("%-10d`", -1), 1),
		"unknown compression": strings.Replace(good, "control.tar ", "control.tar.z", 1), "no name": debOf(t, "", file{"control", "Version: 1\n"}),
		"no list": debOf(t, "", control, file{"md5sums", "what?\n"}),
	} {
		if got, err := readDeb(section(content)); err == nil {
			t.Errorf("%s: %+v, want an error", name, got)
		}
	}
}

func FuzzReadDeb(f *testing.F) {
	for _, compression := range []string{".xz", ""} {
		f.Add(debOf(f, compression, file{"control", "Package: fio\nVersion: 3.39-1\n"}, file{"md5sums", strings.Repeat("0", 32) + "  usr/bin/fio\n"}))
	}
	f.Fuzz(func(t *testing.T, content string) {
		if d, err := readDeb(section(content)); err == nil && (!isName(d.Name) || !isVersion(d.Version)) {
			t.Errorf("%+v is no package", d)
		}
	})
}

func TestCompare(t *testing.T) {
	lock, err := ParseLock(lockOf("fio 3.39-1 "+sum+" 5", "sysbench 1.0 "+sum+" 6"))
	must.Do(t, err)
	fio, sysbench := lock.Packages[0], lock.Packages[1]
	variant := func(p Package, edit func(*Package)) *deb {
		edit(&p)
		return &deb{Package: p}
	}
	noChange := func(*Package) {}
	must.Do(t, lock.compare([]*deb{variant(sysbench, noChange), variant(fio, noChange)}))
	for want, debs := range map[string][]*deb{
		"package sysbench 1.0 was not fetched":               {variant(fio, noChange)},
		"package gcc 12 was fetched too":                     {variant(fio, noChange), variant(sysbench, noChange), {Package: Package{Name: "gcc", Version: "12"}}},
		"package fio has the version 3.40 instead of 3.39-1": {variant(fio, func(p *Package) { p.Version = "3.40" }), variant(sysbench, noChange)},
		"package fio 3.39-1 has the checksum " + sum[1:]:     {variant(fio, func(p *Package) { p.SHA256 = sum[1:] }), variant(sysbench, noChange)},
		"and 7 bytes instead of " + sum + " and 6":           {variant(fio, noChange), variant(sysbench, func(p *Package) { p.Size = 7 })},
	} {
		if err := lock.compare(debs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

func TestReleaseDate(t *testing.T) {
	const list = "var/lib/apt/lists/deb.debian.org_debian_dists_trixie_"
	date, err := releaseDate(treeOf(t, file{list + "main_binary-amd64_Packages", "Date: no"}, file{list + "InRelease", "Suite: stable\nDate: Sat, 12 Sep 2026 07:55:41 UTC\n"}))
	if err != nil || date.Format("2006-01-02T15:04:05Z07:00") != "2026-09-12T07:55:41Z" {
		t.Errorf("%v, %v", date, err)
	}
	for _, text := range []string{"", "Date: yesterday\n"} {
		if date, err := releaseDate(treeOf(t, file{list + "InRelease", text})); err == nil {
			t.Errorf("%q gives %v", text, date)
		}
	}
}

func TestOpenTreeRefuses(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	must.Do(t, err)
	_, err = io.WriteString(f, strings.Repeat("x", 1024))
	must.Do(t, err)
	if _, err := openTree(f); err == nil || !strings.Contains(err.Error(), "read the archive of packages") {
		t.Errorf("no archive: %v", err)
	}
	must.Do(t, f.Close())
	if _, err := treeOf(t, file{"a", "content"}).read("a", 3); err == nil {
		t.Error("a file that is too large is read")
	}
	if _, err := treeOf(t, file{"a", "-> b"}).open("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link is opened: %v", err)
	}
}
