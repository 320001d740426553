// Package tune changes settings of a machine for measurements, and puts them back, also after a crash.
//
// A [Tuner] records each value on disk before it changes the first one. The record is only root's, because its values are written to the kernel.
// [InEffect] reads it for the facts of a run.
package tune

import (
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

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
)

// Status is the outcome of one value.
type Status string

// The statuses.
const (
	// Changed is a value that Apply changed.
	Changed Status = "changed"
	// Planned is a value that Apply would change.
	Planned Status = "would change"
	// Kept is a setting without a poor value.
	Kept Status = "kept"
	// Unavailable is a setting that this machine does not have, or that could not be put back.
	Unavailable Status = "not available"
	// Refused is a value that the kernel did not accept.
	Refused Status = "refused"
	// Restored is a value that Restore put back.
	Restored Status = "restored"
	// Back is a value that was as before when Restore began.
	Back Status = "already as before"
	// Foreign is a value that another program has changed since. Restore left it alone.
	Foreign Status = "left alone"
	// Gone is a value without an object: a process that has ended, or a machine that was restarted.
	Gone Status = "gone"
)

// Outcome is the outcome of one value, or of a setting without values.
type Outcome struct {
	Change
	Status Status
	// Reason is empty if the status needs none.
	Reason string
}

// Tuner changes settings of a machine for measurements, and puts them back. It records each value on disk before it changes the first one, so that
// Restore works after a crash at any time. All settings are lost when the machine is restarted.
type Tuner struct {
	root string
	host
	write   func(name, value string) error
	signal  func(key string, s unix.Signal) error
	remount func(dir string, flags uintptr, options string) error
	now     func() time.Time
	step    func() // called between two effects, for tests that crash there
}

// New returns the tuner of a machine. root is the root of its file system: "/", or a copy in tests. In a copy it changes only files.
func New(root string) *Tuner {
	t := &Tuner{
		root: root, host: host{machine.At(root)}, now: time.Now, step: func() {},
		signal: signalDaemon,
		remount: func(dir string, flags uintptr, options string) error {
			return unix.Mount("cgroup2", dir, "cgroup2", flags, options)
		},
	}
	t.write = t.writeFile
	if root != "/" {
		refusal := errors.New("the machine is a copy")
		t.signal = func(string, unix.Signal) error { return refusal }
		t.remount = func(string, uintptr, string) error { return refusal }
	}
	return t
}

// smt is the setting whose restore also starts CPUs that were offline before.
const smt = "smt"

func (c Change) isSMT() bool { return c.Setting == smt }

// knob is a setting that a Tuner can change. Its values belong to keys.
type knob struct {
	name string
	// poor returns the changes that the machine needs, and none if it needs none. The error is the reason why nothing can be changed.
	poor func(t *Tuner) ([]Change, error)
	// read returns the value of a key. The error is errGone if the object of the key no longer exists and never comes back.
	read func(t *Tuner, key string) (string, error)
	set  func(t *Tuner, key, value string) error
	// owns reports whether a key can belong to the setting.
	owns func(key string) bool
}

var errGone = errors.New("it no longer exists")

// knobs are in the order of their changes. Restore uses the reverse order. SMT comes last, because the frequency policies of the second threads exist
// only while it is on.
var knobs = []knob{
	fileKnob("governor", "the kernel has no CPU frequency driver", value{"sys/devices/system/cpu/cpufreq/policy*/scaling_governor", "", machine.Performance}),
	fileKnob("turbo", "the kernel has no switch for it", value{machine.NoTurbo, "0", "1"}, value{machine.Boost, "1", "0"}),
	fileKnob("thp", "the kernel has no transparent huge pages", value{machine.THP, "always", "madvise"}),
	fileKnob("ksm", "the kernel has no KSM", value{machine.KSM + "run", "1", "0"}),
	whenSwapping(fileKnob("swap", "the kernel has no swappiness", value{machine.Swappiness, "", "0"})),
	{name: irqbalance, poor: (*Tuner).poorDaemons, read: (*Tuner).readDaemon, set: (*Tuner).setDaemon, owns: ownsDaemon},
	{
		name: favordynmods,
		poor: func(t *Tuner) ([]Change, error) {
			mount, err := t.favorTunable()
			if err != nil || hasOption(mount.VFSOptions, favordynmods) {
				return nil, err
			}
			return []Change{{favordynmods, mount.Mountpoint, "off", "on"}}, nil
		},
		read: func(t *Tuner, dir string) (string, error) { return t.readFavor(dir) },
		set:  (*Tuner).setFavor,
		owns: func(key string) bool { return strings.HasPrefix(key, "/") },
	},
	whenRestorable(fileKnob(smt, "the kernel cannot switch it", value{machine.SMT, "on", "off"})),
}

func knobOf(name string) (knob, bool) {
	i := slices.IndexFunc(knobs, func(k knob) bool { return k.name == name })
	if i < 0 {
		return knob{}, false
	}
	return knobs[i], true
}

// Settings are the names of the settings that a Tuner can change.
func Settings() []string {
	var names []string
	for _, k := range knobs {
		names = append(names, k.name)
	}
	return names
}

// Improves reports whether the setting of a property has values that Apply tries to change.
func (t *Tuner) Improves(property string) bool {
	k, ok := knobOf(property)
	if !ok {
		return false
	}
	changes, err := k.poor(t)
	return err == nil && len(changes) > 0
}

// value is the wanted value of the files that match a pattern. An empty poor value stands for every other value.
type value struct{ pattern, poor, wanted string }

// fileKnob is a setting whose values are files of the kernel.
func fileKnob(name, reason string, values ...value) knob {
	return knob{
		name: name,
		poor: func(t *Tuner) ([]Change, error) {
			var changes []Change
			found := false
			for _, v := range values {
				for _, file := range t.Glob(v.pattern) {
					found = true
					text, err := t.readFile(file)
					if err != nil {
						return nil, err
					}
					if text == v.poor || v.poor == "" && text != v.wanted {
						changes = append(changes, Change{name, file, text, v.wanted})
					}
				}
			}
			if !found {
				return nil, errors.New(reason)
			}
			return changes, nil
		},
		read: func(t *Tuner, key string) (string, error) { return t.readFile(key) },
		set:  func(t *Tuner, key, value string) error { return t.write(key, value) },
		owns: func(key string) bool {
			return slices.ContainsFunc(values, func(v value) bool {
				match, err := path.Match(v.pattern, key)
				return match && err == nil
			})
		},
	}
}

// readFile returns the value of a file, or the choice in brackets of a file with several.
func (t *Tuner) readFile(name string) (string, error) {
	text, err := t.Value(name, "/"+name+" does not exist")
	if err != nil {
		return "", err
	}
	return machine.Choice(text), nil
}

func (t *Tuner) writeFile(name, value string) error {
	f, err := os.OpenFile(filepath.Join(t.root, name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// whenSwapping is a setting that matters only on a machine with swap.
func whenSwapping(k knob) knob {
	find := k.poor
	k.poor = func(t *Tuner) ([]Change, error) {
		if t.Meminfo()["SwapTotal"] == 0 {
			return nil, nil
		}
		return find(t)
	}
	return k
}

// whenRestorable is SMT. A cpuset of cgroup v1 loses CPUs that go offline, and does not get them back when they come online.
func whenRestorable(k knob) knob {
	find := k.poor
	k.poor = func(t *Tuner) ([]Change, error) {
		changes, err := find(t)
		if len(changes) == 0 || err != nil {
			return nil, err
		}
		mounts, err := t.groupMounts()
		if err != nil {
			return nil, err
		}
		for _, m := range mounts {
			if isUnified(m) || !hasOption(m.VFSOptions, "cpuset") || hasOption(m.VFSOptions, "cpuset_v2_mode") {
				continue
			}
			entries, err := fs.ReadDir(t.FS, strings.TrimPrefix(m.Mountpoint, "/"))
			if err != nil {
				return nil, fmt.Errorf("look for cpusets: %w", err)
			}
			if slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
				return nil, fmt.Errorf("the cpusets of cgroup v1 below %s would lose CPUs for good; boot with nosmt, or remove the cpusets", m.Mountpoint)
			}
		}
		return changes, nil
	}
	return k
}

// change sets a value and checks that the kernel has accepted it.
func (t *Tuner) change(k knob, key, value string) error {
	t.step()
	if err := k.set(t, key, value); err != nil {
		return explain(err)
	}
	t.step()
	result, err := k.read(t, key)
	switch {
	case err != nil:
		return fmt.Errorf("check the new value: %w", err)
	case result != value:
		return fmt.Errorf("the kernel accepted %s without an error, and the value is %s", value, result)
	}
	return nil
}

// explain adds the usual cause of a kernel's refusal.
func explain(err error) error {
	for _, e := range []struct {
		is    error
		cause string
	}{
		{unix.EROFS, "the file system is read-only, as in a container; run touchstone on the host itself"},
		{unix.EACCES, "it needs root, and a container or a security module can forbid it to root"},
		{unix.EPERM, "the firmware, the hypervisor or a container forbids it"},
		{unix.EINVAL, "the driver does not know this value, as in many virtual machines"},
		{unix.ENODEV, "the hardware does not have it"},
		{unix.EBUSY, "the driver is in use by another mechanism"},
	} {
		if errors.Is(err, e.is) {
			return fmt.Errorf("%w: %s", err, e.cause)
		}
	}
	return err
}

// Apply changes the poor values of the settings in names, or of all settings if names is empty. It goes on after a refusal. Each value before the
// first Apply since the last Restore stays recorded. A dry run changes and records nothing. The error is about the record; then no further
// value was changed.
func (t *Tuner) Apply(ctx context.Context, names []string, dry bool) (outcomes []Outcome, err error) {
	if !dry {
		unlock, err := t.lock()
		if err != nil {
			return nil, fmt.Errorf("record the tuning: %w", err)
		}
		defer unlock()
	}
	record := &Record{}
	if !dry { // the record may be readable for root only
		if record, err = t.record(); err != nil {
			return nil, err
		}
	}
	var changes []Change
	for _, k := range knobs {
		if len(names) > 0 && !slices.Contains(names, k.name) {
			continue
		}
		list, err := k.poor(t)
		switch {
		case err != nil:
			outcomes = append(outcomes, Outcome{Change{Setting: k.name}, Unavailable, err.Error()})
		case len(list) == 0:
			outcomes = append(outcomes, Outcome{Change{Setting: k.name}, Kept, ""})
		}
		changes = append(changes, list...)
	}
	if dry {
		for _, c := range changes {
			outcomes = append(outcomes, Outcome{c, Planned, ""})
		}
		return outcomes, nil
	}
	if len(changes) == 0 {
		return outcomes, nil
	}
	entries, offline := slices.Clone(record.Changes), slices.Clone(record.Offline)
	for i, c := range changes {
		if index := slices.IndexFunc(entries, c.sameValue); index >= 0 {
			changes[i].Before = entries[index].Before
		} else {
			record.Changes = append(record.Changes, c)
		}
	}
	if slices.ContainsFunc(changes, Change.isSMT) {
		cpus, err := t.offlineCPUs()
		if err != nil {
			return outcomes, fmt.Errorf("record the tuning: %w", err)
		}
		record.Offline = append(record.Offline, cpus...)
		slices.Sort(record.Offline)
		record.Offline = slices.Compact(record.Offline)
	}
	if err := t.save(record); err != nil {
		return outcomes, err
	}
	for _, c := range changes {
		if ctx.Err() != nil {
			return outcomes, context.Cause(ctx)
		}
		k, _ := knobOf(c.Setting)
		if err := t.change(k, c.Key, c.After); err != nil {
			outcomes = append(outcomes, Outcome{c, Refused, err.Error()})
			// A value that is as before needs no record. Any other one does, also after an error.
			if value, err := k.read(t, c.Key); err == nil && value == c.Before && !slices.ContainsFunc(entries, c.sameValue) {
				record.Changes = slices.DeleteFunc(record.Changes, c.sameValue)
				if c.isSMT() {
					record.Offline = offline
				}
			}
			continue
		}
		outcomes = append(outcomes, Outcome{c, Changed, ""})
	}
	return outcomes, t.save(record)
}

// record returns the valid record of this boot, or a new one.
func (t *Tuner) record() (*Record, error) {
	record, err := ReadRecord(t.root)
	if err == nil && !record.Restarted {
		return record, nil
	}
	if err != nil && !errors.Is(err, ErrNotTuned) {
		return nil, err
	}
	boot, err := bootID(t.root)
	return &Record{Boot: boot, Began: t.now().UTC().Truncate(time.Second)}, err
}

func (c Change) sameValue(o Change) bool { return c.Setting == o.Setting && c.Key == o.Key }

// restarted is the reason why a value is gone.
const restarted = "the machine was restarted since, which reset it"

// Restore puts back all recorded values, the last change first, and then the CPUs that were offline. A value that another program has changed since is left alone and stays recorded, unless
// force is set. Values that are back, or whose object no longer exists, are removed from the record. Without a record the error is
// ErrNotTuned. After a restart of the machine all values are gone, and the record is removed.
func (t *Tuner) Restore(ctx context.Context, force bool) (outcomes []Outcome, err error) {
	unlock, err := t.lock()
	if err != nil {
		return nil, fmt.Errorf("read the record of the tuning: %w", err)
	}
	defer unlock()
	record, err := ReadRecord(t.root)
	if err != nil {
		return nil, err
	}
	rest := slices.Clone(record.Changes)
	for _, c := range slices.Backward(record.Changes) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		o := Outcome{c, Gone, restarted}
		if !record.Restarted {
			o = t.restore(c, force)
		}
		outcomes = append(outcomes, o)
		switch o.Status {
		case Restored, Back, Gone:
			rest = slices.DeleteFunc(rest, c.sameValue)
		default:
		}
	}
	record.Changes = rest
	if err == nil {
		var cpus []Outcome
		cpus, err = t.restoreOffline(ctx, record)
		outcomes = append(outcomes, cpus...)
	}
	return outcomes, errors.Join(err, t.save(record))
}

// restore puts one value back.
func (t *Tuner) restore(c Change, force bool) Outcome {
	k, _ := knobOf(c.Setting) // it exists, because the record is valid
	value, err := k.read(t, c.Key)
	switch {
	case errors.Is(err, errGone):
		return Outcome{c, Gone, err.Error()}
	case err != nil:
		return Outcome{c, Refused, err.Error()}
	case value == c.Before:
		return Outcome{c, Back, ""}
	case value != c.After && !force:
		return Outcome{c, Foreign, fmt.Sprintf("another program has set it to %s since", value)}
	}
	if err := t.change(k, c.Key, c.Before); err != nil {
		return Outcome{c, Refused, err.Error()}
	}
	return Outcome{c, Restored, ""}
}
