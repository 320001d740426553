package tail

import "testing"

// BenchmarkFit is the time of a report for one metric on one target: a model of the largest size, and two bounds.
func BenchmarkFit(b *testing.B) {
	s := Of(exponential(random(1), 100_000))
	for b.Loop() {
		m, err := Fit(s)
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range m.Beyond() {
			if _, err := m.Bound(p); err != nil {
				b.Fatal(err)
			}
		}
	}
}
