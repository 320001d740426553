package plan

// didYouMean returns advice with the candidate nearest to a mistyped name, or otherwise if no candidate is near.
func didYouMean(name string, candidates []string, otherwise string) string {
	best, nearest := "", 1+max(1, min((len(name)+1)/3, 3))
	for _, c := range candidates {
		if d := distance(name, c, nearest); d < nearest {
			best, nearest = c, d
		}
	}
	if best == "" {
		return otherwise
	}
	return "did you mean " + best + "?"
}

// distance returns the number of bytes to insert, delete, replace or swap with a neighbour to turn a into b (optimal string
// alignment), at most limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	var before, last, row []int
	for j := range len(b) + 1 {
		last = append(last, j)
	}
	for i := range len(a) {
		row = append(make([]int, 0, len(b)+1), i+1)
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row = append(row, d)
		}
		before, last = last, row
	}
	return min(last[len(b)], limit)
}
