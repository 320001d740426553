package tune

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// untuned is a machine whose settings are poor and can be changed.
func untuned() hosttest.Files {
	return hosttest.Files{
		bootFile:                     "0f3b8f1a-1111-2222-3333-444455556666",
		hosttest.Release:             "6.1.0-18-amd64",
		hosttest.Mounts:              hosttest.MountV2,
		hosttest.Governor:            "powersave",
		machine.Boost:                "1",
		machine.THP:                  "[always] madvise never",
		machine.KSM + "run":          "1",
		"proc/meminfo":               "SwapTotal: 1000 kB\nSwapFree: 1000 kB",
		machine.Swappiness:           "60",
		hosttest.CPUs + "smt/active": "1",
		machine.SMT:                  "on",
		hosttest.CPUs + "cpufreq/policy1/scaling_governor": "schedutil",
		"proc/1/comm":                      "init",
		"proc/200/comm":                    irqbalance,
		"proc/200/stat":                    hosttest.Irqbalance,
		"sys/fs/cgroup/cgroup.controllers": "cpu memory",
		"proc/self/cgroup":                 "0::/",
		hosttest.CPUs + "cpufreq/policy0/scaling_max_freq": "1",
		"sys/kernel/mm/transparent_hugepage/defrag":        "always [madvise] never",
		"sys/kernel/mm/ksm/pages_sharing":                  "3",
		"sys/devices/system/cpu/vulnerabilities/spec_a":    "Not affected",
		// CPUs 0 and 1 share a core. An administrator has taken CPU 3 offline, the second thread of CPU 2.
		hosttest.CPUs + "cpu0/topology/core_id": "0",
		onlineFile(1):                           "1",
		onlineFile(2):                           "1",
		onlineFile(3):                           "0",
	}
}

// simulated is the tuner of a machine whose kernel is a copy of files: signals, remounts and SMT change the files that show them.
func simulated(t testing.TB, root string) *Tuner {
	tuner := New(root)
	replace := func(name, part, value string) error {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, name), []byte(strings.Replace(string(text), part, value, 1)), 0o600)
	}
	tuner.signal = func(key string, s unix.Signal) error {
		old, state := " S ", " T "
		if s == unix.SIGCONT {
			old, state = state, old
		}
		pid, _, _ := strings.Cut(key, "@")
		return replace("proc/"+pid+"/stat", old, state)
	}
	tuner.remount = func(dir string, flags uintptr, options string) error {
		want := uintptr(unix.MS_REMOUNT | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME)
		if dir != filepath.Join(root, "sys/fs/cgroup") || flags != want {
			t.Errorf("remount of %s with the flags %#x, want %#x", dir, flags, want)
		}
		return os.WriteFile(filepath.Join(root, hosttest.Mounts), []byte(strings.TrimSuffix(hosttest.MountV2, "seclabel,nsdelegate,memory_recursiveprot")+"seclabel,"+options+"\n"), 0o600)
	}
	tuner.write = func(name, value string) error {
		if current, err := tuner.readFile(name); name == machine.SMT && (err != nil || current != value) {
			state := map[string]string{"on": "1", "off": "0"}[value]
			if err := errors.Join(tuner.writeFile(onlineFile(1), state), tuner.writeFile(onlineFile(3), state)); err != nil {
				return err
			}
		}
		return tuner.writeFile(name, value)
	}
	return tuner
}

// values are the settings of a machine, without the kernel's other files.
func values(t testing.TB, root string) map[string]string {
	t.Helper()
	tuner, states := New(root), map[string]string{}
	for key, setting := range map[string]string{
		hosttest.Governor: "governor", hosttest.CPUs + "cpufreq/policy1/scaling_governor": "governor", machine.Boost: "turbo", machine.THP: "thp", machine.KSM + "run": "ksm",
		machine.Swappiness: "swap", machine.SMT: "smt", "200@1234": irqbalance, "/sys/fs/cgroup": favordynmods,
		onlineFile(1): "smt", onlineFile(2): "smt", onlineFile(3): "smt",
	} {
		k, _ := knobOf(setting)
		state, err := k.read(tuner, key)
		if err != nil {
			state = err.Error()
		}
		states[key] = state
	}
	return states
}

func original() map[string]string {
	return map[string]string{
		hosttest.Governor: "powersave", hosttest.CPUs + "cpufreq/policy1/scaling_governor": "schedutil", machine.Boost: "1", machine.THP: "always", machine.KSM + "run": "1",
		machine.Swappiness: "60", machine.SMT: "on", "200@1234": running, "/sys/fs/cgroup": "off",
		onlineFile(1): "1", onlineFile(2): "1", onlineFile(3): "0",
	}
}

func afterTune() map[string]string {
	return map[string]string{
		hosttest.Governor: machine.Performance, hosttest.CPUs + "cpufreq/policy1/scaling_governor": machine.Performance, machine.Boost: "0", machine.THP: "madvise", machine.KSM + "run": "0",
		machine.Swappiness: "0", machine.SMT: "off", "200@1234": stopped, "/sys/fs/cgroup": "on",
		onlineFile(1): "0", onlineFile(2): "1", onlineFile(3): "0",
	}
}

func hasValues(t *testing.T, what string, root string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, values(t, root)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func statuses(outcomes []Outcome) map[string]Status {
	byKey := map[string]Status{}
	for _, o := range outcomes {
		byKey[strings.TrimSpace(o.Setting+" "+o.Key)] = o.Status
	}
	return byKey
}

func haveStatus(t *testing.T, outcomes []Outcome, want Status) {
	t.Helper()
	for _, o := range outcomes {
		if o.Status != want {
			t.Errorf("the outcome is %+v, want %v", o, want)
		}
	}
}

func newUntuned(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	hosttest.Write(t, root, untuned())
	return root
}

func mustTune(t *testing.T, tuner *Tuner, names ...string) []Outcome {
	t.Helper()
	outcomes, err := tuner.Apply(t.Context(), names, false)
	must.Do(t, err)
	return outcomes
}

func mustRestore(t *testing.T, tuner *Tuner, force bool) []Outcome {
	t.Helper()
	outcomes, err := tuner.Restore(t.Context(), force)
	must.Do(t, err)
	return outcomes
}

func TestTuneAndRestore(t *testing.T) {
	root := newUntuned(t)
	tuner := simulated(t, root)
	hasValues(t, "at first", root, original())

	dry, err := tuner.Apply(t.Context(), nil, true)
	must.Do(t, err)
	hasValues(t, "after a dry run", root, original())
	if _, err := os.Stat(filepath.Join(root, recordDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run has made the directory of the record: %v", err)
	}
	haveStatus(t, dry, Planned)

	haveStatus(t, mustTune(t, tuner), Changed)
	hasValues(t, "after tune", root, afterTune())
	if info, err := os.Stat(RecordFile(root)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record: %v, %v", info, err)
	}
	want := []result.Tuned{
		{Setting: "governor", Before: "powersave, schedutil", After: "performance"},
		{Setting: "turbo", Before: "1", After: "0"},
		{Setting: "thp", Before: "always", After: "madvise"},
		{Setting: "ksm", Before: "1", After: "0"},
		{Setting: "swap", Before: "60", After: "0"},
		{Setting: "irqbalance", Before: "running", After: "stopped"},
		{Setting: "favordynmods", Before: "off", After: "on"},
		{Setting: "smt", Before: "on", After: "off"},
	}
	if diff := cmp.Diff(want, InEffect(root)); diff != "" {
		t.Errorf("the settings of a tuned machine (-want +got):\n%s", diff)
	}
	if state, remedy, err := Irqbalance(tuner.Tree); state != stopped || remedy != "" || err != nil {
		t.Errorf("after tune irqbalance is %q with the remedy %q, %v", state, remedy, err)
	}
	if state, remedy, err := Favordynmods(tuner.Tree); state != "on" || remedy != "" || err != nil {
		t.Errorf("after tune favordynmods is %q with the remedy %q, %v", state, remedy, err)
	}

	haveStatus(t, mustTune(t, tuner), Kept)
	haveStatus(t, mustRestore(t, tuner, false), Restored)
	hasValues(t, "after restore", root, original())
	if _, err := os.Stat(filepath.Join(root, recordDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("restore leaves the directory of the record: %v", err)
	}
	if _, err := tuner.Restore(t.Context(), false); !errors.Is(err, ErrNotTuned) {
		t.Errorf("a second restore has the error %v", err)
	}
	if got := InEffect(root); got != nil {
		t.Errorf("after restore %v are tuned", got)
	}
}

// The values before the first tune stay recorded, also if another program has changed them between two.
func TestSecondTuneKeepsTheOriginal(t *testing.T) {
	root := newUntuned(t)
	tuner := simulated(t, root)
	mustTune(t, tuner, "governor")
	hosttest.Write(t, root, hosttest.Files{hosttest.Governor: "ondemand"})
	mustTune(t, tuner)
	hasValues(t, "after the second tune", root, afterTune())
	mustRestore(t, tuner, false)
	hasValues(t, "after restore", root, original())
}

// TestRefusals: a machine refuses some settings, and the others are changed.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{unix.EROFS, "read-only"}, {unix.EPERM, "forbids"}, {unix.EACCES, "root"}, {unix.EINVAL, "does not know this value"}, {unix.EBUSY, "in use"}, {unix.EIO, "input/output error"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			root := newUntuned(t)
			tuner := simulated(t, root)
			set := tuner.write
			tuner.write = func(name, value string) error {
				if name == hosttest.Governor || name == machine.SMT {
					return &fs.PathError{Op: "write", Path: name, Err: tt.err}
				}
				return set(name, value)
			}
			got := map[string]string{}
			for _, o := range mustTune(t, tuner) {
				if o.Status == Refused {
					got[o.Key] = o.Reason
				}
			}
			if len(got) != 2 || !strings.Contains(got[hosttest.Governor], tt.want) || !strings.Contains(got[machine.SMT], tt.want) {
				t.Errorf("the refusals are %q", got)
			}
			want := afterTune()
			want[hosttest.Governor], want[machine.SMT], want[onlineFile(1)] = "powersave", "on", "1"
			hasValues(t, "after tune", root, want)
			record, err := ReadRecord(root)
			must.Do(t, err)
			if len(record.Offline) > 0 || slices.ContainsFunc(record.Changes, func(c Change) bool { return c.Key == hosttest.Governor || c.Key == machine.SMT }) {
				t.Errorf("the record has refused values: %+v", record)
			}
			mustRestore(t, tuner, false)
			hasValues(t, "after restore", root, original())
		})
	}
}

// A kernel can accept a value without an error and not use it.
func TestSilentRefusal(t *testing.T) {
	root := newUntuned(t)
	tuner := simulated(t, root)
	tuner.write = func(string, string) error { return nil }
	for _, o := range mustTune(t, tuner, "governor", "ksm") {
		if o.Status != Refused || !strings.Contains(o.Reason, "accepted "+o.After+" without an error, and the value is "+o.Before) {
			t.Errorf("the outcome is %+v", o)
		}
	}
	hasNoRecord(t, root)
	tuner.write = func(name, _ string) error { return New(root).write(name, "third") }
	mustTune(t, tuner, "ksm")
	if record, err := ReadRecord(root); err != nil || len(record.Changes) != 1 || record.Changes[0].Before != "1" {
		t.Errorf("a value that is neither old nor new is not recorded: %+v, %v", record, err)
	}
}

// TestUnavailable: settings that a machine does not have, or that could not be put back.
func TestUnavailable(t *testing.T) {
	const v1Cpuset = "33 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset"
	for _, tt := range []struct {
		name, setting string
		change        hosttest.Files
		remove        []string
		want          string
	}{
		{"no frequency driver", "governor", nil, []string{hosttest.CPUs + "cpufreq"}, "no CPU frequency driver"},
		{"no switch of turbo", "turbo", nil, []string{machine.Boost}, "no switch"},
		{"a file that cannot be read", "ksm", hosttest.Files{machine.KSM + "run/": ""}, []string{machine.KSM + "run"}, "is a directory"},
		{"cpusets of cgroup v1", "smt", hosttest.Files{hosttest.Mounts: v1Cpuset, "sys/fs/cgroup/cpuset/docker/cpuset.cpus": "0-3"}, nil, "lose CPUs"},
		{"no table of mounts", "smt", nil, []string{hosttest.Mounts}, "mount table"},
		{"no cgroup2", favordynmods, hosttest.Files{hosttest.Mounts: hosttest.MountV1}, nil, "v1 hierarchy does not accept"},
		{"a kernel without the option", favordynmods, hosttest.Files{hosttest.Release: "5.15.0"}, nil, "since Linux 6.0"},
		{"a kernel that cannot undo it", favordynmods, hosttest.Files{hosttest.Release: "6.18.44-fc"}, nil, "cannot be put back"},
		{"hidden processes", irqbalance, nil, []string{"proc/1/comm"}, "processes of other users"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := newUntuned(t)
			for _, name := range tt.remove {
				must.Do(t, os.RemoveAll(filepath.Join(root, name)))
			}
			hosttest.Write(t, root, tt.change)
			outcomes := mustTune(t, simulated(t, root), tt.setting)
			if len(outcomes) != 1 || outcomes[0].Status != Unavailable || !strings.Contains(outcomes[0].Reason, tt.want) {
				t.Errorf("the outcomes are %+v, want %q", outcomes, tt.want)
			}
		})
	}
	t.Run("a cpuset hierarchy without cpusets", func(t *testing.T) {
		root := newUntuned(t)
		hosttest.Write(t, root, hosttest.Files{hosttest.Mounts: v1Cpuset, "sys/fs/cgroup/cpuset/cpuset.cpus": "0-3"})
		if got := statuses(mustTune(t, simulated(t, root), "smt")); got["smt "+machine.SMT] != Changed {
			t.Errorf("the outcomes are %v", got)
		}
	})
	t.Run("a copy of a machine has no processes and no mounts", func(t *testing.T) {
		root := newUntuned(t)
		got := statuses(mustTune(t, New(root), irqbalance, favordynmods))
		if got["irqbalance 200@1234"] != Refused || got["favordynmods /sys/fs/cgroup"] != Refused {
			t.Errorf("the outcomes are %v", got)
		}
	})
	t.Run("no swap", func(t *testing.T) {
		root := newUntuned(t)
		hosttest.Write(t, root, hosttest.Files{"proc/meminfo": "SwapTotal: 0 kB"})
		if got := statuses(mustTune(t, simulated(t, root), "swap")); got["swap"] != Kept {
			t.Errorf("the outcomes are %v", got)
		}
	})
}

// A value that another program has changed since belongs to that program.
//
// Invariant host-tune.
func TestRestoreLeavesForeignValues(t *testing.T) {
	root := newUntuned(t)
	tuner := simulated(t, root)
	mustTune(t, tuner)
	hosttest.Write(t, root, hosttest.Files{hosttest.Governor: "ondemand", machine.KSM + "run": "1"})
	got := statuses(mustRestore(t, tuner, false))
	if got["governor "+hosttest.Governor] != Foreign || got["ksm "+machine.KSM+"run"] != Back || got["smt "+machine.SMT] != Restored {
		t.Errorf("the outcomes are %v", got)
	}
	want := original()
	want[hosttest.Governor] = "ondemand"
	hasValues(t, "after restore", root, want)
	record, err := ReadRecord(root)
	if err != nil || len(record.Changes) != 1 {
		t.Fatalf("the record is %+v, %v; want one change", record, err)
	}
	if settings := InEffect(root); settings != nil {
		t.Errorf("a foreign value counts as tuned: %v", settings)
	}
	if got := statuses(mustRestore(t, tuner, true)); got["governor "+hosttest.Governor] != Restored {
		t.Errorf("with force the outcomes are %v", got)
	}
	hasValues(t, "after restore with force", root, original())
}

// A process that gets the PID of irqbalance is not stopped and not continued.
func TestRestoreOfAnEndedProcess(t *testing.T) {
	for name, stat := range map[string]string{
		"ended": "", "another process": strings.Replace(hosttest.Irqbalance, "1234", "9999", 1),
	} {
		t.Run(name, func(t *testing.T) {
			root := newUntuned(t)
			tuner := simulated(t, root)
			mustTune(t, tuner, irqbalance)
			hosttest.Write(t, root, hosttest.Files{"proc/200/stat": stat})
			tuner.signal = func(key string, _ unix.Signal) error {
				t.Errorf("a signal to process %s", key)
				return nil
			}
			if got := statuses(mustRestore(t, tuner, true)); got["irqbalance 200@1234"] != Gone {
				t.Errorf("the outcomes are %v", got)
			}
		})
	}
}

// A restart resets all settings. The recorded values must not be written then.
//
// Invariant host-tune.
func TestRestart(t *testing.T) {
	root := newUntuned(t)
	tuner := simulated(t, root)
	mustTune(t, tuner)
	hosttest.Write(t, root, untuned())
	hosttest.Write(t, root, hosttest.Files{bootFile: "another", hosttest.Governor: "ondemand"})
	if record, err := ReadRecord(root); err != nil || !record.Restarted || InEffect(root) != nil {
		t.Errorf("after a restart the record is %+v, %v, and %v is tuned", record, err, InEffect(root))
	}
	want := original()
	want[hosttest.Governor] = "ondemand"
	haveStatus(t, mustRestore(t, tuner, true), Gone)
	hasValues(t, "after restore", root, want)
	mustTune(t, tuner)
	hosttest.Write(t, root, hosttest.Files{bootFile: "a third", machine.KSM + "run": "1"})
	mustTune(t, tuner, "ksm")
	if record, err := ReadRecord(root); err != nil || record.Restarted || len(record.Changes) != 1 {
		t.Errorf("a tune after the next restart has the record %+v, %v", record, err)
	}
}

func TestInterruptedTune(t *testing.T) {
	root := newUntuned(t)
	tuner := simulated(t, root)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	steps := 0
	tuner.step = func() {
		if steps++; steps == 4 { // in the second change
			cancel(interrupted)
		}
	}
	if _, err := tuner.Apply(ctx, nil, false); !errors.Is(err, interrupted) {
		t.Errorf("the error is %v", err)
	}
	if state := values(t, root); maps.Equal(state, original()) || maps.Equal(state, afterTune()) {
		t.Errorf("the interrupted tune changed all or nothing: %v", state)
	}
	mustRestore(t, simulated(t, root), false)
	hasValues(t, "after restore", root, original())
}

// The frequency policy of a second thread exists only while SMT is on. It has its last governor when it appears again.
func TestSMTIsRestoredFirst(t *testing.T) {
	const policy1 = hosttest.CPUs + "cpufreq/policy1"
	root := newUntuned(t)
	tuner := simulated(t, root)
	set, parking := tuner.write, filepath.Join(root, "hidden")
	tuner.write = func(name, value string) error {
		if name == machine.SMT {
			source, destination := filepath.Join(root, policy1), parking
			if value == "on" {
				source, destination = destination, source
			}
			if err := os.Rename(source, destination); err != nil {
				return err
			}
		}
		return set(name, value)
	}
	mustTune(t, tuner)
	if _, err := os.Stat(filepath.Join(root, policy1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the policy of the second thread exists without SMT: %v", err)
	}
	haveStatus(t, mustRestore(t, tuner, false), Restored)
	hasValues(t, "after restore", root, original())
}
