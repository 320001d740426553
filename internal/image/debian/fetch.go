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

	"github.com/touchstone-bench/touchstone/internal/process"
)

// mmdebstrap fetches and unpacks packages.
const mmdebstrap = "mmdebstrap"

// snapshots is the archive of all states that Debian was ever in. A test has another one.
var snapshots = "http://snapshot.debian.org/archive/debian/"

const (
	fetchLimit = 30 * time.Minute // for one call of mmdebstrap
	stopGrace  = 10 * time.Second // for it to clean up when it is told to stop
)

// keyrings are where the keys of Debian's archive lie, on Debian and elsewhere.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-keyring.gpg",
	"/usr/share/keyrings/debian-archive-keyring.pgp",
	"/etc/apt/trusted.gpg.d/debian-archive-*",
	"/usr/share/keyrings/debian-archive-" + Suite + "-*",
}

// VanishedError says that a mirror has not the versions that a lock names.
type VanishedError struct {
	Packages []Package // with name, and the version if it is known
	Mirror   string
}

func (e *VanishedError) Error() string {
	var names []string
	for _, p := range e.Packages {
		names = append(names, strings.TrimSpace(p.Name+" "+p.Version))
	}
	return fmt.Sprintf("%s has not %s", e.Mirror, strings.Join(names, ", "))
}

// ErrUnreachable says that a mirror could not be reached.
var ErrUnreachable = errors.New("the mirror cannot be reached")

// fetcher fetches packages into a directory.
type fetcher struct {
	launcher *process.Launcher
	dir      string
	progress func(string)
}

// ready makes sure that there is what fetching needs.
func (f *fetcher) ready() error {
	for program, of := range map[string]string{mmdebstrap: "mmdebstrap", "apt-get": "apt", "dpkg-deb": "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; %s", err, install(of))
		}
	}
	there := func(pattern string) bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) > 0
	}
	if !slices.ContainsFunc(keyrings, there) {
		return fmt.Errorf("the keys of Debian's archive are not there (%s); %s", keyrings[0], install("debian-archive-keyring"))
	}
	return nil
}

// install is the advice for what is missing.
func install(what string) string {
	return fmt.Sprintf("install the package %s, or load an image that was saved on another machine: touchstone image load FILE", what)
}

// request is what to fetch.
type request struct {
	arch     string
	packages []string // names, or name=version
	mirror   string
	lists    bool // keep the lists of packages too
}

// fetch writes a tar archive with the packages unpacked, and with their files in archivesDir. Nothing of
// another architecture is executed.
func (f *fetcher) fetch(ctx context.Context, r request, as string) (*os.File, error) {
	file, err := os.Create(filepath.Join(f.dir, as))
	if err != nil {
		return nil, err
	}
	skip := "cleanup/apt/cache"
	if r.lists {
		skip += ",cleanup/apt/lists"
	}
	args := []string{
		"--mode=" + mode(), "--variant=extract", "--format=tar", "--architectures=" + r.arch, "--components=main",
		"--include=" + strings.Join(r.packages, ","), "--skip=chroot/mount," + skip,
		`--aptopt=Acquire::Check-Valid-Until "false"`, // of a snapshot it has passed
		`--aptopt=Acquire::Retries "2"`, `--aptopt=Acquire::http::Timeout "20"`, `--aptopt=Acquire::https::Timeout "20"`,
		Suite, "-", r.mirror,
	}
	messages := &messages{progress: f.progress}
	if err := f.run(ctx, args, file, messages); err != nil {
		_ = file.Close() // it is of no use
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, messages.explain(err, r.mirror)
	}
	return file, nil
}

// mode is how mmdebstrap works: without root so that it needs nothing of the host, no namespace and no fakeroot. Who
// owns what is not of interest, and nothing is executed.
func mode() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "chrootless"
}

// run runs mmdebstrap. When the context ends, it is told to stop and has some time to remove what it
// has made; only then is it killed.
func (f *fetcher) run(ctx context.Context, args []string, stdout *os.File, stderr *messages) error {
	limited, cancel := context.WithTimeoutCause(ctx, fetchLimit, fmt.Errorf("%s did not end within %v", mmdebstrap, fetchLimit))
	defer cancel()
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	cmd := exec.CommandContext(hard, mmdebstrap, args...)
	// Beside the image there is room.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SOURCE_DATE_EPOCH=0", "TMPDIR="+f.dir)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	child, err := f.launcher.Spawn(cmd)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(limited, func() {
		_ = cmd.Process.Signal(unix.SIGTERM) // it may have ended
		grace, cancel := context.WithTimeout(hard, stopGrace)
		defer cancel()
		<-grace.Done()
		kill()
	})
	exit := child.Wait()
	stop()
	if limited.Err() != nil {
		return context.Cause(limited)
	}
	if exit.Status != 0 {
		return &process.ExitError{Command: mmdebstrap, Exit: exit}
	}
	return nil
}

// steps are those of mmdebstrap that take their time.
var steps = map[string]string{
	"I: running apt-get update...":        "reading the lists of packages",
	"I: downloading packages with apt...": "downloading packages",
	"I: extracting archives...":           "unpacking packages",
	"I: creating tarball...":              "reading packages",
}

// maxMessages bounds what is kept of the messages of mmdebstrap, in bytes.
const maxMessages = 64 << 10

// messages are what mmdebstrap says: its steps are passed on, all is kept for explain.
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

// What apt says of a package or version that a mirror has not, of a file that it has no more, and of a mirror
// that is not there.
var (
	noVersion = regexp.MustCompile(`E: Version '([^'\n]+)' for '([^'\n]+)' was not found`)
	noPackage = regexp.MustCompile(`E: Unable to locate package (\S+)`)
	noFile    = regexp.MustCompile(`/([a-z0-9][a-z0-9+.-]+)_([^_/\s]+)_[a-z0-9]+\.deb\s+404`)
	noMirror  = regexp.MustCompile(`Failed to fetch \S+/InRelease|does not have a Release file|Could not (connect|resolve)|Temporary failure resolving`)
	noKey     = regexp.MustCompile(`NO_PUBKEY|EXPKEYSIG|signatures? (couldn't|were invalid|could not)|Missing key`)
	noSpace   = regexp.MustCompile(`No space left on device|have enough free space|write error`)
)

// explain gives the error that the messages tell of.
func (m *messages) explain(err error, mirror string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := string(m.text)
	vanished := &VanishedError{Mirror: mirror}
	for _, found := range noVersion.FindAllStringSubmatch(text, -1) {
		vanished.add(Package{Name: found[2], Version: found[1]})
	}
	for _, found := range noPackage.FindAllStringSubmatch(text, -1) {
		vanished.add(Package{Name: found[1]})
	}
	for _, found := range noFile.FindAllStringSubmatch(text, -1) {
		vanished.add(Package{Name: found[1], Version: strings.ReplaceAll(found[2], "%3a", ":")})
	}
	switch {
	case len(vanished.Packages) > 0:
		return vanished
	case noSpace.MatchString(text):
		return fmt.Errorf("fetch packages from %s: %w", mirror, unix.ENOSPC)
	case noKey.MatchString(text): // then the mirror's Release file was not fetched either
		return fmt.Errorf("fetch packages from %s: the keys here are not those of %s: %s; %s", mirror, Suite, cause(text), install("debian-archive-keyring, as new as you can get it,"))
	case noMirror.MatchString(text):
		return fmt.Errorf("fetch packages from %s: %w: %s", mirror, ErrUnreachable, cause(text))
	default:
		return fmt.Errorf("fetch packages from %s: %w: %s", mirror, err, cause(text))
	}
}

func (e *VanishedError) add(p Package) {
	if !slices.Contains(e.Packages, p) {
		e.Packages = append(e.Packages, p)
	}
}

// cause gives the first error, on which the others follow, or else what was said last.
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
