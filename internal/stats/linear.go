package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// jointDraws is the number of normal vectors for the joint p-value of many blocks. Smaller p-values than a draw shows are Bonferroni's.
const jointDraws = 20_000

// clearBound is a Bonferroni bound far above each level. Such a bound needs no better p-value: the joint one is at least half of it, as the
// typical value has half of the weight.
const clearBound = 0.4

// linearTest is the joint test of many blocks, without swaps. A swap of the labels changes neither the values of both sides together nor their quartiles q.
// For many values a sum over the lowest quarter of a side is, up to a constant, the sum of min(x − q, 0) over its values x (the linear form of a trimmed sum:
// S. M. Stigler, Annals of Statistics 1 (1973) 472–477). So the difference of the two sides is a sum over the blocks,
//
//	T = Σ d,  d = ψ(b) − ψ(a),  ψ(x) = min(x − q, 0),
//
// and a swap changes the sign of one d. Under random swaps T is normal, with the variance Σ d². The lower half and the highest quarter
// have the median and max(x − q, 0), and the other parts are sums of this kind by themselves. The covariance of two parts is Σ d₁d₂. The joint p-value is the
// share of normal vectors with these covariances that have a weighted p-value as small in some part. draws limits their number. The result is never below the p-value of the blocks with a
// sign if all of them agree: sums of few signs are not normal.
func linearTest(a, b []float64, draws int) (t tested) {
	logA, logB := logarithms(a), logarithms(b)
	logs := slices.Concat(logA, logB)
	n := len(a)
	logRatios := subtracted(logB, logA)
	ranks, signed := signedRanks(logRatios)
	forms := [len(parts)][]float64{ranks, rankDifferences(logA, logB)}
	pValues := [len(parts)]float64{signedRankP(ranks), signP(forms[1])}
	for i, part := range []struct {
		sign, q float64 // sign is −1 for the highest values
		count   int
	}{
		2: {1, selectRank(logs, n/2), quarterOf(n)},
		3: {1, selectRank(logs, n), halfOf(n)},
		4: {-1, -selectRank(logs, 2*n-1-n/2), quarterOf(n)},
	} {
		if part.count == 0 {
			continue
		}
		forms[i] = make([]float64, n)
		for j := range forms[i] {
			forms[i][j] = part.sign * (min(part.sign*logB[j]-part.q, 0) - min(part.sign*logA[j]-part.q, 0))
		}
		pValues[i] = signP(forms[i])
		t.ratio[i] = math.Exp(lowestMean(logB, part.sign, part.count) - lowestMean(logA, part.sign, part.count))
	}
	t.each = jointNormal(forms, pValues, min(draws, jointDraws))
	for i := range parts {
		t.observed[i] = floats.Sum(forms[i])
		t.each[i] = max(t.each[i], min(1, math.Ldexp(1, 1-signed)))
	}
	return t
}

// signP is the two-sided p-value of a sum of many differences that have either sign with the same probability.
func signP(d []float64) float64 {
	var sum, squares float64
	for _, v := range d {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	return 2 * upperTail(math.Abs(sum)/math.Sqrt(squares))
}

// jointNormal returns the p-value of each part after the adjustment for the others. pValues come from the parts alone, and
// count is the number of normal vectors.
func jointNormal(forms [len(parts)][]float64, pValues [len(parts)]float64, count int) (out [len(parts)]float64) {
	for i := range parts {
		out[i] = min(1, pValues[i]/partWeights[i]) // Bonferroni's bound
	}
	if slices.Min(out[:]) > clearBound {
		return out
	}
	var critical [len(parts)][len(parts)]float64
	for i, bound := range out {
		for j := range parts {
			critical[i][j] = distuv.UnitNormal.Quantile(1 - bound*partWeights[j]/2)
		}
	}
	weights := normalWeights(forms)
	var hits [len(parts)]int
	for _, independent := range standardNormals()[:count] {
		var z [len(parts)]float64
		for i := range parts {
			for j := range i + 1 {
				z[i] += weights[i][j] * independent[j]
			}
			z[i] = math.Abs(z[i])
		}
		for i := range parts {
			c := &critical[i]
			if z[0] >= c[0] || z[1] >= c[1] || z[2] >= c[2] || z[3] >= c[3] || z[4] >= c[4] {
				hits[i]++
			}
		}
	}
	for i, bound := range out {
		if bound < 1 {
			out[i] = min(bound, float64(hits[i]+1)/float64(count+1))
		}
	}
	return out
}

// standardNormals are independent normal numbers, the same in each test.
var standardNormals = sync.OnceValue(func() [][len(parts)]float64 {
	random := rand.New(generator(1, 6))
	draws := make([][len(parts)]float64, jointDraws)
	for i := range draws {
		for j := range draws[i] {
			draws[i][j] = random.NormFloat64()
		}
	}
	return draws
})

// normalWeights are the lower triangle of weights that make independent normal numbers normal vectors with the correlations of sums of forms whose
// blocks change signs at random. The variances are 1.
func normalWeights(forms [len(parts)][]float64) (weights [len(parts)][len(parts)]float64) {
	product := func(i, j int) float64 { return floats.Dot(forms[i], forms[j]) }
	correlation := mat.NewSymDense(len(parts), nil)
	for i := range parts {
		correlation.SetSym(i, i, 1+roundingError) // with parts that are always equal the matrix stays positive definite
		for j := range i {
			if scale := math.Sqrt(product(i, i) * product(j, j)); scale > 0 {
				correlation.SetSym(i, j, product(i, j)/scale)
			}
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(correlation) {
		panic("stats: the correlations of the parts are not positive definite")
	}
	var lower mat.TriDense
	factor.LTo(&lower)
	for i := range parts {
		for j := range i + 1 {
			weights[i][j] = lower.At(i, j)
		}
	}
	return weights
}

// lowestMean is the mean of the lowest values of a side, after a multiplication by sign.
func lowestMean(values []float64, sign float64, count int) float64 {
	signed := make([]float64, len(values))
	for i, v := range values {
		signed[i] = sign * v
	}
	selectRank(signed, count-1)
	return sign * meanOf(signed[:count])
}
