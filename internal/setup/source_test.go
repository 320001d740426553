package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// addAPT puts an APT on PATH with a package of this version. Its file is text, and its list says sum.
func addAPT(t *testing.T, s *Setup, version, text, sum string) {
	t.Helper()
	addProgram(t, s, "apt-cache", `[ "$*" = "policy runc" ] || exit 1
echo 'runc:
  Installed: (none)
  Candidate: `+version+`'
`)
	addProgram(t, s, "apt-get", `case "$*" in
"download --print-uris runc=`+version+`") echo "'http://deb.example.com/pool/runc_x_amd64.deb' runc_x_amd64.deb `+fmt.Sprint(len(text))+` SHA256:`+sum+`" ;;
"-q -o APT::Sandbox::User=root download runc=`+version+`") printf '%s' '`+text+`' >runc_x_amd64.deb ;;
*) exit 100 ;;
esac
`)
	addProgram(t, s, "dpkg-deb", `[ "$1" = --extract ] || exit 2
mkdir -p "$3/usr/sbin"
printf '#!/bin/sh\necho runc version 1.2.3\n' >"$3/usr/sbin/runc"
`)
	withShell(t)
}

// TestPackages: a package of the distribution is unpacked into the store if it is recent enough and has the checksum of APT's lists.
func TestPackages(t *testing.T) {
	r := recipe("runc", "1.5.2")
	r.Least, r.Package, r.Programs, r.Build = "1.1.0", "runc", []string{"runc", "runc-helper"}, nil
	text := "the bytes of a package"
	for name, c := range map[string]struct{ version, sum, request, installs, want string }{
		"recent":        {"1.2.3+ds1-1", sumOf([]byte(text)), "runc", "1.2.3+ds1-1", ""},
		"with an epoch": {"1:1.2.3-1", sumOf([]byte(text)), "runc", "1.2.3-1", ""},
		"old":           {"1.0.9-1", sumOf([]byte(text)), "runc", "", "the package runc is version 1.0.9-1, and 1.1.0 is the least"},
		"another":       {"1.2.3-1", sumOf([]byte(text)), "runc@1.5.2", "", "the package runc is version 1.2.3-1"},
		"exact":         {"1.5.2-1", sumOf([]byte(text)), "runc@1.5.2", "1.5.2-1", ""},
		"not available": {"(none)", "", "runc", "", "APT knows no package runc"},
		"without a sum": {"1.2.3-1", "", "runc", "", "APT has no SHA-256 of runc=1.2.3-1"},
		"damaged":       {"1.2.3-1", strings.Repeat("0", 64), "runc", "", "runc_x_amd64.deb has the SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, r)
			addAPT(t, s, c.version, text, c.sum)
			s.Source = parts.Package // the machine may have a runc
			err := install(t, s, c.request)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
				want(t, s.Root)
				return
			}
			must.Do(t, err)
			part, err := parts.Read(filepath.Join(s.Root, "runc", c.installs))
			must.Do(t, err)
			if part.Origin != (parts.Origin{Kind: parts.Package, Source: "http://deb.example.com/pool/runc_x_amd64.deb", Digest: "sha256:" + c.sum}) || len(part.Programs) != 1 {
				t.Errorf("the record is %+v", part)
			}
		})
	}
}

// addGo puts a go on PATH that plays the build of a module: its source has the checksum sum, and each program is a script.
func addGo(t *testing.T, s *Setup, version, toolchain, sum string) (log string) {
	t.Helper()
	log = filepath.Join(filepath.Dir(s.Root), "go.log")
	source := filepath.Join(filepath.Dir(s.Root), "source")
	must.Do(t, os.MkdirAll(filepath.Join(source, "cmd/containerd-stress"), 0o755), os.MkdirAll(filepath.Join(source, "pinns/src"), 0o755),
		os.WriteFile(filepath.Join(source, "cmd/containerd-stress/rlimit_unix.go"), []byte("x = uint64(100000)"), 0o444),
		os.WriteFile(filepath.Join(source, "pinns/src/pinns.c"), nil, 0o444))
	addProgram(t, s, "go", `
case "$*" in
"env GOVERSION GOTOOLCHAIN") printf 'go`+version+`\n`+toolchain+`\n'; exit ;;
esac
echo "CGO_ENABLED=$CGO_ENABLED GOARCH=$GOARCH GOFLAGS=$GOFLAGS $*" >>`+log+`
case "$*" in
"mod download -json "*) printf '{"Dir": "`+source+`", "Sum": "`+sum+`"}'; exit ;;
esac
[ "$1" != -C ] || cd "$2"
[ ! -e cmd/containerd-stress/rlimit_unix.go ] || cat cmd/containerd-stress/rlimit_unix.go >>`+log+`
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\n' >"$2"
`)
	return log
}

// addTools puts the other programs of builds on PATH.
func addTools(t *testing.T, s *Setup) {
	t.Helper()
	for _, name := range []string{"gcc", "strip", "make"} {
		addProgram(t, s, name, "while [ $# -gt 0 ]; do [ \"$1\" != -o ] || printf '#!/bin/sh\\n' >\"$2\"; shift; done\n")
	}
	addProgram(t, s, "pkg-config", "")
	addProgram(t, s, "cargo", `
if [ "$1" = --version ]; then echo 'cargo 1.95.0 (x)'; exit; fi
[ "$*" = "install youki --version 0.7.0 --locked --no-default-features --features v1,v2,seccomp --root ${CARGO_TARGET_DIR%target}root" ] || exit 9
mkdir -p "${CARGO_TARGET_DIR%target}root/bin"
printf '#!/bin/sh\n' >"${CARGO_TARGET_DIR%target}root/bin/youki"
`)
	t.Setenv("CC", "")
	withShell(t)
}

// entry returns an entry of the lock.
func entry(t *testing.T, title string) Recipe {
	t.Helper()
	for _, r := range Lock() {
		if r.Name+"@"+r.Version == title {
			return r
		}
	}
	t.Fatalf("the lock has no %s", title)
	return Recipe{}
}

// TestBuilds: the builds of the lock call their tools with pinned versions, and produce all programs.
func TestBuilds(t *testing.T) {
	for title, want := range map[string][]string{
		"runc@1.5.2": {
			"mod download -json github.com/opencontainers/runc@v1.5.2", "CGO_ENABLED=1 GOARCH=" + runtime.GOARCH + " GOFLAGS=-mod=readonly", "-tags seccomp",
		},
		"youki@0.7.0": nil,
		"runsc@20260905": {
			"mod download -json gvisor.dev/gvisor@v0.0.0-20260905035102-160fafc42237", "-X gvisor.dev/gvisor/runsc/version.version=v0.0.0-20260905035102-160fafc42237",
			"CGO_ENABLED=0", "/bin/containerd-shim-runsc-v1 .",
		},
		"containerd@2.4.2":  {"containerd/v2@v2.4.2", "version.Version=v2.4.2", "x = uint64(0)", "./cmd/ctr"},
		"containerd@1.7.35": {"containerd/containerd@v1.7.35", "github.com/containerd/containerd/version.Version=v1.7.35", "x = uint64(0)"},
		"crio@1.34.0":       {"cri-o@v1.34.0", "-tags containers_image_openpgp,exclude_graphdriver_btrfs,seccomp"},
	} {
		t.Run(title, func(t *testing.T) {
			r := entry(t, title)
			r.NeedsRoot, r.Bytes, r.Build.Space = "", 0, 0
			s := newSetup(t, r)
			t.Setenv("GOFLAGS", "-tags=mine")
			log := addGo(t, s, "1.26.8", "local", r.Build.Digest)
			addTools(t, s)
			s.Source = parts.Build
			must.Do(t, install(t, s, title))
			part, err := parts.Read(filepath.Join(s.Root, r.Name, r.Version))
			must.Do(t, err)
			if len(part.Programs) != len(r.Programs) {
				t.Errorf("the programs are %+v", part.Programs)
			}
			text, _ := os.ReadFile(log) // youki has none
			for _, line := range want {
				if !strings.Contains(string(text), line) {
					t.Errorf("no call of go has %q:\n%s", line, text)
				}
			}
		})
	}
	// Another source than the locked one is not built.
	r := entry(t, "runc@1.5.2")
	s := newSetup(t, r)
	log := addGo(t, s, "1.26.8", "local", "h1:other=")
	addTools(t, s)
	s.Source = parts.Build
	err := install(t, s, "runc")
	if err == nil || !strings.Contains(err.Error(), "has the checksum h1:other=, and the lock has "+r.Build.Digest) {
		t.Errorf("the error is %v", err)
	}
	if text, err := os.ReadFile(log); err != nil || strings.Contains(string(text), " build ") {
		t.Errorf("it was built: %s, %v", text, err)
	}
	want(t, s.Root)
}

// TestNeeds: each missing or old tool is named with its remedy.
func TestNeeds(t *testing.T) {
	needs := []Need{needGo("1.26.0"), needCargo("1.88"), needCompiler, needLibrary("libseccomp"), needProgram("make", "make")}
	for name, c := range map[string]struct {
		programs map[string]string
		want     []string
	}{
		"nothing": {nil, []string{"Go 1.26.0 or later, and go is not on PATH: install it from", "cargo 1.88 or later, and cargo is not on PATH: apt-get install cargo", "a C compiler: gcc, which is not on PATH: apt-get install gcc libc6-dev", "pkg-config, which is not on PATH: apt-get install pkg-config libseccomp-dev", "make, which is not on PATH: apt-get install make"}},
		"old ones": {
			map[string]string{"go": "printf 'go1.19.8\n\n'", "cargo": "echo cargo 1.75.0", "gcc": "exit 1", "pkg-config": "exit 1", "make": ""},
			[]string{"Go 1.26.0 or later, and go is 1.19.8: ", "cargo 1.88 or later, and cargo is 1.75.0: ", "the headers of the C library, which gcc does not find: apt-get install libc6-dev", "libseccomp with its headers, which pkg-config does not find: apt-get install libseccomp-dev", ""},
		},
		"broken ones": {
			map[string]string{"go": "exit 3", "cargo": "exit 3", "gcc": "", "pkg-config": "", "make": ""},
			[]string{"go env fails: ", "cargo --version fails: ", "", "", ""},
		},
		"a toolchain that Go fetches":  {map[string]string{"go": "printf 'go1.22.1\nauto\n'"}, []string{""}},
		"a toolchain that Go does not": {map[string]string{"go": "printf 'go1.24.4\nlocal\n'"}, []string{"and go is 1.24.4"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			t.Setenv("CC", "")
			for program, text := range c.programs {
				addProgram(t, s, program, text)
			}
			if c.programs != nil {
				must.Do(t, os.Symlink("/bin/sh", filepath.Join(filepath.Dir(s.Root), "path", "sh")))
			}
			must.Do(t, s.withLauncher(func(l *process.Launcher) error {
				for n, message := range c.want {
					if missing := needs[n](t.Context(), l); !strings.Contains(missing, message) || (missing == "") != (message == "") {
						t.Errorf("need %d: %q, want %q", n, missing, message)
					}
				}
				return nil
			}))
		})
	}
}

// TestNoNetwork: a build that reaches no server names the variable of the proxy, and the proxy of APT.
func TestNoNetwork(t *testing.T) {
	for proxy, want := range map[string]string{
		"": "if this machine needs a proxy, set HTTPS_PROXY; without a network, copy the store of another machine",
		`Acquire::http::Proxy "http://user:secret@proxy:3128";`: "APT has a proxy that Go and cargo do not know: set HTTPS_PROXY to the value that apt-config dump",
	} {
		r := entry(t, "runc@1.5.2")
		s := newSetup(t, r)
		addTools(t, s)
		addProgram(t, s, "apt-config", "echo '"+proxy+"'")
		addProgram(t, s, "go", `[ "$1" != env ] || { printf 'go1.26.0\nlocal\n'; exit; }
echo '{"Error": "Get https://proxy.golang.org: dial tcp: lookup proxy.golang.org: no such host"}'
exit 1
`)
		t.Setenv("HTTPS_PROXY", "")
		t.Setenv("https_proxy", "")
		s.Source = parts.Build
		err := install(t, s, "runc")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "no such host") || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestInterruptedBuild: ^C ends the programs of a build.
func TestInterruptedBuild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := recipe("crun", "1.21")
	s := newSetup(t, r)
	withShell(t)
	r.Build.Run = func(ctx context.Context, w *work) error {
		cancel()
		return w.run(ctx, command{args: []string{"sleep", "infinity"}})
	}
	items, err := s.Plan(t.Context(), []string{"crun"})
	must.Do(t, err)
	if err := s.Install(ctx, items); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	want(t, s.Root)
}

// TestCrun: the tarball of crun comes from APT's mirror with APT's proxy, or directly on a system without APT. Its checksum counts in both cases.
func TestCrun(t *testing.T) {
	text := archive(t, map[string]string{"crun-1.21/configure": "#!/bin/sh\nexit 0\n", "crun-1.21/crun": "#!/bin/sh\n"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debian/pool/main/c/crun/crun_1.21.orig.tar.gz" {
			_, _ = w.Write(text)
		}
	}))
	t.Cleanup(server.Close)
	helper, mirror := aptHelper, debianMirror
	t.Cleanup(func() { aptHelper, debianMirror = helper, mirror })
	debianMirror = server.URL + "/debian/"
	for name, c := range map[string]struct {
		helper string // the script of apt-helper; empty without APT
		sum    string
		want   string
	}{
		"without APT":     {"", sumOf(text), ""},
		"a wrong tarball": {"", strings.Repeat("0", 64), "has the SHA-256"},
		"with APT":        {`[ "$1 $2" = "download-file http://mirror.example.com/debian/pool/main/c/crun/crun_1.21.orig.tar.gz" ] && cp TARBALL "$3"`, sumOf(text), ""},
		"a failing APT":   {"echo 'Could not resolve mirror.example.com'; exit 100", sumOf(text), "the server cannot be reached"},
		"a damaged file":  {`echo damaged >"$3"`, sumOf(text), "has the SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			r := recipe("crun", "1.21")
			r.Build = buildCrun("1.21", c.sum, int64(len(text)))
			s := newSetup(t, r)
			addTools(t, s)
			tarball := filepath.Join(t.TempDir(), "tarball")
			must.Do(t, os.WriteFile(tarball, text, 0o600))
			aptHelper = "/no/such/apt-helper"
			if c.helper != "" {
				aptHelper = addProgram(t, s, "apt-helper", strings.ReplaceAll(c.helper, "TARBALL", tarball))
			}
			addProgram(t, s, "apt-get", "printf 'http://security.example.com/debian-security/\\nhttp://mirror.example.com/debian/\\n'")
			s.Source = parts.Build
			err := install(t, s, "crun")
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
				want(t, s.Root)
				return
			}
			must.Do(t, err)
		})
	}
}
