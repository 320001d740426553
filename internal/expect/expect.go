// Package expect compares a result with the expected one, and lets the test go on.
package expect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Equal reports the difference between two values, if there is one, as an error of the test. The error names the subject.
func Equal(t testing.TB, subject string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", subject, diff)
	}
}
