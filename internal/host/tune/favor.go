package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
)

// favordynmods is the mount option of cgroup hierarchies that makes moves between cgroups fast, and forks and exits slower. Its lock belongs to all
// hierarchies, so the option of any hierarchy counts for all of them.
const favordynmods = "favordynmods"

// Versions of Linux that matter for favordynmods.
var (
	favorSince     = version{6, 0} // before, moves are always fast (commit 3942a9bd7b58)
	favorParameter = version{6, 7} // cgroup_favordynmods= on the kernel command line
	favorLasts     = version{6, 18}
)

// version is a version of Linux.
type version struct{ major, minor int }

func (v version) before(o version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

// version returns the version of the kernel. It is false if the release has another form.
func (t host) version() (version, bool) {
	numbers := strings.FieldsFunc(t.Text("proc/sys/kernel/osrelease"), func(r rune) bool { return r < '0' || r > '9' })
	if len(numbers) < 2 {
		return version{}, false
	}
	major, err := strconv.Atoi(numbers[0])
	minor, err2 := strconv.Atoi(numbers[1])
	return version{major, minor}, err == nil && err2 == nil
}

// groupMounts returns the mounted cgroup hierarchies with their options.
func (t host) groupMounts() ([]*mountinfo.Info, error) {
	f, err := t.Open("proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	mounts, err := mountinfo.GetMountsFromReader(f, func(i *mountinfo.Info) (skip, stop bool) {
		return i.FSType != "cgroup" && i.FSType != "cgroup2", false
	})
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	return mounts, nil
}

func hasOption(options, name string) bool {
	return slices.Contains(strings.Split(options, ","), name)
}

func isUnified(i *mountinfo.Info) bool { return i.FSType == "cgroup2" }

// unifiedOptions returns the options of cgroup2 that a remount must repeat to keep them.
func unifiedOptions(i *mountinfo.Info) []string {
	repeat := []string{"nsdelegate", "memory_localevents", "memory_recursiveprot", "memory_hugetlb_accounting", "pids_localevents"}
	return slices.DeleteFunc(strings.Split(i.VFSOptions, ","), func(o string) bool { return !slices.Contains(repeat, o) })
}

// mountFlags are the options of a mount point that a remount must repeat.
var mountFlags = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
}

// favorTunable returns the mount of cgroup2 if the option can be set and put back there.
func (t host) favorTunable() (*mountinfo.Info, error) {
	mounts, err := t.groupMounts()
	if err != nil {
		return nil, err
	}
	kernel, ok := t.version()
	index := slices.IndexFunc(mounts, isUnified)
	switch {
	case !ok || kernel.before(favorSince):
		return nil, errors.New("the option exists since Linux 6.0")
	case index < 0:
		return nil, errors.New("no cgroup2 is mounted, and a v1 hierarchy does not accept the option in a remount; boot with cgroup_favordynmods=true")
	case !kernel.before(favorLasts):
		return nil, errors.New("since Linux 6.18 it cannot be put back before the next boot; boot with cgroup_favordynmods=true")
	}
	return mounts[index], nil
}

// readFavor returns on or off for the mount at a directory.
func (t host) readFavor(dir string) (string, error) {
	mounts, err := t.groupMounts()
	if err != nil {
		return "", err
	}
	index := slices.IndexFunc(mounts, func(i *mountinfo.Info) bool { return isUnified(i) && i.Mountpoint == dir })
	switch {
	case index < 0:
		return "", errGone
	case hasOption(mounts[index].VFSOptions, favordynmods):
		return "on", nil
	}
	return "off", nil
}

// setFavor remounts cgroup2 at a directory with the option or without it. All other options stay.
func (t *Tuner) setFavor(dir, value string) error {
	mounts, err := t.groupMounts()
	if err != nil {
		return err
	}
	index := slices.IndexFunc(mounts, func(i *mountinfo.Info) bool { return isUnified(i) && i.Mountpoint == dir })
	if index < 0 {
		return errGone
	}
	options := unifiedOptions(mounts[index])
	if value == "on" {
		options = append(options, favordynmods)
	}
	flags := uintptr(unix.MS_REMOUNT)
	for option := range strings.SplitSeq(mounts[index].Options, ",") {
		flags |= mountFlags[option]
	}
	return t.remount(filepath.Join(t.root, dir), flags, strings.Join(options, ","))
}

// Favordynmods returns the state of the option on a machine, and a remedy if it is off. The error is a [machine.Unknown] if the kernel does not show the state.
func Favordynmods(t machine.Tree) (state, remedy string, err error) {
	m := host{t}
	mounts, err := m.groupMounts()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", machine.Unknown("/proc has no table of mounts")
	case err != nil:
		return "", "", err
	}
	kernel, ok := m.version()
	index := slices.IndexFunc(mounts, isUnified)
	switch {
	case len(mounts) == 0:
		return "", "", machine.Unknown("no cgroup file system is mounted")
	case slices.ContainsFunc(mounts, func(i *mountinfo.Info) bool { return hasOption(i.VFSOptions, favordynmods) }):
		return "on", "", nil
	case !ok:
		return "", "", machine.Unknown("the version of the kernel is not known")
	case kernel.before(favorSince):
		return "always on before Linux 6.0", "", nil
	case kernel.before(favorParameter) && index < 0:
		return "off", "boot with cgroup v2 or with Linux 6.7 or newer: a v1 hierarchy has this option only when it is first mounted", nil
	}
	var ways []string
	if !kernel.before(favorParameter) {
		ways = append(ways, "boot with cgroup_favordynmods=true")
	}
	if index >= 0 {
		lasts := ""
		if !kernel.before(favorLasts) {
			lasts = ", which lasts until the next boot"
		}
		ways = append(ways, fmt.Sprintf("mount -o remount,%s %s%s", strings.Join(append(unifiedOptions(mounts[index]), favordynmods), ","), mounts[index].Mountpoint, lasts))
	}
	return "off", strings.Join(ways, "; or "), nil
}
