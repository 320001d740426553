package stats

import "testing"

func TestShiftFunction(t *testing.T) {
	var a, b []float64
	for i := range 11 {
		v := float64(10 + i)
		a = append(a, v)
		if i < 5 {
			v *= 1.5 // the fast path alone
		}
		b = append(b, v)
	}
	for i, r := range shiftFunction(a, a) {
		near(t, "decile of equal values", r, 1, 1e-15)
		if i == 8 && len(shiftFunction(a, b)) != Deciles {
			t.Error("there is no shift function")
		}
	}
	// R: quantile(b, 1:9/10) / quantile(a, 1:9/10), where quantile(a) is 11, 12, …, 19 and b sorted is 15, 15, 16, 16.5, 17, 18, 18, 19, 19.5, 20, 21.
	want := []float64{15. / 11, 16. / 12, 16.5 / 13, 17. / 14, 18. / 15, 18. / 16, 19. / 17, 19.5 / 18, 20. / 19}
	for i, r := range shiftFunction(a, b) {
		near(t, "decile", r, want[i], 1e-12)
	}
	if shiftFunction(a[:9], b) != nil {
		t.Error("nine values have a shift function")
	}
}
