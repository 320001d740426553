package tune

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// refusing is a tuner of a machine that refuses to change some files.
func refusing(t *testing.T, root string, names ...string) *Tuner {
	tuner := simulated(t, root)
	set := tuner.write
	tuner.write = func(name, value string) error {
		if slices.Contains(names, name) {
			return &fs.PathError{Op: "write", Path: "/" + name, Err: unix.EBUSY}
		}
		return set(name, value)
	}
	return tuner
}

// isRestored checks that the machine is as before and has no record.
func isRestored(t *testing.T, root string) {
	t.Helper()
	hasValues(t, "after restore", root, original())
	hasNoRecord(t, root)
}

func hasNoRecord(t *testing.T, root string) {
	t.Helper()
	if record, err := ReadRecord(root); !errors.Is(err, ErrNotTuned) {
		t.Errorf("the machine has the record %+v: %v", record, err)
	}
}

// A CPU that was offline before tune is offline after a restore that starts it, also if the first restore was refused or interrupted.
//
// Invariant host-tune.
func TestRestoreTakesCPUsOffline(t *testing.T) {
	t.Run("a CPU that stays online", func(t *testing.T) {
		root := newUntuned(t)
		mustTune(t, simulated(t, root))
		for range 2 {
			outcomes := mustRestore(t, refusing(t, root, onlineFile(3)), true)
			o := outcomes[len(outcomes)-1]
			if o.Key != onlineFile(3) || o.Status != Refused || !strings.Contains(o.Reason, "write /"+onlineFile(3)+": device or resource busy") ||
				!strings.Contains(o.Reason, "repeat touchstone host restore, or write 0 to /"+onlineFile(3)) {
				t.Errorf("the outcome is %+v", o)
			}
			record, err := ReadRecord(root)
			if err != nil || len(record.Changes) > 0 || !slices.Equal(record.Offline, []int{3}) || !slices.Equal(record.Settings(), []string{smt}) {
				t.Errorf("the record is %+v, %v", record, err)
			}
		}
		if got := statuses(mustRestore(t, simulated(t, root), false)); len(got) != 1 || got["CPUs "+onlineFile(3)] != Restored {
			t.Errorf("the outcomes are %v", got)
		}
		isRestored(t, root)
	})
	t.Run("SMT stays off", func(t *testing.T) {
		root := newUntuned(t)
		mustTune(t, simulated(t, root))
		got := statuses(mustRestore(t, refusing(t, root, machine.SMT), false))
		if _, has := got["CPUs "+onlineFile(3)]; has || got["smt "+machine.SMT] != Refused {
			t.Errorf("the outcomes are %v", got)
		}
		mustRestore(t, simulated(t, root), false)
		isRestored(t, root)
	})
	for name, change := range map[string]func(t *testing.T, root string){
		"nothing between": func(*testing.T, string) {},
		"a tune between": func(t *testing.T, root string) {
			mustRestore(t, refusing(t, root, onlineFile(3)), false)
			mustTune(t, simulated(t, root))
			hasValues(t, "after the second tune", root, afterTune())
		},
		"a refused tune between": func(t *testing.T, root string) {
			mustRestore(t, refusing(t, root, onlineFile(3)), false)
			mustTune(t, refusing(t, root, machine.SMT), smt)
		},
		"interrupted": func(t *testing.T, root string) {
			tuner, interrupted := simulated(t, root), errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			tuner.step = func() { cancel(interrupted) } // in the change of SMT, which is restored first
			if outcomes, err := tuner.Restore(ctx, false); !errors.Is(err, interrupted) || len(outcomes) != 1 {
				t.Errorf("the outcomes are %v, %v", outcomes, err)
			}
		},
		"SMT is on already": func(t *testing.T, root string) {
			hosttest.Write(t, root, hosttest.Files{machine.SMT: "on", onlineFile(1): "1", onlineFile(3): "1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := newUntuned(t)
			mustTune(t, simulated(t, root))
			change(t, root)
			mustRestore(t, simulated(t, root), false)
			isRestored(t, root)
		})
	}
}

// A CPU that no longer exists, or a machine that was restarted, needs nothing.
func TestOfflineCPUsThatAreGone(t *testing.T) {
	t.Run("removed", func(t *testing.T) {
		root := newUntuned(t)
		mustTune(t, simulated(t, root), smt)
		tuner := New(root) // its kernel starts no CPU
		must.Do(t, os.RemoveAll(filepath.Dir(filepath.Join(root, onlineFile(3)))))
		if got := statuses(mustRestore(t, tuner, false)); got["CPUs "+onlineFile(3)] != Gone {
			t.Errorf("the outcomes are %v", got)
		}
		hasNoRecord(t, root)
	})
	t.Run("a restart", func(t *testing.T) {
		root := newUntuned(t)
		mustTune(t, simulated(t, root))
		mustRestore(t, refusing(t, root, onlineFile(3)), false)
		hosttest.Write(t, root, hosttest.Files{bootFile: "another"})
		if got := statuses(mustRestore(t, refusing(t, root, onlineFile(3)), false)); len(got) != 1 || got["CPUs "+onlineFile(3)] != Gone {
			t.Errorf("the outcomes are %v", got)
		}
		hasNoRecord(t, root)
	})
}

// A record without offline CPUs restores the values.
func TestRestoreOfAnOldRecord(t *testing.T) {
	root := newUntuned(t)
	hosttest.Write(t, root, hosttest.Files{
		machine.SMT: "off", onlineFile(1): "0",
		recordDir + "/" + recordName: `{"boot": "` + untuned()[bootFile] + `", "changes": [{"setting": "smt", "key": "` + machine.SMT + `", "before": "on", "after": "off"}]}`,
	})
	if got := statuses(mustRestore(t, simulated(t, root), false)); len(got) != 1 || got["smt "+machine.SMT] != Restored {
		t.Errorf("the outcomes are %v", got)
	}
	hasNoRecord(t, root)
}

// Without SMT among the changes no CPU is recorded. A CPU whose state cannot be read ends tune before the first change.
func TestOfflineCPUsAreRecordedForSMT(t *testing.T) {
	root := newUntuned(t)
	mustTune(t, simulated(t, root), "ksm")
	if record, err := ReadRecord(root); err != nil || len(record.Offline) > 0 {
		t.Errorf("the record is %+v, %v", record, err)
	}
	hosttest.Write(t, root, hosttest.Files{onlineFile(4) + "/": ""})
	if _, err := simulated(t, root).Apply(t.Context(), []string{smt}, false); err == nil || !strings.Contains(err.Error(), "whether CPU 4 is offline") {
		t.Errorf("the error is %v", err)
	}
	want := original()
	want[machine.KSM+"run"] = "0"
	hasValues(t, "afterwards", root, want)
}
