package debian

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestEmbedded(t *testing.T) {
	for _, arch := range Architectures() {
		lock, err := Embedded(arch)
		must.Do(t, err)
		if lock.Arch != arch || lock.Suite != Suite || lock.Date.Year() < 2025 {
			t.Errorf("the lock for %s is for %s of %s, of %v", arch, lock.Suite, lock.Arch, lock.Date)
		}
		file, err := locks.ReadFile("lock/" + arch + ".lock")
		must.Do(t, err)
		if !bytes.Equal(lock.Format(), file) {
			t.Errorf("the lock for %s is not written as it would be", arch)
		}
		for _, name := range wanted().Packages {
			if _, ok := lock.find(name); !ok {
				t.Errorf("the lock for %s has no %s", arch, name)
			}
		}
		encoder, ok := lock.onlyClip().find(clipPackage)
		if !ok || len(lock.onlyClip().Packages) > 10 {
			t.Errorf("for the clip the lock for %s has %+v of %d packages", arch, encoder, len(lock.onlyClip().Packages))
		}
	}
	if _, err := Embedded("m68k"); err == nil || !strings.Contains(err.Error(), "amd64, arm64, riscv64") {
		t.Errorf("of an architecture without one: %v", err)
	}
}

// The clip is pinned, so that all encoders must be one.
func TestEncodersAgree(t *testing.T) {
	versions := map[string]bool{}
	for _, arch := range Architectures() {
		lock, err := Embedded(arch)
		must.Do(t, err)
		library, ok := lock.find("libsvtav1enc2")
		if !ok {
			t.Errorf("the lock for %s has no encoder", arch)
		}
		version, _, _ := strings.Cut(library.Version, "+b") // built again without a change
		versions[version] = true
	}
	if len(versions) != 1 {
		t.Errorf("the encoders have the versions %v", versions)
	}
}

const sum = "b2cb210bee3be6a10230b38b8645d71846d19364b157f44fd08e1a54cae1652f"

func lockOf(lines ...string) []byte {
	head := []string{"touchstone-lock 1", "suite trixie", "arch amd64", "date 2026-09-12T07:55:41Z"}
	return []byte(strings.Join(slices.Concat(head, lines), "\n") + "\n")
}

func TestParseLock(t *testing.T) {
	got, err := ParseLock(lockOf("7zip 25.01+dfsg-1~deb13u2 "+sum+" 1573700", "fio 3.39-1 "+sum+" 1 clip"))
	want := Lock{Suite: "trixie", Arch: "amd64", Date: time.Date(2026, 9, 12, 7, 55, 41, 0, time.UTC), Packages: []Package{
		{Name: "7zip", Version: "25.01+dfsg-1~deb13u2", SHA256: sum, Size: 1573700}, {Name: "fio", Version: "3.39-1", SHA256: sum, Size: 1, Clip: true},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if date := got.snapshot(); !date.Equal(time.Date(2026, 9, 13, 7, 55, 41, 0, time.UTC)) {
		t.Errorf("the snapshot is of %v", date)
	}
}

func TestParseLockRefuses(t *testing.T) {
	good := "fio 3.39-1 " + sum + " 681212"
	tests := []struct {
		name string
		text []byte
		want string
	}{
		{"empty", nil, "no package"},
		{"another format", []byte("touchstone-lock 2\n"), "line 1"},
		{"another suite", bytes.Replace(lockOf(good), []byte("trixie"), []byte("sid"), 1), "line 2: the suite must be trixie"},
		{"another architecture", bytes.Replace(lockOf(good), []byte("amd64"), []byte("m68k"), 1), "line 3"},
		{"no date", bytes.Replace(lockOf(good), []byte("2026-"), []byte("long ago-"), 1), "line 4"},
		{"a date elsewhere", bytes.Replace(lockOf(good), []byte("41Z"), []byte("41+01:00"), 1), "line 4"},
		{"too little", lockOf("fio 3.39-1 " + sum), "line 5: it must have"},
		{"another mark", lockOf(good + " image"), "line 5: it must have"},
		{"an empty line", lockOf(good, "", good), "line 6"},
		{"an option for a name", lockOf("--fio 3.39-1 " + sum + " 1"), "not a name of a package"},
		{"a path for a version", lockOf("fio ../../etc " + sum + " 1"), "not a version"},
		{"a short sum", lockOf("fio 3.39-1 " + sum[1:] + " 1"), "not a SHA-256"},
		{"not a size", lockOf("fio 3.39-1 " + sum + " 0"), "not a size"},
		{"order", lockOf("sysbench 1 "+sum+" 1", good), "line 6: package fio is out of order"},
		{"twice", lockOf(good, good), "line 6: package fio is out of order or occurs twice"},
		{"a long line", lockOf("fio " + strings.Repeat("1", 1000) + " " + sum + " 1"), "line 5: bufio.Scanner: token too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if lock, err := ParseLock(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v, error %v, want one with %q", lock, err, test.want)
			}
		})
	}
	var lines []string
	for i := range maxPackages + 1 {
		lines = append(lines, "p"+string(rune('a'+i/676))+string(rune('a'+i/26%26))+string(rune('a'+i%26))+" 1 "+sum+" 1")
	}
	if _, err := ParseLock(lockOf(lines...)); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("too many: %v", err)
	}
}

func FuzzParseLock(f *testing.F) {
	for _, arch := range Architectures() {
		file, err := locks.ReadFile("lock/" + arch + ".lock")
		must.Do(f, err)
		f.Add(file)
	}
	f.Add(lockOf("fio 3.39-1 " + sum + " 681212 clip"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lock, err := ParseLock(text)
		if err != nil {
			return
		}
		echo, err := ParseLock(lock.Format())
		must.Do(t, err)
		if diff := cmp.Diff(lock, echo); diff != "" {
			t.Errorf("written and read again it is another (-first +second):\n%s", diff)
		}
		for _, p := range lock.Packages {
			if strings.ContainsAny(p.Name+p.Version, " ,=/\n") || strings.HasPrefix(p.Name, "-") {
				t.Errorf("%+v would be something else on a command line", p)
			}
		}
	})
}
