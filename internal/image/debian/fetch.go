package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// mmdebstrap fetches and unpacks packages.
const mmdebstrap = "mmdebstrap"

// snapshots is the archive of all earlier states of Debian. Tests replace it.
var snapshots = "http://snapshot.debian.org/archive/debian/"

const (
	fetchLimit = 30 * time.Minute // for one call of mmdebstrap
	stopGrace  = 10 * time.Second // for its clean-up after SIGTERM
)

// keyrings are the paths of the keys of Debian's archive, on Debian and elsewhere.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-keyring.gpg",
	"/usr/share/keyrings/debian-archive-keyring.pgp",
	"/etc/apt/trusted.gpg.d/debian-archive-*",
	"/usr/share/keyrings/debian-archive-" + Suite + "-*",
}

// VanishedError reports that a mirror does not have the versions of a lock.
type VanishedError struct {
	Packages []Package // with the name, and the version if it is known
	Mirror   string
}

func (e *VanishedError) Error() string {
	var names []string
	for _, p := range e.Packages {
		names = append(names, strings.TrimSpace(p.Name+" "+p.Version))
	}
	return fmt.Sprintf("%s does not have %s", e.Mirror, strings.Join(names, ", "))
}

// ErrUnreachable reports that a mirror cannot be reached.
var ErrUnreachable = errors.New("the mirror cannot be reached")

// fetcher fetches packages into a directory.
type fetcher struct {
	launcher *process.Launcher
	dir      string
	progress func(string)
}

// Fetch fetches a mirror's current packages of Suite with their dependencies, for purposes other than the workload image. It returns
// a tar archive in dir with the unpacked packages. No program of theirs has run. The archive also has the files of the packages,
// in var/cache/apt. Fetch needs room bytes of disk space.
func Fetch(ctx context.Context, o Options, dir string, packages []string, room int64) (*os.File, error) {
	o.setDefaults()
	f, err := o.fetcher(dir, room)
	if err != nil {
		return nil, err
	}
	file, err := f.fetch(ctx, request{arch: o.Arch, packages: packages, mirror: o.Mirror}, "packages.tar")
	if err != nil {
		return nil, fmt.Errorf("fetch packages for %s: %w", o.Arch, err)
	}
	return file, nil
}

// fetcher returns a fetcher for a directory, if the programs for fetching and room bytes of disk space are there.
func (o Options) fetcher(dir string, room int64) (*fetcher, error) {
	f := &fetcher{launcher: o.Launcher, dir: dir, progress: func(step string) { o.progress("%s", step) }}
	if err := f.ready(); err != nil {
		return nil, err
	}
	return f, image.RequireSpace(dir, room)
}

// ready checks that the programs and keys for fetching exist.
func (f *fetcher) ready() error {
	for program, pkg := range map[string]string{mmdebstrap: "mmdebstrap", "apt-get": "apt", "dpkg-deb": "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; %s", err, install(pkg))
		}
	}
	exists := func(pattern string) bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) > 0
	}
	if !slices.ContainsFunc(keyrings, exists) {
		return fmt.Errorf("the keys of Debian's archive are missing (%s); %s", keyrings[0], install("debian-archive-keyring"))
	}
	return nil
}

// install returns the advice for a missing package.
func install(name string) string {
	return fmt.Sprintf("install the package %s, or load an image that was saved on another machine: touchstone image load FILE", name)
}

// request selects packages.
type request struct {
	arch     string
	packages []string // names, or name=version
	mirror   string
	lists    bool // keep the lists of packages
}

// fetch writes a tar archive with the unpacked packages, and with their files in archivesDir. No program of another architecture
// runs.
func (f *fetcher) fetch(ctx context.Context, r request, filename string) (*os.File, error) {
	file, err := os.Create(filepath.Join(f.dir, filename))
	if err != nil {
		return nil, err
	}
	// Without root it needs no namespace and no fakeroot, because the owners of files do not matter and no program of the packages runs.
	mode := "chrootless"
	if os.Geteuid() == 0 {
		mode = "root"
	}
	skip := "cleanup/apt/cache"
	if r.lists {
		skip += ",cleanup/apt/lists"
	}
	args := []string{
		"--mode=" + mode, "--variant=extract", "--format=tar", "--architectures=" + r.arch, "--components=main",
		"--include=" + strings.Join(r.packages, ","), "--skip=chroot/mount," + skip,
		`--aptopt=Acquire::Check-Valid-Until "false"`, // a snapshot is past its date
		`--aptopt=Acquire::Retries "2"`, `--aptopt=Acquire::http::Timeout "20"`, `--aptopt=Acquire::https::Timeout "20"`,
		Suite, "-", r.mirror,
	}
	messages := &messages{progress: f.progress}
	if err := f.run(ctx, r.mirror, args, file, messages); err != nil {
		_ = file.Close() // it is incomplete
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, messages.explain(err, r.mirror)
	}
	return file, nil
}

// run runs mmdebstrap. When the context ends, mmdebstrap gets SIGTERM and some time for its clean-up, and then SIGKILL.
func (f *fetcher) run(ctx context.Context, mirror string, args []string, stdout *os.File, stderr *messages) error {
	limitCtx, cancel := context.WithTimeoutCause(ctx, fetchLimit, fmt.Errorf("%s did not end within %v", mmdebstrap, fetchLimit))
	defer cancel()
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	cmd := exec.CommandContext(hard, mmdebstrap, args...)
	// The directory beside the image has enough space.
	cmd.Env = process.DownloadEnvironment("LC_ALL=C", "SOURCE_DATE_EPOCH=0", "TMPDIR="+f.dir)
	cmd.Env = append(cmd.Env, hostProxy(limitCtx, f.launcher, mirror)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	child, err := f.launcher.Spawn(cmd)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(limitCtx, func() {
		_ = cmd.Process.Signal(unix.SIGTERM) // it may have exited
		grace, cancel := context.WithTimeout(hard, stopGrace)
		defer cancel()
		<-grace.Done()
		kill()
	})
	exit := child.Wait()
	stop()
	if limitCtx.Err() != nil {
		return context.Cause(limitCtx)
	}
	if exit.Status != 0 {
		return &process.ExitError{Command: mmdebstrap, Exit: exit}
	}
	return nil
}

// steps are mmdebstrap's messages for its long steps.
var steps = map[string]string{
	"I: running apt-get update...":        "reading the lists of packages",
	"I: downloading packages with apt...": "downloading packages",
	"I: extracting archives...":           "unpacking packages",
	"I: creating tarball...":              "reading packages",
}

// maxMessages bounds the stored messages of mmdebstrap, in bytes.
const maxMessages = 64 << 10

// messages receives the messages of mmdebstrap. It passes steps on and keeps all messages for explain.
type messages struct {
	progress func(string)

	mu   sync.Mutex
	line []byte
	text []byte
}

func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if room := maxMessages - len(m.text); room > 0 {
		m.text = append(m.text, p[:min(len(p), room)]...)
	}
	m.line = append(m.line, p...)
	for {
		line, rest, ok := bytes.Cut(m.line, []byte("\n"))
		if !ok {
			break
		}
		m.line = rest
		if step, ok := steps[string(line)]; ok {
			m.progress(step)
		}
	}
	m.line = m.line[max(0, len(m.line)-4096):]
	return len(p), nil
}

// apt's messages for a missing package, version or file, an unreachable mirror, and so on.
var (
	noPackage = regexp.MustCompile(`E: Version '([^'\n]+)' for '([^'\n]+)' was not found` +
		`|E: Unable to locate package (\S+)` +
		`|/([a-z0-9][a-z0-9+.-]+)_([^_/\s]+)_[a-z0-9]+\.deb\s+404`)
	noMirror = regexp.MustCompile(`Failed to fetch \S+/InRelease|does not have a Release file|Could not (connect|resolve)|Temporary failure resolving`)
	noKey    = regexp.MustCompile(`NO_PUBKEY|EXPKEYSIG|signatures? (couldn't|were invalid|could not)|Missing key`)
	noSpace  = regexp.MustCompile(`No space left on device|have enough free space|write error`)
)

// explain returns the error behind the messages.
func (m *messages) explain(err error, mirror string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := string(m.text)
	vanishedErr := &VanishedError{Mirror: mirror}
	for _, found := range noPackage.FindAllStringSubmatch(text, -1) {
		p := Package{Name: found[2] + found[3] + found[4], Version: found[1] + strings.ReplaceAll(found[5], "%3a", ":")}
		if !slices.Contains(vanishedErr.Packages, p) {
			vanishedErr.Packages = append(vanishedErr.Packages, p)
		}
	}
	switch {
	case len(vanishedErr.Packages) > 0:
		return vanishedErr
	case noSpace.MatchString(text):
		return fmt.Errorf("fetch packages from %s: %w", mirror, unix.ENOSPC)
	case noKey.MatchString(text): // the mirror's Release file is then missing too
		return fmt.Errorf("fetch packages from %s: this machine does not have the keys of %s: %s; %s", mirror, Suite, cause(text), install("debian-archive-keyring in its newest version"))
	case noMirror.MatchString(text):
		return fmt.Errorf("fetch packages from %s: %w: %s", mirror, ErrUnreachable, cause(text))
	default:
		return fmt.Errorf("fetch packages from %s: %w: %s", mirror, err, cause(text))
	}
}

// cause returns the first error, which causes the others, or else the last message.
func cause(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		last = line
		if cause, ok := strings.CutPrefix(line, "E: "); ok {
			return cause
		}
	}
	return last
}

// defaultMirror is Debian's own, which redirects to a nearby mirror.
const defaultMirror = "http://deb.debian.org/debian"

// hostMirror returns the mirror of the host's apt if the host is Debian, else the default.
func hostMirror(root string) string {
	release, err := os.ReadFile(filepath.Join(root, "etc/os-release"))
	if err != nil || !slices.Contains(strings.Split(string(release), "\n"), "ID=debian") {
		return defaultMirror
	}
	files := []string{filepath.Join(root, "etc/apt/sources.list")}
	for _, pattern := range []string{"*.sources", "*.list"} {
		found, _ := filepath.Glob(filepath.Join(root, "etc/apt/sources.list.d", pattern)) // the pattern is valid
		files = append(files, found...)
	}
	for _, file := range files {
		content, _ := os.ReadFile(file) // a file that cannot be read has no mirror
		if found := aptMirror.FindSubmatch(content); found != nil {
			return string(found[1])
		}
	}
	return defaultMirror
}

// aptMirror matches the mirror of Debian in a line of apt's sources, in either format: sources.list(5). The URLs of security updates and
// of other archives have other names.
var aptMirror = regexp.MustCompile(`(?m)^[ \t]*(?:deb|(?i:URIs:))[ \t](?:.*?[ \t])??(https?://\S+/debian)/?(?:\s|$)`)
