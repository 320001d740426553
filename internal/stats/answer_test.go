package stats

import (
	"testing"
)

// TestOverall holds that no number of passes hides a failure, or an answer that is missing.
func TestOverall(t *testing.T) {
	for _, c := range []struct {
		answers []Answer
		want    Answer
	}{
		{nil, ""},
		{[]Answer{NotWorse, NotWorse}, NotWorse},
		{[]Answer{NotWorse, Inconclusive, NotWorse}, Inconclusive},
		{[]Answer{Inconclusive, Worse, NotWorse}, Worse},
	} {
		if got := Overall(c.answers); got != c.want {
			t.Errorf("%q are together %q, want %q", c.answers, got, c.want)
		}
	}
}
