package runner

import (
	"testing"
	"time"
)

func TestMiddleOfOverhead(t *testing.T) {
	if got := middle([]time.Duration{9, 1, 5}); got != 5 {
		t.Errorf("middle = %v, want 5", got)
	}
}
