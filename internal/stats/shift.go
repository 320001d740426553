package stats

// Deciles is the number of values of a shift function.
const Deciles = 9

// shiftFunction is the ratio of the deciles (10 %, 20 %, …, 90 %) of b to the deciles of a: how far each part of a distribution must be moved to become
// the other (K. Doksum, Annals of Statistics 2 (1974) 267–277, on logarithms). It is nil below ten values. It has no test; the parts of a
// comparison have one.
func shiftFunction(a, b []float64) []float64 {
	if min(len(a), len(b)) < Deciles+1 {
		return nil
	}
	a, b = Sorted(a), Sorted(b)
	ratios := make([]float64, Deciles)
	for i := range ratios {
		share := float64(i+1) / (Deciles + 1)
		ratios[i] = Quantile(b, share) / Quantile(a, share)
	}
	return ratios
}

// Quantile interpolates between sorted values (definition 7 of R. J. Hyndman and Y. Fan, The American Statistician 50 (1996) 361–365).
func Quantile(sorted []float64, share float64) float64 {
	position := share * float64(len(sorted)-1)
	i := min(int(position), len(sorted)-2)
	return sorted[i] + (position-float64(i))*(sorted[i+1]-sorted[i])
}
