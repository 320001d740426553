package tail

import "slices"

// ExtremalIndex is the intervals estimate of the extremal index from the places of exceedances, in ascending order: the reciprocal of the mean size
// of a cluster, 1 for independent samples (C. A. T. Ferro and J. Segers, "Inference for clusters of extreme values", JRSS B 65 (2003) 545).
// It is 1 for fewer than two exceedances.
func ExtremalIndex(places []int) float64 {
	if len(places) < 2 {
		return 1
	}
	var sum, squares, sumBefore, products float64
	maximum := 0
	for i := 1; i < len(places); i++ {
		gap := places[i] - places[i-1]
		maximum = max(maximum, gap)
		t := float64(gap)
		sum, squares = sum+t, squares+t*t
		sumBefore, products = sumBefore+t-1, products+(t-1)*(t-2)
	}
	gaps := float64(len(places) - 1)
	if maximum <= 2 {
		return min(1, 2*sum*sum/(gaps*squares))
	}
	return min(1, 2*sumBefore*sumBefore/(gaps*products))
}

// clusters groups exceedances by the longest gaps between them, as many as the extremal index predicts (Ferro and Segers, section 4), and
// returns the largest value of each cluster with its place. Gaps of equal length separate together or not at all.
func clusters(s Series, index float64) Series {
	gaps := make([]int, 0, len(s.At))
	for i := 1; i < len(s.At); i++ {
		gaps = append(gaps, s.At[i]-s.At[i-1])
	}
	slices.SortFunc(gaps, func(a, b int) int { return b - a })
	count := min(int(index*float64(len(s.At))), len(gaps)) // the separating gaps
	for count > 0 && count < len(gaps) && gaps[count-1] == gaps[count] {
		count--
	}
	out := Series{N: s.N, Floor: s.Floor}
	for i, v := range s.Values {
		last := len(out.Values) - 1
		separate := i == 0 || count > 0 && s.At[i]-s.At[i-1] >= gaps[count-1]
		switch {
		case separate:
			out.At, out.Values = append(out.At, s.At[i]), append(out.Values, v)
		case v > out.Values[last]:
			out.At[last], out.Values[last] = s.At[i], v
		}
	}
	return out
}
