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

// Current returns the list of packages in use for an architecture: the list that Keep has stored in the cache, else the embedded
// list. An embedded list with a later date replaces a stored one.
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
	embedded, err := Embedded(arch)
	if err == nil && !lock.Date.Before(embedded.Date) {
		return lock, nil
	}
	return embedded, err
}

func ownLock(cache *image.Cache, arch string) string {
	return filepath.Join(cache.Dir(), "packages-"+arch+".lock")
}

// Keep stores a list in the cache, so that it is in use.
func Keep(cache *image.Cache, lock Lock) error {
	file := ownLock(cache, lock.Arch)
	temporary := file + ".new"
	if err := os.WriteFile(temporary, lock.Format(), 0o644); err != nil {
		return fmt.Errorf("store the list of packages: %w", err)
	}
	return os.Rename(temporary, file)
}

// Discard returns to the embedded list of packages. It is idempotent.
func Discard(cache *image.Cache, arch string) error {
	return os.RemoveAll(ownLock(cache, arch))
}

// Renew builds the image from a mirror's current packages, and stores their list.
func Renew(ctx context.Context, o Options) (*Image, error) {
	lock, err := Update(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Lock = &lock
	img, err := Build(ctx, o)
	if err != nil {
		return nil, err
	}
	// Not before: with a list that cannot be built, the next run would have no image.
	return img, Keep(img.builder.cache, lock)
}

// Update returns the list of a mirror's current packages for the image.
func Update(ctx context.Context, o Options) (lock Lock, err error) {
	o.setDefaults()
	defer func() {
		if err != nil {
			lock, err = Lock{}, fmt.Errorf("renew the list of packages for %s: %w", o.Arch, err)
		}
	}()
	cache, err := image.OpenCache(o.Cache)
	if err != nil {
		return Lock{}, err
	}
	if _, ok := architectures[o.Arch]; !ok {
		return Lock{}, fmt.Errorf("it has no image; images exist for %s", strings.Join(Architectures(), ", "))
	}
	dir, release, err := cache.Exclusive(ctx, image.UpdatePrefix+o.Arch, func() { o.progress("waiting for another touchstone that renews the same list") })
	if err != nil {
		return Lock{}, err
	}
	defer func() { err = errors.Join(err, release()) }()
	f, err := o.fetcher(dir, roomUpdate)
	if err != nil {
		return Lock{}, err
	}
	lock = Lock{Suite: Suite, Arch: o.Arch}
	for i, packages := range [][]string{wanted().Packages, {clipPackage}} {
		if err := lock.ask(ctx, f, request{arch: o.Arch, packages: packages, mirror: o.Mirror, lists: true}, i == 1); err != nil {
			return Lock{}, err
		}
	}
	embedded, err := Embedded(o.Arch)
	if err != nil {
		return Lock{}, err
	}
	if err := lock.notBefore(embedded); err != nil {
		return Lock{}, fmt.Errorf("read the packages of %s: %w", o.Mirror, err)
	}
	// This checks that the list can be read.
	return ParseLock(lock.Format())
}

// ErrOlder reports that a mirror has older packages than the embedded list. The signature of an old release is still valid, so a stale or
// hostile mirror could bring back packages with known errors.
var ErrOlder = errors.New("the mirror is older than the list of this touchstone")

// notBefore returns an error if a list is older than another.
func (l Lock) notBefore(reference Lock) error {
	if !l.Date.Before(reference.Date) {
		return nil
	}
	const day = time.DateOnly
	return fmt.Errorf("%w: its release is of %s, and the list of %s; name another mirror with --mirror URL", ErrOlder, l.Date.Format(day), reference.Date.Format(day))
}

// roomUpdate is the disk space of an update, in bytes.
const roomUpdate = 2 << 30

// ask fetches packages with their dependencies, and adds them to the lock.
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
		i, ok := l.search(d.Name)
		if !ok {
			l.Packages = slices.Insert(l.Packages, i, d.Package)
		}
		l.Packages[i].Clip = clip
	}
	return nil
}

// releaseDate returns the date of the mirror's suite.
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
				moment, err := time.Parse(time.RFC1123, date)
				if err != nil {
					return time.Time{}, fmt.Errorf("read the date of the suite: %w", err)
				}
				return moment.UTC(), nil
			}
		}
	}
	return time.Time{}, errors.New("the mirror's Release file has no date")
}
