"""Computes reference.json: figures of package tail from an independent implementation.

It needs Python with NumPy and SciPy: python3 reference.py > reference.json. The fits are scipy.stats.genpareto's, the intervals come from
general-purpose optimisers of SciPy, and the other figures from their definitions. reference.json was made with SciPy 1.17.1 and NumPy 2.4.6.
"""
import json
import sys

import numpy as np
from scipy import optimize, stats

random = np.random.default_rng(20010)


def log_likelihood(y, shape, scale):
    return float(np.sum(stats.genpareto.logpdf(y, shape, scale=scale)))


def scan(f, lo, hi):
    """The largest value of f between lo and hi, from a fine grid and Brent's method."""
    grid = np.linspace(lo, hi, 801)
    at = int(np.argmax([f(x) for x in grid]))
    around = (grid[max(0, at - 1)], grid[min(800, at + 1)])
    best = optimize.minimize_scalar(lambda x: -f(x), bounds=around, method="bounded", options={"xatol": 1e-10})
    return max(f(grid[at]), -best.fun)


def ends(profile, best, low, high, limit):
    return [optimize.brentq(lambda x: profile(x) - limit, low, best), optimize.brentq(lambda x: profile(x) - limit, best, high)]


def fit(y, p):
    shape, _, scale = stats.genpareto.fit(y, floc=0)
    best = optimize.minimize(
        lambda v: -log_likelihood(y, v[0], np.exp(v[1])), [shape, np.log(scale)], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 10000}
    )
    shape, scale, highest = float(best.x[0]), float(np.exp(best.x[1])), -best.fun
    limit = highest - stats.chi2.ppf(0.95, 1) / 2
    r = 1 / p

    def of_level(z):
        def at(shape):
            scale = z / np.log(r) if abs(shape) < 1e-12 else z * shape / (r**shape - 1)
            return log_likelihood(y, shape, scale)

        return scan(at, -0.5, 1.5)

    def of_shape(shape):
        return scan(lambda log_scale: log_likelihood(y, shape, np.exp(log_scale)), np.log(scale) - 2, np.log(scale) + 2)

    level = float(stats.genpareto.isf(p, shape, scale=scale))
    ordered, n = np.sort(y), len(y)
    cdf = stats.genpareto.cdf(ordered, shape, scale=scale)
    i = np.arange(1, n + 1)
    return {
        "excesses": list(map(float, y)), "p": p, "shape": shape, "scale": scale, "log_likelihood": highest, "level": level,
        "level_interval": ends(of_level, level, level / 3, level * 30, limit),
        "shape_interval": ends(of_shape, shape, max(-0.499, shape - 0.6), shape + 1, limit),
        "anderson_darling": float(-n - np.mean((2 * i - 1) * (np.log(cdf) + np.log1p(-cdf[::-1])))),
        "cv": float(np.std(y, ddof=1) / np.mean(y)),
        # The moments E[Y (1 - F)^s] by their sums, solved for the parameters numerically.
        "pwm": pwm(ordered, (i - 0.35) / n),
    }


def pwm(ordered, positions):
    a0, a1 = np.mean(ordered), np.mean(ordered * (1 - positions))
    # E[Y (1 - F)^s] = scale / ((s + 1)(s + 1 - shape))
    found = optimize.root(lambda v: [v[1] / (1 - v[0]) - a0, v[1] / (2 * (2 - v[0])) - a1], [0.1, a0], tol=1e-13)
    return {"shape": float(found.x[0]), "scale": float(found.x[1])}


def series(values, threshold):
    at = np.flatnonzero(values > threshold)
    gaps = np.diff(at).astype(float)
    if gaps.max() <= 2:
        index = 2 * gaps.sum() ** 2 / (len(gaps) * (gaps**2).sum())
    else:
        index = 2 * (gaps - 1).sum() ** 2 / (len(gaps) * ((gaps - 1) * (gaps - 2)).sum())
    v = values[at]
    ranks = stats.rankdata(v)
    n = len(ranks)
    centred = ranks - ranks.mean()
    lags = range(1, 11)
    r = [np.dot(centred[k:], centred[:-k]) / np.dot(centred, centred) for k in lags]
    q = n * (n + 2) * sum(c**2 / (n - k) for k, c in zip(lags, r))
    rho = stats.spearmanr(v, np.arange(n))
    uniform = stats.ks_1samp((at + 0.5) / len(values), stats.uniform.cdf)
    return {
        "n": len(values), "at": list(map(int, at)), "values": list(map(float, v)), "index": float(min(1, index)),
        "ljung_box": float(q), "ljung_box_p": float(stats.chi2.sf(q, 10)),
        "spearman": float(rho.statistic), "spearman_p": float(rho.pvalue),
        "kolmogorov_smirnov": float(uniform.statistic), "kolmogorov_smirnov_p": float(uniform.pvalue),
    }


def rounded(v):
    return [float(f"{x:.6g}") for x in v]


frechet = 1 / random.exponential(size=6001)
json.dump(
    {
        "fits": [
            fit(np.array(rounded(random.exponential(3.0, 300))), 1e-3),
            fit(np.array(rounded(stats.genpareto.rvs(0.184, scale=7.44, size=152, random_state=random))), 0.00316),
            fit(np.array(rounded(stats.genpareto.rvs(-0.25, scale=2.0, size=200, random_state=random))), 1e-3),
        ],
        "series": [
            # Independent, and maxima of two neighbours, whose extremal index is 1/2.
            series(np.array(rounded(random.exponential(size=5000))), 3.2),
            series(np.array(rounded(np.maximum(frechet[1:], frechet[:-1]))), 25.0),
        ],
    },
    sys.stdout,
    indent=1,
)
print()
