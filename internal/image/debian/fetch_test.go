package debian

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// said gives what mmdebstrap said when something went wrong: captured from 1.3.5 with apt 2.6.
func said(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/messages", name+".txt"))
	must.Do(t, err)
	return string(text)
}

// explained has messages read a text in pieces, and explain it.
func explained(t testing.TB, text string) (steps []string, err error) {
	t.Helper()
	m := &messages{progress: func(step string) { steps = append(steps, step) }}
	for len(text) > 0 {
		n := min(7, len(text))
		_, err := m.Write([]byte(text[:n]))
		must.Do(t, err)
		text = text[n:]
	}
	return steps, m.explain(&process.ExitError{Command: mmdebstrap}, "http://mirror")
}

func TestExplain(t *testing.T) {
	tests := []struct {
		name string
		want string
		is   error
	}{
		{"unreachable", "fetch packages from http://mirror: the mirror cannot be reached: Failed to fetch http://127.0.0.1:1/debian/dists/trixie/InRelease  Could not connect to 127.0.0.1:1", ErrUnreachable},
		{"unresolvable", "Could not resolve 'snapshot.debian.org'", ErrUnreachable},
		{"no-key", "install the package debian-archive-keyring", nil},
		{"no-space", "fetch packages from http://mirror: no space left on device", unix.ENOSPC},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			steps, err := explained(t, said(t, test.name))
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want an error with %q", err, test.want)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v, want %v", err, test.is)
			}
			if diff := cmp.Diff([]string{"reading the lists of packages"}, steps); diff != "" {
				t.Errorf("the steps are others (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainVanished(t *testing.T) {
	for name, want := range map[string][]Package{
		"vanished-version": {{Name: "netbase", Version: "0.1"}, {Name: "sqlite3", Version: "3.46.1-7+deb13u1"}},
		"vanished-package": {{Name: "no-such-package"}},
	} {
		_, err := explained(t, said(t, name))
		vanishedErr := (*VanishedError)(nil)
		if !errors.As(err, &vanishedErr) {
			t.Fatalf("%s: %v, want a VanishedError", name, err)
		}
		if diff := cmp.Diff(&VanishedError{Packages: want, Mirror: "http://mirror"}, vanishedErr); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := err.Error(); !strings.HasPrefix(got, "http://mirror does not have "+want[0].Name) {
			t.Errorf("%s: %q", name, got)
		}
	}
	_, err := explained(t, "Err:1 http://mirror/pool/main/f/fio/fio_1%3a3.39-1_amd64.deb  404  Not Found\n")
	if got := err.Error(); got != "http://mirror does not have fio 1:3.39-1" {
		t.Errorf("a file that is gone: %q", got)
	}
}

// Unknown messages are passed on, up to a limit.
func TestExplainUnknown(t *testing.T) {
	_, err := explained(t, "E: something new\nE: mmdebstrap failed to run\n")
	if got := err.Error(); got != "fetch packages from http://mirror: mmdebstrap ended with exit code 0: something new" {
		t.Errorf("%q", got)
	}
	m := &messages{progress: func(string) {}}
	for range 100 {
		_, err := m.Write([]byte(strings.Repeat("x", 10_000)))
		must.Do(t, err)
	}
	if len(m.text) > maxMessages || len(m.line) > 4096 {
		t.Errorf("%d and %d bytes are kept", len(m.text), len(m.line))
	}
}

func FuzzExplain(f *testing.F) {
	for _, name := range []string{"unreachable", "unresolvable", "no-key", "no-space", "vanished-version", "vanished-package"} {
		f.Add(said(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := explained(t, text)
		if err == nil {
			t.Fatal("no error")
		}
		if len(err.Error()) > 2*maxMessages {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	})
}

func TestHostMirror(t *testing.T) {
	const debian = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n"
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", nil, defaultMirror},
		{"Debian without sources", map[string]string{"os-release": debian}, defaultMirror},
		{"Ubuntu", map[string]string{"os-release": "ID=ubuntu\nID_LIKE=debian\n", "apt/sources.list": "deb http://de.archive.ubuntu.com/debian noble main\n"}, defaultMirror},
		{
			"one line",
			map[string]string{"os-release": debian, "apt/sources.list": "# deb http://off/debian trixie main\ndeb http://security.debian.org/debian-security bookworm-security main\ndeb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] https://ftp.example.org/pub/debian/ bookworm main\n"},
			"https://ftp.example.org/pub/debian",
		},
		{
			"deb822",
			map[string]string{"os-release": debian, "apt/sources.list.d/debian.sources": "Types: deb\n# http://off/debian\nURIs: http://deb.debian.org/debian-security https://mirror.example.org/debian\nSuites: bookworm\n"},
			"https://mirror.example.org/debian",
		},
		{"others only", map[string]string{"os-release": debian, "apt/sources.list.d/x.list": "deb https://packages.example.org/apt stable main\ndeb file:///srv/debian trixie main\n"}, defaultMirror},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				file := filepath.Join(root, "etc", name)
				must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
			}
			if got := hostMirror(root); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
