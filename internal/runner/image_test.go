package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// pullOne pulls a fresh image and does not remove it.
func pullOne(ctx context.Context, t bench.Trial) error {
	ref, err := t.Images.Fresh(ctx, 1<<20)
	if err != nil {
		return err
	}
	span, err := t.Images.Pull(ctx, ref)
	if err == nil {
		t.Record("Value", span.Seconds())
	}
	return err
}

// pullAndRemove pulls a fresh image and removes it.
func pullAndRemove(ctx context.Context, t bench.Trial) error {
	if err := pullOne(ctx, t); err != nil {
		return err
	}
	_, err := t.Images.Remove(ctx, "image-1:1048576")
	return err
}

// No image of a trial stays with the engine or in the registry, however the trial ends. The harness checks both.
func TestImages(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		run          func(context.Context, bench.Trial) error
		status       result.Status
		reason       string // a part
		phases       []result.Phase
	}{
		{"left to the runner", "fake/a@pull=40ms,remove=6ms", pullOne, result.OK, "", []result.Phase{{Name: "pull", Duration: 40 * ms}}},
		{"removed", "fake/a@pull=40ms,remove=6ms", pullAndRemove, result.OK, "", []result.Phase{
			{Name: "pull", Duration: 40 * ms}, {Name: "remove", Start: 40 * ms, Duration: 6 * ms},
		}},
		{"not pulled", "fake/a@fail=pull", pullOne, result.Failed, "call 1 of pull fails", nil},
		{"not pulled in time", "fake/a@hang=pull", pullOne, result.Timeout, "pull took longer than its limit of 1m0s", nil},
		{"not removed at once", "fake/a@fail=remove#1,pull=40ms", pullAndRemove, result.Failed, "call 1 of remove fails", []result.Phase{{Name: "pull", Duration: 40 * ms}}},
		{"left, and not removed at once", "fake/a@fail=remove#1,pull=40ms", pullOne, result.Failed, "clean up: remove image", []result.Phase{{Name: "pull", Duration: 40 * ms}}},
		{"by an engine without pull", "fake/a@no=pull", pullOne, result.Skipped, "taken away", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, tt.target)
			l.work("test.one.x", tt.run)
			expect.Equal(t, "phases", tt.phases, l.ends(tt.status, tt.reason).Phases)
		})
	}
}

// A pull that returns success is compared with the bytes that the registry has served.
//
// Invariant lying-calls.
func TestPullThatLies(t *testing.T) {
	for transfer, want := range map[int64]result.Status{1 << 20: result.OK, 1<<20 - 1: result.Failed, 0: result.Failed} {
		l := newHarness(t, "fake/a@pull=40ms")
		l.images.served, l.images.size = transfer, 1<<20
		l.work("test.one.x", pullOne)
		reason := ""
		if want == result.Failed {
			reason = fmt.Sprintf("want 1048576 bytes from the registry, got %d", transfer)
		}
		l.ends(want, reason)
	}
}

// A minimal image has a directory and a reference, also with an engine that pulls nothing. Both are removed after the trial.
func TestMinimalImage(t *testing.T) {
	l := newHarness(t, "fake/a@no=pull")
	l.config.Emulator = func(program []byte) bench.Emulator { return bench.Emulator{Name: "for " + string(program)} }
	var images []bench.Minimal
	l.work("test.one.x", func(ctx context.Context, tr bench.Trial) error {
		for _, arch := range []string{"arm64", "386"} {
			m, err := tr.Images.Minimal(ctx, arch)
			if err != nil {
				return err
			}
			if info, err := os.Stat(m.Rootfs); err != nil || !info.IsDir() || m.Ref == "" || m.Emulator.Name != "for "+arch {
				t.Errorf("%+v: %v", m, err)
			}
			images = append(images, m)
		}
		tr.Record("Value", 1)
		return nil
	})
	l.ok()
	if trial := l.only(); trial.Status != result.OK || len(images) != 2 || images[0].Rootfs == images[1].Rootfs {
		t.Fatalf("%s because %q with %+v", trial.Status, trial.Reason, images)
	}
	for _, m := range images {
		if _, err := os.Stat(m.Rootfs); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", m.Rootfs, err)
		}
	}
}

func TestImageThatCannotBeMade(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.images.err = errBroken
	l.work("test.one.x", pullOne)
	l.ends(result.Failed, errBroken.Error())
}
