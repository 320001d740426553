package stats

import (
	"math"
	"slices"
)

// linearTest is the joint test of many blocks, without random swaps. A swap of the labels changes neither the values of both sides together nor their quartiles q.
// For many values a sum over the lowest quarter of a side is, up to a constant, the sum of min(x − q, 0) over its values x (the linear form of a trimmed sum:
// S. M. Stigler, Annals of Statistics 1 (1973) 472–477). So the difference of the two sides is a sum over the blocks,
//
//	T = Σ d,  d = ψ(b) − ψ(a),  ψ(x) = min(x − q, 0),
//
// and a swap changes the sign of one d. Under random swaps T has the variance Σ d², and is normal. The lower half and the highest quarter
// have the median and max(x − q, 0), and the typical value has the signed-rank test. P is the smallest weighted p-value (Bonferroni), so it is somewhat
// greater than [jointTest] would give.
func linearTest(a, b []float64) (p float64, each, ratios [len(parts)]float64) {
	logA, logB := logarithms(a), logarithms(b)
	each[0], ratios[0] = signedRank(subtracted(logB, logA)), math.NaN()
	all := slices.Concat(logA, logB)
	n := len(a)
	for i, part := range []struct {
		sign, q float64 // sign is −1 for the highest values
		count   int
	}{{1, selectRank(all, n/2), quarterOf(n)}, {1, selectRank(all, n), halfOf(n)}, {-1, -selectRank(all, 2*n-1-n/2), quarterOf(n)}} {
		var sum, squares float64
		for j := range logA {
			d := min(part.sign*logB[j]-part.q, 0) - min(part.sign*logA[j]-part.q, 0)
			sum += d
			squares += d * d
		}
		each[i+1] = 1
		if squares > 0 {
			each[i+1] = 2 * upperTail(math.Abs(sum)/math.Sqrt(squares))
		}
		ratios[i+1] = math.Exp(part.sign * (lowestMean(logB, part.sign, part.count) - lowestMean(logA, part.sign, part.count)))
	}
	p = 1
	for i := range each {
		each[i] = min(1, each[i]/partWeights[i])
		p = min(p, each[i])
	}
	return p, each, ratios
}

// lowestMean is the mean of the lowest values of a side, after a multiplication by sign.
func lowestMean(values []float64, sign float64, count int) float64 {
	signed := make([]float64, len(values))
	for i, v := range values {
		signed[i] = sign * v
	}
	selectRank(signed, count-1)
	return meanOf(signed[:count])
}
