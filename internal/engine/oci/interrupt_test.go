package oci_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// A creation that is interrupted at any moment leaves nothing on the host: neither the runtime's state nor a mount.
func TestInterruptedCreation(t *testing.T) {
	const moments = 40
	for _, name := range []string{"oci/runc", "oci/crun", "oci/youki", "oci/runsc@platform=systrap"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			e := enginetest.Open(t, oci.Driver{}, name, s)
			begin := time.Now()
			c, err := e.Create(t.Context(), enginetest.Spec(s, "complete"))
			must.Do(t, err)
			duration := time.Since(begin)
			must.Do(t, c.Delete(t.Context()))
			baseline := enginetest.Leftovers(s)
			for i := range moments {
				ctx, cancel := context.WithTimeoutCause(t.Context(), duration*time.Duration(i)/moments, errors.New("interrupted"))
				c, err := e.Create(ctx, enginetest.Spec(s, fmt.Sprintf("moment-%d", i)))
				cancel()
				if err == nil {
					enginetest.Check(t, c.Delete(t.Context()))
				}
				if left := enginetest.Leftovers(s); !slices.Equal(left, baseline) {
					t.Fatalf("a creation that was interrupted after %v of %v left %q", duration*time.Duration(i)/moments, duration, enginetest.Surplus(baseline, left))
				}
			}
		})
	}
}

// A runtime may be interrupted after it has named the container's process, and before its record of the container is whole. Then its own
// delete fails, and nothing of the container is left all the same.
func TestInterruptedRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("makes containers on this host; -short skips that")
	}
	youki := program(t, "youki")
	dir := t.TempDir()
	script, fifo := filepath.Join(dir, "youki"), filepath.Join(dir, "created")
	must.Do(t, unix.Mkfifo(fifo, 0o600))
	// The second argument is the runtime's root, and the last one of create is the container's ID.
	must.Do(t, os.WriteFile(script, fmt.Appendf(nil, `#!/bin/sh
%[1]s "$@" || exit
case "$*" in *"create --bundle"*half) ;; *) exit ;; esac
root=$2
shift $(($# - 1))
: > "$root/$1/state.json"
echo > %[2]s
exec sleep 1000
`, youki, fifo), 0o700)) //nolint:gosec // a program
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Runtimes = map[string]target.Runtime{"half": {Path: script}}
	e, err := oci.Driver{}.Open(t.Context(), target.Target{Engine: "oci", Runtime: "half"}, s)
	enginetest.Require(t, "oci/youki", err)
	baseline := enginetest.Leftovers(s)
	ctx, cancel := context.WithCancelCause(t.Context())
	interruption := errors.New("interrupted")
	go func() {
		_, err := os.ReadFile(fifo) // until the record is damaged
		cancel(errors.Join(interruption, err))
	}()
	if _, err := e.Create(ctx, enginetest.Spec(s, "half")); !errors.Is(err, interruption) {
		t.Errorf("the interrupted creation returned %v, want %v", err, interruption)
	}
	if left := enginetest.Leftovers(s); !slices.Equal(left, baseline) {
		t.Errorf("the interrupted creation left %q", enginetest.Surplus(baseline, left))
	}
	enginetest.Check(t, e.Close())
}
