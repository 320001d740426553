package runs

import "testing"

// The benchmarks of a page share its parts, and each has some.
func TestPartsOfEach(t *testing.T) {
	for benchmarks, want := range map[int]int{1: 10, 4: 10, 5: 8, 10: 4, 100: 4} {
		if got := partsOfEach(benchmarks); got != want {
			t.Errorf("each of %d benchmarks has %d parts, want %d", benchmarks, got, want)
		}
	}
}
