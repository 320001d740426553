package oci_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
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
