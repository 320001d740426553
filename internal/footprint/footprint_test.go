package footprint_test

import (
	"compress/gzip"
	"database/sql"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/linker/linkertest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// debian is a small host with dpkg and a merged /usr. The size of each file is the length of its text with the line end.
const debian = `
-- var/lib/dpkg/status --
Package: dpkg
Essential: yes
Status: install ok installed
Priority: required
Installed-Size: 3
Architecture: amd64
Version: 1.21
Pre-Depends: libc (>= 2)

Package: libc
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9
Depends: libgcc

Package: libgcc
Status: install ok installed
Architecture: amd64
Version: 12
Depends: libc (>= 2.35), gcc-base (= 12)

Package: gcc-base
Status: install ok installed
Architecture: amd64
Version: 12

Package: engine
Status: install ok installed
Installed-Size: 9
Architecture: amd64
Version: 1:4.0~rc1-1
Depends: libc, runtime (>= 2) | other-runtime,
 conmon:any, netlink
Recommends: extra | tini, shown (>= 3), gone
Conflicts: nothing

Package: runtime
Status: install ok installed
Architecture: amd64
Version: 1.0
Depends: libc, yajl

Package: newer
Status: install ok installed
Architecture: all
Version: 5
Provides: other-runtime, conmon (= 2.1)
Depends: libc

Package: yajl
Status: install ok installed
Architecture: amd64
Version: 2
Depends: libc

Package: links
Status: install ok installed
Architecture: amd64
Version: 1
Provides: netlink

Package: firewall
Status: install ok installed
Architecture: amd64
Version: 1
Depends: links

Package: tini
Status: deinstall ok config-files
Architecture: amd64
Version: 1

-- var/lib/dpkg/diversions --
/usr/bin/engine
/usr/bin/engine.real
firewall
-- var/lib/dpkg/info/dpkg.list --
/.
/usr/bin/dpkg
-- var/lib/dpkg/info/libc:amd64.list --
/lib/libc.so.6
-- var/lib/dpkg/info/libgcc.list --
/lib/libgcc.so
-- var/lib/dpkg/info/gcc-base.list --
/usr/share/doc/gcc-base/missing
-- var/lib/dpkg/info/engine.list --
/usr
/usr/bin
/usr/bin/engine
/usr/share/doc/engine/README
-- var/lib/dpkg/info/runtime.list --
/bin/runtime
-- var/lib/dpkg/info/newer.list --
/usr/sbin/newer
-- var/lib/dpkg/info/yajl.list --
/lib/libyajl.so
-- var/lib/dpkg/info/links.list --
/usr/lib/libnetlink.so
-- var/lib/dpkg/info/firewall.list --
/usr/bin/engine
-- var/lib/apt/lists/mirror_dists_x_main_binary-amd64_Packages --
Package: extra
Architecture: amd64
Version: 1
Installed-Size: 100
Depends: deeper

Package: extra
Architecture: amd64
Version: 1~old
Installed-Size: 7

Package: deeper
Architecture: all
Version: 1
Installed-Size: 10
Depends: libc (>= 99)

Package: shown
Architecture: amd64
Version: 2
Installed-Size: 1000

-- usr/bin/dpkg --
123
-- usr/bin/engine --
a wrapper
-- usr/bin/engine.real --
1234567890123456789
-- usr/bin/runtime --
123456789
-- usr/sbin/newer --
1234
-- usr/lib/libc.so.6 --
1234567890123456789012345678901234567890123456789
-- usr/lib/libgcc.so --
12345
-- usr/lib/libyajl.so --
1234567
-- usr/lib/libnetlink.so --
12
`

// unpack writes an archive to a directory, with the links of a merged /usr where it has no such directories. An edit changes the text of a file; an empty text
// removes the file.
func unpack(t *testing.T, archive string, edits map[string]string) string {
	t.Helper()
	root := t.TempDir()
	must.Do(t, txtar.Write(txtar.Parse([]byte(archive)), root))
	for name, text := range edits {
		file := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if text == "" {
			err = errors.Join(err, os.Remove(file))
		} else {
			err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600))
		}
		must.Do(t, err)
	}
	for _, dir := range []string{"bin", "sbin", "lib"} {
		if err := os.Symlink("usr/"+dir, filepath.Join(root, dir)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	return root
}

func names(packages []footprint.Package, keep func(footprint.Package) bool) []string {
	var list []string
	for _, p := range packages {
		if keep(p) {
			list = append(list, p.Name)
		}
	}
	slices.Sort(list)
	return list
}

func added(p footprint.Package) bool { return p.Added }
func own(p footprint.Package) bool   { return p.Own }
func all(footprint.Package) bool     { return true }
func sum(bytes int64, packages, files int) footprint.Sum {
	return footprint.Sum{Bytes: bytes, Packages: packages, Files: files}
}

// The sums were added up by hand from the texts above.
func TestDebian(t *testing.T) {
	for _, tt := range []struct {
		name               string
		programs           []string
		edits              map[string]string
		minimal, addedSum  footprint.Sum
		recommended        footprint.Sum
		packages, own, new []string
	}{
		{
			name: "a runtime in a package, by its path without the merged /usr", programs: []string{"/bin/runtime"},
			minimal: sum(10+50+6+8, 5, 4), addedSum: sum(10+8, 2, 2), recommended: sum(10+50+6+8, 5, 4),
			packages: []string{"gcc-base", "libc", "libgcc", "runtime", "yajl"}, own: []string{"runtime"}, new: []string{"runtime", "yajl"},
		},
		{
			// runtime 1.0 is older than 2, so the alternative is newer, which provides it. The file of engine was diverted by
			// firewall. firewall needs links without the engine.
			name: "an engine with alternatives, virtual packages, a version and a diversion", programs: []string{"/usr/bin/engine.real", "/sbin/newer"},
			minimal: sum(20+5+50+6+3, 6, 5), addedSum: sum(20+5, 2, 2),
			// extra has 100 KiB and deeper 10; gone and shown 3 are unknown: shown 2 counts in its place.
			recommended: sum(20+5+50+6+3+(100+10+1000)<<10, 9, 5),
			packages:    []string{"engine", "gcc-base", "libc", "libgcc", "links", "newer"}, own: []string{"engine", "newer"}, new: []string{"engine", "newer"},
		},
		{
			name: "a missing list of files", programs: []string{"/usr/bin/engine.real", "/sbin/newer"},
			edits: map[string]string{"var/lib/dpkg/info/libgcc.list": "", "var/lib/dpkg/info/links.list": ""},
			// Neither package declares a size.
			minimal: sum(20+5+50, 6, 3), addedSum: sum(20+5, 2, 2), recommended: sum(20+5+50+(100+10+1000)<<10, 9, 3),
			packages: []string{"engine", "gcc-base", "libc", "libgcc", "links", "newer"}, own: []string{"engine", "newer"}, new: []string{"engine", "newer"},
		},
		{
			name: "a static program outside of packages", programs: []string{"/opt/static"}, edits: map[string]string{"opt/static": "12345678"},
			minimal: sum(8, 0, 1), addedSum: sum(8, 0, 1), recommended: sum(8, 0, 1),
		},
		{
			name: "a script outside of packages", programs: []string{"/opt/script"}, edits: map[string]string{"opt/script": "#!/bin/runtime -x\n"},
			// Other packages do not need runtime and yajl, but the program is the script alone.
			minimal: sum(18+10+50+6+8, 5, 5), addedSum: sum(18+10+8, 2, 3), recommended: sum(18+10+50+6+8, 5, 5),
			packages: []string{"gcc-base", "libc", "libgcc", "runtime", "yajl"}, new: []string{"runtime", "yajl"},
		},
		{name: "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := footprint.NewHost(unpack(t, debian, tt.edits), t.TempDir()).Of(tt.programs)
			must.Do(t, err)
			if f.Minimal != tt.minimal || f.Added != tt.addedSum {
				t.Errorf("minimal %+v, added %+v; want %+v, %+v", f.Minimal, f.Added, tt.minimal, tt.addedSum)
			}
			if tt.programs != nil && *f.Recommended != tt.recommended {
				t.Errorf("recommended %+v, want %+v", *f.Recommended, tt.recommended)
			}
			for what, pair := range map[string][2][]string{
				"packages": {names(f.Packages, all), tt.packages}, "own": {names(f.Packages, own), tt.own}, "added": {names(f.Packages, added), tt.new},
			} {
				expect.Equal(t, what, pair[1], pair[0], cmpopts.EquateEmpty())
			}
		})
	}
}

func TestNotesOfDebian(t *testing.T) {
	host := footprint.NewHost(unpack(t, debian, map[string]string{"var/lib/dpkg/info/links.list": "", "var/lib/dpkg/info/libgcc.list": ""}), t.TempDir())
	f, err := host.Of([]string{"/usr/bin/engine.real"})
	must.Do(t, err)
	want := []string{
		"recommended packages that are neither installed nor in an index, and count nothing: gone",
		"with the recommended packages, 3 count with their size in the index",
		"the lists of files are missing, so the sizes are the packages' own estimates: libgcc, links",
	}
	expect.Equal(t, "notes", want, f.Notes)
}

// A database that is being changed or that is damaged gives no numbers.
//
// Invariant whole-database: A footprint comes from a whole database; a broken one skips the trial with the reason.
func TestUnreadableDatabases(t *testing.T) {
	status := func(change func(string) string) map[string]string {
		for _, f := range txtar.Parse([]byte(debian)).Files {
			if f.Name == "var/lib/dpkg/status" {
				return map[string]string{f.Name: change(string(f.Data))}
			}
		}
		return nil
	}
	for name, tt := range map[string]struct {
		edits map[string]string
		want  string
	}{
		"dpkg is at work":      {map[string]string{"var/lib/dpkg/updates/0001": "x"}, "dpkg is at work or was interrupted"},
		"cut off in a line":    {status(func(s string) string { return s[:len(s)-40] }), "the database is cut off"},
		"cut off in a package": {status(func(s string) string { return s + "Package: last\n" }), `the status "" of package "last" has no three words`},
		"no field":             {status(func(s string) string { return "\x00\x01garbage\n" + s }), "line 1 is neither a field nor its continuation"},
		"a bad size":           {status(func(s string) string { return strings.Replace(s, "Installed-Size: 9", "Installed-Size: -9", 1) }), `the size "-9" of package engine`},
		"no version":           {status(func(s string) string { return strings.Replace(s, "Version: 1.0\n", "", 1) }), "has no name, version or architecture"},
		"half a diversion":     {map[string]string{"var/lib/dpkg/diversions": "/a\n/b\n"}, "it has 2 lines, and an entry has three"},
		"a damaged index":      {map[string]string{"var/lib/apt/lists/x_Packages.lz4": "no lz4"}, "x_Packages.lz4"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := footprint.NewHost(unpack(t, debian, tt.edits), t.TempDir()).Of([]string{"/bin/runtime"})
			var unreadable *footprint.UnreadableError
			if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), tt.want) || unreadable.Advice == "" {
				t.Errorf("the error is %v, want one with %q", err, tt.want)
			}
		})
	}
}

const alpine = `
-- lib/apk/db/installed --
P:musl
V:1.2.5-r0
I:600
p:so:libc.musl-x86_64.so.1=1
F:lib
R:ld-musl-x86_64.so.1
a:0:0:755

P:busybox
V:1.36
I:800
D:so:libc.musl-x86_64.so.1
p:cmd:sh=1.36 /bin/sh
F:usr/bin
R:busybox

P:crun
V:1.20-r0
I:500
D:so:libc.musl-x86_64.so.1 so:libyajl.so.2 yajl>=2 /bin/sh !podman /usr/share/crun.lua
F:usr/bin
R:crun
F:
R:top

P:yajl
V:2.1.0-r9
I:70
D:crun
p:so:libyajl.so.2=2.1
F:usr/lib
R:libyajl.so.2
F:usr/share
R:crun.lua

-- usr/bin/busybox --
1234
-- usr/bin/crun --
123456789
-- top --
1
-- usr/lib/libyajl.so.2 --
12
-- usr/share/crun.lua --
123
`

// The files of musl are missing on this host. crun and yajl need each other.
func TestAlpine(t *testing.T) {
	f, err := footprint.NewHost(unpack(t, alpine, nil), t.TempDir()).Of([]string{"/usr/bin/crun"})
	must.Do(t, err)
	want := footprint.Footprint{
		Manager: "apk", Programs: sum(10, 0, 1), Minimal: sum(12+7+5, 4, 5), Added: sum(12+7, 2, 4), Recommended: new(sum(12+7+5, 4, 5)),
		Packages: []footprint.Package{
			{Name: "crun", Version: "1.20-r0", Bytes: 12, Files: 2, Own: true, Added: true},
			{Name: "yajl", Version: "2.1.0-r9", Bytes: 7, Files: 2, Added: true},
			{Name: "busybox", Version: "1.36", Bytes: 5, Files: 1},
			{Name: "musl", Version: "1.2.5-r0"},
		},
		Notes: []string{"apk has no recommended packages: the footprint with them is the minimal one"},
	}
	expect.Equal(t, "footprint", want, f)
}

// Invariant whole-database.
func TestUnreadableAlpine(t *testing.T) {
	for name, text := range map[string]string{
		"cut off": "P:a\nV:1\n", "no field": "P:a\nnonsense\n\n", "no name": "V:1\n\n", "no directory": "P:a\nR:file\n\n", "a bad size": "P:a\nI:-1\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := footprint.NewHost(unpack(t, alpine, map[string]string{"lib/apk/db/installed": text}), t.TempDir()).Of([]string{"/usr/bin/crun"})
			var unreadable *footprint.UnreadableError
			if !errors.As(err, &unreadable) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// Without a manager of packages a program counts with its libraries.
func TestNoManager(t *testing.T) {
	f, err := footprint.NewHost(unpack(t, "-- opt/tool --\n1234\n", nil), t.TempDir()).Of([]string{"/opt/tool"})
	if err != nil || f.Manager != "" || f.Minimal != sum(5, 0, 1) || !slices.Equal(f.Unpackaged, []string{"/opt/tool"}) {
		t.Errorf("Of() = %+v, %v", f, err)
	}
}

// The size of each package of dpkg's own footprint is the sum over the files that dpkg itself lists.
func TestRealDpkg(t *testing.T) {
	program, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("needs a host with dpkg")
	}
	f, err := footprint.NewHost("/", t.TempDir()).Of([]string{program})
	must.Do(t, err)
	if f.Manager != "dpkg" || len(f.Packages) < 2 || len(f.Unpackaged) > 0 || f.Minimal.Bytes <= f.Programs.Bytes || f.Recommended.Bytes < f.Minimal.Bytes {
		t.Errorf("the footprint is %+v", f)
	}
	for _, p := range f.Packages {
		list, err := exec.CommandContext(t.Context(), program, "-L", p.Name).Output()
		must.Do(t, err)
		var bytes int64
		infos := []os.FileInfo{}
	files:
		for file := range strings.Lines(string(list)) {
			info, err := os.Lstat(strings.TrimSuffix(file, "\n"))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			for _, previous := range infos {
				if os.SameFile(info, previous) {
					continue files
				}
			}
			infos = append(infos, info)
			bytes += info.Size()
		}
		if bytes != p.Bytes {
			t.Errorf("%s has %d bytes, and dpkg lists files with %d", p.Name, p.Bytes, bytes)
		}
	}
}

// rpmHost is a host with seven packages of a CBL-Mariner 2.0, and some of their files.
func rpmHost(t *testing.T) (root, database string) {
	t.Helper()
	root = unpack(t, "-- usr/lib/libelf-0.185.so --\n123456789\n-- usr/lib/libz.so.1.2.11 --\n1234\n-- usr/lib/libnpth.so.0.1.2 --\n12\n", nil)
	in, err := os.Open("testdata/rpmdb.sqlite.gz")
	must.Do(t, err)
	defer func() { _ = in.Close() }() // it is only read from
	zip, err := gzip.NewReader(in)
	must.Do(t, err)
	database = filepath.Join(root, "var/lib/rpm/rpmdb.sqlite")
	content, err := io.ReadAll(zip)
	must.Do(t, errors.Join(err, os.MkdirAll(filepath.Dir(database), 0o700), os.WriteFile(database, content, 0o600)))
	return root, database
}

func TestRPM(t *testing.T) {
	root, _ := rpmHost(t)
	host := footprint.NewHost(root, t.TempDir())
	f, err := host.Of([]string{"/usr/lib/libelf-0.185.so"})
	must.Do(t, err)
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
	must.Do(t, err)
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
	baseline := filesOf(t, filepath.Dir(database))
	f, err := footprint.NewHost(root, t.TempDir()).Of([]string{"/usr/lib/libelf-0.185.so"})
	if err != nil || f.Manager != "rpm" || f.Minimal.Bytes == 0 {
		t.Errorf("the footprint is %+v, %v", f, err)
	}
	if state := filesOf(t, filepath.Dir(database)); !maps.Equal(baseline, state) {
		t.Errorf("the files of the database changed from %v to %v", baseline, state)
	}
}

// filesOf returns the sizes and times of the files in a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	files := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		must.Do(t, err)
		files[e.Name()] = fmt.Sprint(info.Size(), info.ModTime())
	}
	return files
}

// A file that is cut off, or is no database, is an error with the name of the database.
func TestBrokenRPM(t *testing.T) {
	for _, size := range []int64{4096, 16, 0} {
		root, database := rpmHost(t)
		must.Do(t, os.Truncate(database, size))
		_, err := footprint.NewHost(root, t.TempDir()).Of([]string{"/usr/lib/libelf-0.185.so"})
		var unreadable *footprint.UnreadableError
		if !errors.As(err, &unreadable) || unreadable.Manager != "rpm" || !strings.Contains(err.Error(), "rpmdb.sqlite") {
			t.Errorf("after %d bytes the error is %v", size, err)
		}
	}
}

const x86 = elf.EM_X86_64

// tools is a host with programs outside of packages, in the directories of a user.
func tools(t *testing.T) string {
	root := unpack(t, debian, map[string]string{
		"etc/ld.so.conf": "# ours\ninclude ld.so.conf.d/*.conf\n", "etc/ld.so.conf.d/local.conf": "/opt/lib:/opt/more\n",
		"cache/crun":                           linkertest.File(x86, "/lib64/ld.so", "$ORIGIN/../own", "libown.so", "libyajl.so", "libc.so.6"),
		"own/libown.so":                        linkertest.File(x86, "", "", "libmore.so", "libown.so"), // it needs itself
		"opt/lib/libmore.so":                   linkertest.File(elf.EM_AARCH64, "", ""),                 // for another machine
		"opt/more/libmore.so.1":                linkertest.File(x86, "", "", "libc.so.6"),
		"usr/lib/libc.so.6":                    linkertest.File(x86, "", ""),
		"usr/lib/libyajl.so":                   linkertest.File(x86, "", ""),
		"usr/lib64/ld.so":                      linkertest.File(x86, "", ""),
		"cache/debian":                         linkertest.File(x86, "", "", "libmulti.so"),
		"usr/lib/x86_64-linux-gnu/libmulti.so": linkertest.File(x86, "", "", "libc.so.6"),
		"cache/broken":                         linkertest.File(x86, "/lib64/ld.so", "", "libnone.so"),
		"cache/no-interpreter":                 linkertest.File(x86, "/lib64/none.so", ""),
		"cache/cut-off":                        linkertest.File(x86, "/lib64/ld.so", "", "libc.so.6")[:100],
		"cache/other-machine":                  linkertest.File(elf.EM_AARCH64, "", "", "libc.so.6"),
		"cache/absolute":                       linkertest.File(x86, "", "", "/opt/more/libmore.so.1"),
		"cache/empty-directory":                linkertest.File(x86, "", ":", "libc.so.6"),
		"cache/script-of-nobody":               "#!   \n",
	})
	for name, destination := range map[string]string{
		"lib64": "/usr/lib64", "opt/more/libmore.so": "libmore.so.1", "bin/tool": "/etc/alternatives/tool", "etc/alternatives/tool": "/cache/crun", "loop": "/loop",
	} {
		file := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.Symlink(destination, file))
	}
	return root
}

func TestLibraries(t *testing.T) {
	host := footprint.NewHost(tools(t), t.TempDir())
	for _, tt := range []struct {
		program              string
		unpackaged, packages []string
	}{
		{"/cache/crun", []string{"/cache/crun", "/opt/more/libmore.so.1", "/own/libown.so", "/usr/lib64/ld.so"}, []string{"gcc-base", "libc", "libgcc", "yajl"}},
		{"/usr/bin/tool", []string{"/cache/crun", "/opt/more/libmore.so.1", "/own/libown.so", "/usr/lib64/ld.so"}, []string{"gcc-base", "libc", "libgcc", "yajl"}},
		{"/cache/absolute", []string{"/cache/absolute", "/opt/more/libmore.so.1"}, []string{"gcc-base", "libc", "libgcc"}},
		{"/cache/debian", []string{"/cache/debian", "/usr/lib/x86_64-linux-gnu/libmulti.so"}, []string{"gcc-base", "libc", "libgcc"}},
		{"/cache/empty-directory", []string{"/cache/empty-directory"}, []string{"gcc-base", "libc", "libgcc"}},
	} {
		f, err := host.Of([]string{tt.program})
		if err != nil {
			t.Fatalf("%s: %v", tt.program, err)
		}
		if !slices.Equal(f.Unpackaged, tt.unpackaged) || !slices.Equal(names(f.Packages, all), tt.packages) {
			t.Errorf("%s has the files %q and the packages %q; want %q and %q", tt.program, f.Unpackaged, names(f.Packages, all), tt.unpackaged, tt.packages)
		}
		// runtime needs yajl, too.
		if surplus := names(f.Packages, added); len(surplus) > 0 {
			t.Errorf("%s adds the packages %q", tt.program, surplus)
		}
	}
}

// Invariant whole-database.
func TestUnknownLibraries(t *testing.T) {
	host := footprint.NewHost(tools(t), t.TempDir())
	for program, want := range map[string]string{
		"/cache/broken":           "/cache/broken needs the library libnone.so, which is in none of /opt/lib, /opt/more, /lib/x86_64-linux-gnu, /usr/lib/x86_64-linux-gnu, /lib,",
		"/cache/no-interpreter":   "the interpreter of /cache/no-interpreter",
		"/cache/cut-off":          "/cache/cut-off",
		"/cache/other-machine":    "needs the library libc.so.6",
		"/cache/script-of-nobody": "the name of the interpreter is missing",
		"/loop":                   "too many levels of symbolic links",
		"/cache/none":             "no such file or directory",
	} {
		if _, err := host.Of([]string{program}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of %s is %v, want one with %q", program, err, want)
		}
	}
}
