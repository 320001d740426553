package debian

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// Current gives the list of packages in use for an architecture: the one that Keep has put into the
// cache, else the embedded one.
func Current(cache *image.Cache, arch string) (Lock, error) {
	file := ownLock(cache, arch)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Embedded(arch)
	}
	if err != nil {
		return Lock{}, err
	}
	lock, err := ParseLock(content)
	if err != nil {
		return Lock{}, fmt.Errorf("read %s: %w; remove it, or renew it with touchstone image build --update", file, err)
	}
	return lock, nil
}

func ownLock(cache *image.Cache, arch string) string {
	return filepath.Join(cache.Dir(), "packages-"+arch+".lock")
}

// Keep makes a list the one in use.
func Keep(cache *image.Cache, lock Lock) error {
	file := ownLock(cache, lock.Arch)
	temporary := file + ".new"
	if err := os.WriteFile(temporary, lock.Format(), 0o644); err != nil {
		return fmt.Errorf("keep the list of packages: %w", err)
	}
	return os.Rename(temporary, file)
}

// Discard makes the embedded list of packages the one in use again. It is idempotent.
func Discard(cache *image.Cache, arch string) error {
	if err := os.Remove(ownLock(cache, arch)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Renew makes the image of what a mirror has now, and its list the one in use.
func Renew(ctx context.Context, o Options) (*Image, error) {
	lock, err := Update(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Lock = &lock
	made, err := Build(ctx, o)
	if err != nil {
		return nil, err
	}
	// Not before: a list that no image can be made of would leave the next run without one.
	return made, Keep(made.cache, lock)
}

// Update asks a mirror what packages the image is made of now.
func Update(ctx context.Context, o Options) (Lock, error) {
	lock, err := update(ctx, o)
	if err != nil {
		return Lock{}, fmt.Errorf("renew the list of packages for %s: %w", o.Arch, err)
	}
	return lock, nil
}

func update(ctx context.Context, o Options) (lock Lock, err error) {
	cache, err := image.OpenCache(o.Cache)
	if err != nil {
		return Lock{}, err
	}
	if _, ok := architectures[o.Arch]; !ok {
		return Lock{}, fmt.Errorf("there is no image for it, only for %s", strings.Join(Architectures(), ", "))
	}
	dir, release, err := cache.Exclusive(ctx, "update-"+o.Arch, func() { o.progress("waiting for another touchstone that does the same") })
	if err != nil {
		return Lock{}, err
	}
	defer func() { err = errors.Join(err, release()) }()
	f := &fetcher{launcher: o.Launcher, dir: dir, progress: func(step string) { o.progress("%s", step) }}
	if err := f.ready(); err != nil {
		return Lock{}, err
	}
	if err := image.RequireSpace(dir, roomUpdate); err != nil {
		return Lock{}, err
	}
	if o.Mirror == "" {
		o.Mirror = hostMirror("/")
	}
	lock = Lock{Suite: Suite, Arch: o.Arch}
	for _, set := range []struct {
		packages []string
		clip     bool
	}{{wantedPackages(), false}, {[]string{clipPackage}, true}} {
		if err := lock.ask(ctx, f, request{arch: o.Arch, packages: set.packages, mirror: o.Mirror, lists: true}, set.clip); err != nil {
			return Lock{}, err
		}
	}
	// What is read again is what will be.
	return ParseLock(lock.Format())
}

// roomUpdate is what an update takes on the disk, in bytes.
const roomUpdate = 2 << 30

// ask fetches packages with all that they depend on, and adds them to the lock.
func (l *Lock) ask(ctx context.Context, f *fetcher, r request, clip bool) error {
	file, err := f.fetch(ctx, r, "update.tar")
	if err != nil {
		return err
	}
	p, err := readPackages(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	defer p.close()
	date, err := releaseDate(p.tree)
	if err != nil {
		return err
	}
	if l.Date.IsZero() {
		l.Date = date
	}
	if !l.Date.Equal(date) {
		return errors.New("the mirror has changed meanwhile; try again")
	}
	for _, d := range p.debs {
		i, there := slices.BinarySearchFunc(l.Packages, d.Name, func(p Package, name string) int { return strings.Compare(p.Name, name) })
		if !there {
			l.Packages = slices.Insert(l.Packages, i, d.Package)
		}
		l.Packages[i].Clip = clip
	}
	return nil
}

// releaseDate gives the date of the suite as the mirror has it.
func releaseDate(t *tree) (time.Time, error) {
	for name := range t.nodes {
		if path.Dir(name) != "var/lib/apt/lists" || !strings.HasSuffix(name, "_InRelease") {
			continue
		}
		r, err := t.open(name)
		if err != nil {
			return time.Time{}, err
		}
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			if date, ok := strings.CutPrefix(lines.Text(), "Date: "); ok {
				return parseReleaseDate(date)
			}
		}
	}
	return time.Time{}, errors.New("the mirror does not say of what date it is")
}

func parseReleaseDate(date string) (time.Time, error) {
	at, err := time.Parse(time.RFC1123, date)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the date of the suite: %w", err)
	}
	return at.UTC(), nil
}
