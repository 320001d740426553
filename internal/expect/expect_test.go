package expect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
)

// recorder keeps the errors of a test.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestEqual(t *testing.T) {
	var r recorder
	expect.Equal(&r, "the list", []int{1, 2}, []int{1, 2})
	if r.errors != nil {
		t.Errorf("equal values differ: %q", r.errors)
	}
	expect.Equal(&r, "the list", []int{1, 2}, []int{1, 3})
	if len(r.errors) != 1 || !strings.HasPrefix(r.errors[0], "the list (-want +got):\n") {
		t.Errorf("the errors of other values are %q", r.errors)
	}
}
