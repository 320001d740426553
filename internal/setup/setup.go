// Package setup installs runtimes and engines into the store of package parts, for `touchstone setup`.
//
// A part comes from the first of these sources that has it: a package of the distribution, a release of the project, and a build from pinned
// sources. The system's own copy is enough if it is recent. The lock (lock.go) pins versions, URLs and checksums in the binary; a checksum
// never comes from the server of the file.
//
// A part is complete or missing. Its files lie in a directory .new-* of the store until they are complete, checked and on the disk, and one
// container has run with them. Then a rename makes them the version of the part, and another one makes the version current. A lock on the
// store lets other set-ups wait. The next set-up and Sweep remove the directory of a killed one.
//
// Rejected: apt-get install and the like, which change the system that is measured; a build in the user's directories, which a killed
// set-up would leave behind.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// Setup installs parts. Its methods may not run concurrently: only one launcher of processes can exist.
type Setup struct {
	// Root is the store.
	Root string
	// Recipes are the parts that can be installed.
	Recipes []Recipe
	// Arch is the architecture of the programs, in Go's words. Programs of another architecture are not tried.
	Arch string
	// Touchstone is the version of this program.
	Touchstone string
	// Source restricts the sources to one kind; empty for all. The system's copy does not count then.
	Source parts.Kind
	// From is a directory with files, in place of the network; empty without one.
	From string
	// Client fetches releases.
	Client *http.Client
	// Step receives each step that may take time.
	Step func(step string)
	// Wait is called once if another set-up is under way.
	Wait func()
	// System finds the system's copy of a program, also in further directories.
	System func(program string, dirs []string) (path string, ok bool)
	// Try runs a container with a part that is not installed yet.
	Try func(ctx context.Context, part parts.Part) error
}

// UsageError is a wrong argument.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Item is a part to install, or the reason why it is not installed.
type Item struct {
	Recipe
	// System is the path of the system's copy if that is recent enough. Then nothing is installed.
	System string
	// Version is the version to install, or of the system's copy.
	Version string
	// IsInstalled is set if the store has the version already.
	IsInstalled bool
	Origin      parts.Origin
	// Size is the number of bytes to fetch, or the rough size of a build.
	Size int64
	// Minutes is the time of a build on two CPUs; 0 without a build.
	Minutes int
	// Destination is the directory of the version.
	Destination string
	// Err is the reason why no source has the part.
	Err error

	space   int64 // bytes in the store while the part is made
	produce func(ctx context.Context, w *work) error
}

// Title is the name with the version.
func (i Item) Title() string { return parts.Part{Name: i.Name, Version: i.Version}.String() }

// isForeign reports whether the programs are for another architecture than this machine's.
func (s *Setup) isForeign() bool { return s.Arch != runtime.GOARCH }

// Plan finds the source of each named part, as in runc or containerd@1.7.35. An item without a source has the reason.
func (s *Setup) Plan(ctx context.Context, names []string) ([]Item, error) {
	var items []Item
	return items, s.withLauncher(func(l *process.Launcher) error {
		for _, name := range names {
			recipe, isExact, err := s.find(name)
			if err != nil {
				return err
			}
			item := Item{Recipe: recipe, Version: recipe.Version, Err: recipe.refuseUser()}
			if item.Err == nil {
				item, err = s.plan(ctx, l, recipe, isExact)
			}
			if err != nil {
				return err
			}
			items = append(items, item)
		}
		return nil
	})
}

// Gaps finds the sources of the parts that this machine lacks: no copy is on PATH, or an old one.
func (s *Setup) Gaps(ctx context.Context) ([]Item, error) {
	var items []Item
	return items, s.withLauncher(func(l *process.Launcher) error {
		list, err := parts.List(s.Root)
		if err != nil {
			return err
		}
		for n, recipe := range s.Recipes {
			isOther := slices.ContainsFunc(s.Recipes[:n], func(r Recipe) bool { return r.Name == recipe.Name })
			isThere := slices.ContainsFunc(list, func(p parts.Part) bool { return p.Current && p.Name == recipe.Name && recipe.isRecent(p.Version) })
			if isOther || isThere || recipe.OnlyNamed || recipe.refuseUser() != nil {
				continue
			}
			item, err := s.plan(ctx, l, recipe, false)
			if err != nil {
				return err
			}
			if item.System == "" {
				items = append(items, item)
			}
		}
		return nil
	})
}

// withLauncher calls f with a launcher of processes.
func (s *Setup) withLauncher(f func(l *process.Launcher) error) error {
	l, err := process.New(process.Options{})
	if err != nil {
		return err
	}
	return errors.Join(f(l), l.Close())
}

// find returns the recipe for NAME or NAME@VERSION. isExact means that a version is given.
func (s *Setup) find(text string) (recipe Recipe, isExact bool, err error) {
	name, version, isExact := strings.Cut(text, "@")
	var names, versions []string
	for _, r := range s.Recipes {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
		if r.Name != name {
			continue
		}
		if !isExact || r.Version == version {
			return r, isExact, nil
		}
		versions = append(versions, r.Version)
	}
	if versions != nil {
		return Recipe{}, false, &UsageError{fmt.Errorf("no version %q of %s is known; known is %s", version, name, strings.Join(versions, ", "))}
	}
	return Recipe{}, false, &UsageError{fmt.Errorf("no part is named %q%s; the parts are %s", name, suggest(name, names), strings.Join(names, ", "))}
}

// suggest returns a question about the most similar name; empty if none is similar.
func suggest(name string, names []string) string {
	if strings.EqualFold(name, "gvisor") {
		name = "runsc" // its runtime
	}
	name = strings.ToLower(name)
	best, limit := "", 3 // more typing errors are another word
	for _, candidate := range names {
		d := distance(name, candidate)
		if name != "" && (strings.Contains(name, candidate) || strings.HasPrefix(candidate, name)) {
			d = min(d, 1)
		}
		if d < limit {
			best, limit = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s?", best)
}

// distance is the number of insertions, deletions and substitutions between two names (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j]+1, row[j+1]+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			} else {
				next = min(next, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// plan finds the source of a part.
func (s *Setup) plan(ctx context.Context, l *process.Launcher, recipe Recipe, isExact bool) (Item, error) {
	item := Item{Recipe: recipe, Version: recipe.Version}
	var reasons []string
	if !isExact && s.Source == "" && s.From == "" && !s.isForeign() {
		path, version, reason := s.systemCopy(ctx, l, recipe)
		if path != "" {
			item.System, item.Version = path, version
			return item, nil
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	for _, src := range s.sources() {
		err := src(ctx, l, &item, isExact)
		if ctx.Err() != nil {
			return item, context.Cause(ctx)
		}
		if err == nil {
			return s.place(item), nil
		}
		reasons = append(reasons, err.Error())
	}
	item.Err = fmt.Errorf("%s has no source here: %s", item.Title(), strings.Join(reasons, "; "))
	if recipe.Manual != "" {
		item.Err = fmt.Errorf("%s has no source here: %s", recipe.Name, recipe.Manual)
	}
	return item, nil
}

// A source completes an item. An error is the reason why the source lacks the part.
type source func(ctx context.Context, l *process.Launcher, item *Item, isExact bool) error

// sources lists the sources, the preferred ones first.
func (s *Setup) sources() []source {
	if s.From != "" {
		return []source{s.fromDirectory}
	}
	var list []source
	for _, kind := range parts.Kinds() {
		if s.Source != "" && s.Source != kind {
			continue
		}
		switch kind {
		case parts.Package:
			list = append(list, s.fromPackage)
		case parts.Release:
			list = append(list, s.fromRelease)
		case parts.Build:
			list = append(list, s.fromBuild)
		}
	}
	return list
}

// place notes the destination of an item, and whether it is there.
func (s *Setup) place(item Item) Item {
	part, err := parts.Read(s.directory(item.Name, item.Version))
	item.Destination = s.directory(item.Name, item.Version)
	item.IsInstalled = err == nil && part.Name == item.Name && part.Version == item.Version
	return item
}

// fromRelease takes the project's own release.
func (s *Setup) fromRelease(_ context.Context, _ *process.Launcher, item *Item, _ bool) error {
	release, ok := item.Releases[s.Arch]
	if !ok {
		return fmt.Errorf("the lock has no release for %s", s.Arch)
	}
	item.Origin = parts.Origin{Kind: parts.Release, Source: release.URL, Digest: "sha256:" + release.SHA256}
	item.Size, item.space = release.Size, 4*release.Size
	item.produce = func(ctx context.Context, w *work) error {
		s.Step("fetching " + item.Title())
		file, err := release.fetch(ctx, s.Client, w.dir)
		if err != nil {
			return err
		}
		return unpack(file, w.bin, item.Programs)
	}
	return nil
}

// fromBuild builds the part, if the machine has the tools for it.
func (s *Setup) fromBuild(ctx context.Context, l *process.Launcher, item *Item, _ bool) error {
	b := item.Build
	switch {
	case b == nil:
		return errors.New("no build of it is known")
	case s.isForeign() && !b.Crosses:
		return fmt.Errorf("no build of it for %s is known on %s", s.Arch, runtime.GOARCH)
	case b.Arches != nil && !slices.Contains(b.Arches, s.Arch):
		return fmt.Errorf("no build of it for %s is known; known is %s", s.Arch, strings.Join(b.Arches, ", "))
	}
	var missing []string
	for _, need := range b.Needs {
		if reason := need(ctx, l); reason != "" {
			missing = append(missing, reason)
		}
	}
	if missing != nil {
		return fmt.Errorf("its build needs %s", strings.Join(missing, ", and "))
	}
	item.Origin = parts.Origin{Kind: parts.Build, Source: b.Source, Digest: b.Digest}
	item.Size, item.Minutes, item.space = item.Bytes, b.Minutes, item.Bytes+b.Space
	item.produce = func(ctx context.Context, w *work) error {
		s.Step("building " + item.Title())
		return b.Run(ctx, w)
	}
	return nil
}

// refuseUser returns an error if the part is of no use without root.
func (r Recipe) refuseUser() error {
	if r.NeedsRoot == "" || os.Geteuid() == 0 {
		return nil
	}
	return fmt.Errorf("%s is of no use without root: %s; run touchstone setup as root", r.Name, r.NeedsRoot)
}

// isRecent reports whether a copy of the part with this version is recent enough.
func (r Recipe) isRecent(version string) bool {
	return parts.Compare(r.number(version), cmp.Or(r.Least, r.Version)) >= 0
}
