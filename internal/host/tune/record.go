package tune

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// The record of a tuning is on disk, unlike the settings. So a record that is older than the boot means that the machine was restarted and
// the settings are the system's again.
const (
	recordDir  = "var/lib/touchstone"
	recordName = "host-tuning.json"
	bootFile   = "proc/sys/kernel/random/boot_id"

	lockDir  = "run"
	lockName = "touchstone-host-tuning.lock"
)

// maxRecord bounds the record, in bytes. A machine with a thousand frequency policies needs 200 KiB.
const maxRecord = 4 << 20

// Record is the record of the changes that a Tuner has made.
type Record struct {
	// Boot is the kernel's ID of the boot. The changes were made after this boot and before the next one.
	Boot string `json:"boot"`
	// Began is the time of the first change, for display.
	Began time.Time `json:"began"`
	// Changes are in the order of their execution.
	Changes []Change `json:"changes"`
	// Offline are the CPUs that were offline before SMT was switched off. Switching it on starts them too.
	Offline []int `json:"offline_cpus,omitempty"`

	// Restarted is set if the machine was restarted since. No change is in effect then.
	Restarted bool `json:"-"`
}

// Change is the change of one value.
type Change struct {
	Setting string `json:"setting"`
	// Key is the file below the root of the machine. For irqbalance it is the process with its start, and for favordynmods the mount point.
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Settings are the names of the changed settings, each once. SMT counts until the CPUs are offline again.
func (t *Record) Settings() []string {
	var names []string
	for _, c := range t.Changes {
		if !slices.Contains(names, c.Setting) {
			names = append(names, c.Setting)
		}
	}
	if len(t.Offline) > 0 && !slices.Contains(names, smt) {
		names = append(names, smt)
	}
	return names
}

// ErrNotTuned reports that no record of a tuning exists.
var ErrNotTuned = errors.New("touchstone host tune has changed nothing")

// RecordFile is the path of the record on the machine at root.
func RecordFile(root string) string { return filepath.Join(root, recordDir, recordName) }

// ReadRecord reads the record of the machine at root. Without a record the error is ErrNotTuned. A record that another user can change is
// refused, because root writes its values to the kernel.
func ReadRecord(root string) (*Record, error) {
	path := RecordFile(root)
	text, err := trust.ReadFile(path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotTuned
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the tuning: %w", err)
	}
	t := &Record{}
	err = json.Unmarshal(text, t)
	if err == nil {
		err = result.CheckNumbers(text, t)
	}
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the tuning: %s: %w; restart the machine, which resets all settings, and remove the file", path, err)
	}
	boot, err := bootID(root)
	t.Restarted = boot != t.Boot
	return t, err
}

// check refuses a change of anything that a Tuner does not change.
func (t *Record) check() error {
	for _, c := range t.Changes {
		k, ok := knobOf(c.Setting)
		switch {
		case !ok:
			return fmt.Errorf("no setting has the name %q", c.Setting)
		case !k.owns(c.Key) || c.Key != filepath.Clean(c.Key):
			return fmt.Errorf("%s does not belong to the setting %s", c.Key, c.Setting)
		case c.Before == "" || strings.ContainsAny(c.Before+c.After, "\n\x00"):
			return fmt.Errorf("%q is no value of %s", c.Before, c.Key)
		}
	}
	for _, cpu := range t.Offline {
		if cpu < 0 {
			return fmt.Errorf("%d is no CPU", cpu)
		}
	}
	if t.Boot == "" {
		return errors.New("it has no boot ID")
	}
	return nil
}

func bootID(root string) (string, error) {
	boot, err := machine.At(root).Value(bootFile, "")
	if err != nil {
		return "", fmt.Errorf("read the ID of the boot in /%s: it decides whether a recorded setting still holds", bootFile)
	}
	return boot, nil
}

// InEffect returns the settings of the machine at root that a Tuner has changed and that are in effect. It is empty if the record cannot be
// read.
func InEffect(root string) []result.Tuned {
	record, err := ReadRecord(root)
	if err != nil || record.Restarted {
		return nil
	}
	t := New(root)
	var settings []result.Tuned
	for _, c := range record.Changes {
		k, _ := knobOf(c.Setting) // it exists, because the record is valid
		if value, err := k.read(t, c.Key); err != nil || value != c.After {
			continue
		}
		i := slices.IndexFunc(settings, func(t result.Tuned) bool { return t.Setting == c.Setting })
		if i < 0 {
			settings = append(settings, result.Tuned{Setting: c.Setting, Before: c.Before, After: c.After})
			continue
		}
		settings[i].Before, settings[i].After = with(settings[i].Before, c.Before), with(settings[i].After, c.After)
	}
	return settings
}

// with adds a value to a list of different values.
func with(list, value string) string {
	if slices.Contains(strings.Split(list, ", "), value) {
		return list
	}
	return list + ", " + value
}

// lock keeps other processes from changing the record. The file of the lock stays until the machine is restarted: if its owner removed
// it, two other processes could hold locks on two files of that name. Only root can open it. The directory of the record is created if
// needed, and removed at the end if it is empty.
func (t *Tuner) lock() (unlock func(), err error) {
	runtime, err := trust.MakeDirectory(filepath.Join(t.root, lockDir))
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(runtime, lockName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another touchstone host tune or restore is under way; wait for its end")
		}
		return nil, err
	}
	path, err := trust.MakeDirectory(filepath.Dir(RecordFile(t.root)))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_ = os.Remove(filepath.Join(path, recordName+".new")) // of a process that was killed while it saved
	return func() {
		// An empty directory is removed, unless it is at the end of a user's link.
		if path == filepath.Dir(RecordFile(t.root)) {
			_ = os.Remove(path)
		}
		_ = f.Close()
	}, nil
}

// save replaces the record and returns when the new one is on the disk. Without changes it removes the record.
func (t *Tuner) save(record *Record) (err error) {
	path := RecordFile(t.root)
	defer func() {
		if err != nil {
			err = fmt.Errorf("record the tuning: %w", err)
		}
	}()
	if len(record.Changes)+len(record.Offline) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return syncDir(filepath.Dir(path))
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	t.step()
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
