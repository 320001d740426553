package tune

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// root writes the values of a record to the kernel, so a record of others, or with other files, is refused.
//
// Invariant host-tune.
func TestRecordsThatAreRefused(t *testing.T) {
	valid := `{"boot": "b", "changes": [{"setting": "ksm", "key": "` + machine.KSM + `run", "before": "1", "after": "0"}]}`
	for _, tt := range []struct{ name, text, want string }{
		{"no JSON", "x", "invalid character"},
		{"an unknown setting", strings.Replace(valid, `"ksm"`, `"passwd"`, 1), `no setting has the name "passwd"`},
		{"another file", strings.Replace(valid, machine.KSM+"run", "etc/passwd", 1), "etc/passwd does not belong"},
		{"a path that leaves", strings.Replace(valid, machine.KSM+"run", machine.KSM+"../../../../../etc/passwd", 1), "does not belong"},
		{"a governor elsewhere", strings.Replace(strings.Replace(valid, machine.KSM+"run", hosttest.CPUs+"cpufreq/policy0/../x/scaling_governor", 1), "ksm", "governor", 1), "does not belong"},
		{"process 1", strings.Replace(strings.Replace(valid, machine.KSM+"run", "1@0", 1), "ksm", "irqbalance", 1), "does not belong"},
		{"all processes", strings.Replace(strings.Replace(valid, machine.KSM+"run", "-1@0", 1), "ksm", "irqbalance", 1), "does not belong"},
		{"two values", strings.Replace(valid, `"1"`, `"1\n2"`, 1), "is no value"},
		{"no value", strings.Replace(valid, `"1"`, `""`, 1), "is no value"},
		{"no CPU", strings.Replace(valid, `"changes"`, `"offline_cpus": [-1], "changes"`, 1), "-1 is no CPU"},
		{"no boot", strings.Replace(valid, `"b"`, `""`, 1), "no boot ID"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := newUntuned(t)
			hosttest.Write(t, root, hosttest.Files{recordDir + "/" + recordName: tt.text})
			for what, err := range map[string]error{
				"read": second(ReadRecord(root)), "restore": second(simulated(t, root).Restore(t.Context(), true)), "tune": second(simulated(t, root).Apply(t.Context(), nil, false)),
			} {
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), RecordFile(root)) {
					t.Errorf("%s: the error is %v, want %q", what, err, tt.want)
				}
			}
			hasValues(t, "afterwards", root, original())
			if InEffect(root) != nil {
				t.Error("the facts use the record")
			}
			if _, err := simulated(t, root).Apply(t.Context(), nil, true); err != nil {
				t.Errorf("a dry run, which needs no record: %v", err)
			}
		})
	}
	t.Run("of another user", func(t *testing.T) {
		root := newUntuned(t)
		hosttest.Write(t, root, hosttest.Files{recordDir + "/" + recordName: valid})
		must.Do(t, os.Chmod(filepath.Join(root, recordDir), 0o777))
		if _, err := simulated(t, root).Restore(t.Context(), true); err == nil || !strings.Contains(err.Error(), "can be changed by other users") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a link", func(t *testing.T) {
		root := newUntuned(t)
		hosttest.Write(t, root, hosttest.Files{recordDir + "/": ""})
		must.Do(t, os.Symlink("/dev/zero", RecordFile(root)))
		if _, err := ReadRecord(root); err == nil || errors.Is(err, ErrNotTuned) {
			t.Errorf("the error is %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Two processes do not change the record at the same time.
func TestTuneIsExclusive(t *testing.T) {
	root := newUntuned(t)
	unlock, err := simulated(t, root).lock()
	must.Do(t, err)
	for what, err := range map[string]error{
		"restore": second(simulated(t, root).Restore(t.Context(), true)), "tune": second(simulated(t, root).Apply(t.Context(), nil, false)),
	} {
		if err == nil || !strings.Contains(err.Error(), "under way") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	unlock()
	mustTune(t, simulated(t, root))
}

// A process that opened the lock before its owner released it excludes the next process, too.
//
// Invariant host-tune-attack.
func TestLockStays(t *testing.T) {
	root := newUntuned(t)
	unlock, err := simulated(t, root).lock()
	must.Do(t, err)
	file, err := os.OpenFile(filepath.Join(root, lockDir, lockName), os.O_RDWR, 0)
	must.Do(t, err)
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the lock has the mode %v: %v", info.Mode(), err)
	}
	unlock()
	must.Do(t, unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	if _, err := simulated(t, root).lock(); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("a second owner: %v", err)
	}
}

// A tune without a record would lose the values: a full disk or a missing boot ID ends it before the first change.
func TestNoChangeWithoutRecord(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, root string){
		"the record cannot be written": func(t *testing.T, root string) {
			hosttest.Write(t, root, hosttest.Files{recordDir + "/" + recordName + "/x": "a directory"})
		},
		"no boot ID": func(t *testing.T, root string) {
			must.Do(t, os.Remove(filepath.Join(root, bootFile)))
		},
		"no directory": func(t *testing.T, root string) { hosttest.Write(t, root, hosttest.Files{"var/lib": "a file"}) },
	} {
		t.Run(name, func(t *testing.T) {
			root := newUntuned(t)
			spoil(t, root)
			if _, err := simulated(t, root).Apply(t.Context(), nil, false); err == nil {
				t.Error("no error")
			}
			hasValues(t, "afterwards", root, original())
		})
	}
}

func TestBegan(t *testing.T) {
	root := newUntuned(t)
	tuner := simulated(t, root)
	start := time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)
	tuner.now = func() time.Time { return start }
	mustTune(t, tuner, "ksm")
	tuner.now = func() time.Time { return start.Add(time.Hour) }
	mustTune(t, tuner, "governor")
	record, err := ReadRecord(root)
	if err != nil || !record.Began.Equal(start) || !slices.Equal(record.Settings(), []string{"ksm", "governor"}) {
		t.Errorf("the record is %+v, %v", record, err)
	}
}

// crashRoot and crashAt make this test program a tuner that is killed.
const crashRoot, crashAt, crashVerb = "TOUCHSTONE_TEST_CRASH_ROOT", "TOUCHSTONE_TEST_CRASH_AT", "TOUCHSTONE_TEST_CRASH_VERB"

// TestKilledTuner kills a process at each step of tune and of restore. A restore afterwards puts everything back, and so does a tune with a
// restore.
//
// Invariant host-tune: `host tune` records each value before it changes one, and `host restore` puts back all of them after a kill at any step;
// no record of another user is used.
func TestKilledTuner(t *testing.T) {
	if root := os.Getenv(crashRoot); root != "" {
		crash(t, root)
		return
	}
	kill := func(root, verb string, step int) bool {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledTuner$")
		cmd.Env = append(os.Environ(), crashRoot+"="+root, crashVerb+"="+verb, crashAt+"="+strconv.Itoa(step))
		out, err := cmd.CombinedOutput()
		exit := (*exec.ExitError)(nil)
		switch {
		case err == nil:
			return false
		case errors.As(err, &exit) && exit.ExitCode() == -1:
			return true
		}
		t.Fatalf("%s, step %d: %v\n%s", verb, step, err, out)
		return false
	}
	steps, torn := 0, 0
	for step := 1; ; step++ {
		root := newUntuned(t)
		if !kill(root, "tune", step) {
			break
		}
		steps++
		if state := values(t, root); !maps.Equal(state, original()) && !maps.Equal(state, afterTune()) {
			torn++
		}
		switch _, err := simulated(t, root).Restore(t.Context(), false); {
		case errors.Is(err, ErrNotTuned): // killed before the record was complete
			if step > 1 {
				t.Errorf("step %d: nothing is recorded", step)
			}
		case err != nil:
			t.Errorf("step %d: %v", step, err)
		}
		hasValues(t, fmt.Sprintf("after a kill at step %d of tune and restore", step), root, original())
	}
	if steps < 20 || torn < 15 {
		t.Errorf("%d steps, and %d of them left a part changed: too few for 9 values", steps, torn)
	}
	for step := 1; ; step++ {
		root := newUntuned(t)
		mustTune(t, simulated(t, root))
		if !kill(root, "restore", step) {
			break
		}
		if step%2 == 0 {
			mustTune(t, simulated(t, root))
			hasValues(t, "after the second tune", root, afterTune())
		}
		if _, err := simulated(t, root).Restore(t.Context(), false); err != nil {
			t.Errorf("step %d: %v", step, err)
		}
		hasValues(t, fmt.Sprintf("after a kill at step %d of restore and restore", step), root, original())
	}
}

// crash runs a tuner that kills this process at a step.
func crash(t *testing.T, root string) {
	step, err := strconv.Atoi(os.Getenv(crashAt))
	must.Do(t, err)
	tuner := simulated(t, root)
	tuner.step = func() {
		if step--; step == 0 {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {} // until the signal arrives
		}
	}
	if os.Getenv(crashVerb) == "tune" {
		mustTune(t, tuner)
	} else {
		mustRestore(t, tuner, false)
	}
}
