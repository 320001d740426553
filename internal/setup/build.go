package setup

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

const runscShim = "containerd-shim-runsc-v1"

var containerdPrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "containerd-stress"}

// module is a Go module with its checksum.
type module struct{ path, version, sum string }

func (m module) String() string { return m.path + "@" + m.version }

// source fetches the module and returns the directory with its source. Unlike with `go install PACKAGE@VERSION`, a module that is built there
// may exclude other modules, be patched, and be missing from the checksum database: source checks the checksum, and the module's own go.sum
// has the checksums of its dependencies.
func (m module) source(ctx context.Context, w *work) (string, error) {
	out := filepath.Join(w.dir, "module.json")
	script := `exec go mod download -json "$1" >"$2"`
	if err := w.run(ctx, command{env: []string{"GONOSUMDB=" + m.path, "GOWORK=off"}, args: []string{"sh", "-c", script, "sh", m.String(), out}}); err != nil {
		text, _ := os.ReadFile(out) // go reports its errors there
		return "", errors.Join(err, errors.New(strings.TrimSpace(string(text))), w.explainNetwork(ctx, string(text)))
	}
	text, err := os.ReadFile(out)
	var download struct{ Dir, Sum string }
	if err == nil {
		err = json.Unmarshal(text, &download)
	}
	if err == nil && download.Sum != m.sum {
		err = fmt.Errorf("the source of %s has the checksum %s, and the lock has %s", m, download.Sum, m.sum)
	}
	return download.Dir, err
}

// goBuild builds packages of a module into the directory for programs. A program has the name of its package's directory.
type goBuild struct {
	module   module
	packages []string
	names    []string // of the programs
	tags     string
	linker   string // flags of the linker, besides -s -w
	cgo      bool
	patch    func(dir string) error // changes the source; nil for none
}

// copySource copies the source of a module and changes the copy. Go refuses an overlay over its cache of modules.
func copySource(dir, draft string, patch func(dir string) error) (string, error) {
	err := os.CopyFS(draft, os.DirFS(dir))
	if err == nil {
		err = patch(draft)
	}
	return draft, err
}

func (b goBuild) run(ctx context.Context, w *work) error {
	dir, err := b.module.source(ctx, w)
	if err == nil && b.patch != nil {
		dir, err = copySource(dir, filepath.Join(w.dir, "source"), b.patch)
	}
	if err != nil {
		return err
	}
	args := []string{"go", "-C", dir, "build", "-trimpath", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + b.linker)}
	if b.tags != "" {
		args = append(args, "-tags", b.tags)
	}
	for n, name := range b.packages {
		if err := w.run(ctx, command{env: goEnvironment(w.arch, b.cgo), args: append(args[:len(args):len(args)], "-o", filepath.Join(w.bin, b.names[n]), name)}); err != nil {
			return err
		}
	}
	return nil
}

// goEnvironment returns the variables of a build in Go. The user's flags could change the programs.
func goEnvironment(arch string, cgo bool) []string {
	return []string{"GOFLAGS=-mod=readonly", "GOWORK=off", "GOARCH=" + arch, "CGO_ENABLED=" + strconv.Itoa(map[bool]int{true: 1}[cgo])}
}

func buildRunc(version, sum string) *Builder {
	m := module{"github.com/opencontainers/runc", version, sum}
	return &Builder{
		Source: m.String(), Digest: sum, Needs: []Need{needGo("1.25.0"), needCompiler, needLibrary("libseccomp")}, Minutes: 1, Space: 300 * mb,
		Run: goBuild{module: m, packages: []string{"."}, names: []string{"runc"}, tags: "seccomp", cgo: true}.run,
	}
}

// shim is the source of gVisor's shim for containerd with another start, whose go.mod pins gVisor's version: scripts/tools/runsc-shim. The
// embedded files have other names, because a directory with a go.mod is not part of this module.
//
//go:embed shim/*.txt
var shim embed.FS

func buildRunsc(version, sum string) *Builder {
	m := module{"gvisor.dev/gvisor", version, sum}
	return &Builder{
		Source: m.String(), Digest: sum, Crosses: true, Arches: []string{"amd64", "arm64"}, Needs: []Need{needGo("1.26.3")}, Minutes: 4, Space: 1500 * mb,
		Run: func(ctx context.Context, w *work) error {
			// The linker sets the version; otherwise runsc prints VERSION_MISSING.
			b := goBuild{module: m, packages: []string{"./runsc"}, names: []string{"runsc"}, linker: "-X gvisor.dev/gvisor/runsc/version.version=" + version}
			if err := b.run(ctx, w); err != nil {
				return err
			}
			dir := filepath.Join(w.dir, "shim")
			if err := writeShim(dir); err != nil {
				return err
			}
			return w.run(ctx, command{
				dir: dir, env: goEnvironment(w.arch, false),
				args: []string{"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(w.bin, runscShim), "."},
			})
		},
	}
}

// writeShim writes the module of gVisor's shim to a directory.
func writeShim(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	files, err := fs.Glob(shim, "shim/*.txt")
	for _, file := range files {
		text, bad := shim.ReadFile(file)
		err = errors.Join(err, bad, os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), ".txt")), text, 0o600))
	}
	return err
}

// buildContainerd builds any version of containerd.
func buildContainerd(path, version, sum, goVersion string) *Builder {
	m := module{path, version, sum}
	b := goBuild{module: m, linker: "-X " + path + "/version.Version=" + version, patch: allowFiles}
	for _, name := range containerdPrograms {
		b.packages, b.names = append(b.packages, "./cmd/"+name), append(b.names, name)
	}
	return &Builder{
		Source: m.String(), Digest: sum, Crosses: true, Needs: []Need{needGo(goVersion)}, Minutes: 4, Space: 1500 * mb,
		Run: b.run,
	}
}

// allowFiles lets containerd-stress start. It panics unless it may open 100000 files, and root without CAP_SYS_RESOURCE may not.
func allowFiles(dir string) error {
	file := filepath.Join(dir, "cmd/containerd-stress/rlimit_unix.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "uint64(100000)", "uint64(0)")), 0o600)
}

func buildCRIO(version, sum string) *Builder {
	m := module{"github.com/cri-o/cri-o", version, sum}
	return &Builder{
		Source: m.String(), Digest: sum, Needs: []Need{needGo("1.24.1"), needCompiler, needLibrary("libseccomp")}, Minutes: 3, Space: 1500 * mb,
		Run: func(ctx context.Context, w *work) error {
			b := goBuild{
				module: m, packages: []string{"./cmd/crio"}, names: []string{"crio"}, tags: "containers_image_openpgp,exclude_graphdriver_btrfs,seccomp", cgo: true,
			}
			dir, err := m.source(ctx, w)
			if err != nil {
				return err
			}
			if err := b.run(ctx, w); err != nil {
				return err
			}
			sources, err := filepath.Glob(filepath.Join(dir, "pinns/src/*.c"))
			if err != nil {
				return err
			}
			args := []string{compiler(), "-std=c99", "-Os", "-static", "-s", "-o", filepath.Join(w.bin, "pinns")}
			return w.run(ctx, command{args: append(args, sources...)})
		},
	}
}

// buildYouki builds youki from its crate. The crate's Cargo.lock has the checksums of its dependencies, and the index of crates.io its own.
func buildYouki(version string) *Builder {
	return &Builder{
		Source: "crate youki@" + version, Digest: "Cargo.lock", Arches: []string{"amd64", "arm64"}, Minutes: 5, Space: 2000 * mb,
		Needs: []Need{needCargo("1.88"), needCompiler, needLibrary("libseccomp")},
		Run: func(ctx context.Context, w *work) error {
			root := filepath.Join(w.dir, "root")
			// The default features lack cgroup v1.
			err := w.run(ctx, command{
				env: []string{"CARGO_TARGET_DIR=" + filepath.Join(w.dir, "target")},
				args: []string{
					"cargo", "install", "youki", "--version", version, "--locked", "--no-default-features", "--features", "v1,v2,seccomp", "--root", root,
				},
			})
			if err == nil {
				_, err = move(filepath.Join(root, "bin/youki"), filepath.Join(w.bin, "youki"))
			}
			return err
		},
	}
}

// aptHelper is a program of APT that is not on PATH. It downloads with APT's proxies. debianMirror is the archive of Debian if APT names none.
// They are variables for tests.
var (
	aptHelper    = "/usr/lib/apt/apt-helper"
	debianMirror = "http://deb.debian.org/debian/"
)

// mirrorLine is the address of an archive of Debian in the output of `apt-get indextargets`.
var mirrorLine = regexp.MustCompile(`(?m)^https?://\S+/debian/$`)

// buildCrun builds crun from the tarball of its release, which Debian's archive keeps.
func buildCrun(version, sum string, size int64) *Builder {
	file := "crun_" + version + ".orig.tar.gz"
	return &Builder{
		Source: debianMirror + "pool/main/c/crun/" + file, Digest: "sha256:" + sum, File: file, Minutes: 1, Space: 100 * mb,
		Needs: []Need{needCompiler, needProgram("make", "make"), needProgram("tar", "tar"), needLibrary("libcap"), needLibrary("libseccomp")},
		Run: func(ctx context.Context, w *work) error {
			archive := filepath.Join(w.dir, file)
			if err := w.fetchDebian(ctx, "pool/main/c/crun/"+file, archive, sum, size); err != nil {
				return err
			}
			if err := verify(archive, sum); err != nil {
				return err
			}
			dir := filepath.Join(w.dir, "crun")
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			for _, c := range []command{
				{args: []string{"tar", "-xf", archive, "-C", dir, "--strip-components=1"}},
				// configure requires Python, though only bindings need it.
				{
					dir: dir, env: []string{"PYTHON=true"},
					args: []string{"./configure", "--disable-systemd", "--disable-criu", "--enable-embedded-yajl", "--disable-dependency-tracking"},
				},
				{dir: dir, args: []string{"make", "-j", strconv.Itoa(runtime.NumCPU())}},
				{dir: dir, args: []string{"strip", "-s", "-o", filepath.Join(w.bin, "crun"), "crun"}},
			} {
				if err := w.run(ctx, c); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// fetchDebian fetches a file of Debian's archive: from the directory of --from, with APT, or else directly.
func (w *work) fetchDebian(ctx context.Context, path, file, sum string, size int64) error {
	if w.from != "" {
		return copyFile(filepath.Join(w.from, filepath.Base(path)), file)
	}
	if _, err := exec.LookPath(aptHelper); err == nil {
		text, _ := output(ctx, w.launcher, "apt-get", "indextargets", "--format", "$(REPO_URI)") // the usual mirror is enough
		mirror := mirrorLine.FindString(text)
		if mirror == "" {
			mirror = debianMirror
		}
		return w.run(ctx, command{args: []string{aptHelper, "download-file", mirror + path, file}})
	}
	_, err := Release{URL: debianMirror + path, SHA256: sum, Size: size}.fetch(ctx, w.client, filepath.Dir(file))
	return err
}
