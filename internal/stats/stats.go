// Package stats turns samples into statements: estimates with intervals,
// comparisons with verdicts, and warnings. All functions are pure; a random
// number comes from a seed that the caller gives, so that a report is the same
// each time it is made. No function sorts or changes what it is given.
//
// Benchmark samples are few, skewed, sometimes of two modes, and drift with the
// host. Nothing here assumes a distribution:
//
//   - The headline is the median. Its 95 % interval is an expanded percentile
//     bootstrap ([Summarize]).
//   - Two targets of a run are compared block by block ([Compare]), two runs as
//     independent samples ([CompareUnpaired]): the ratio of the medians with a
//     bootstrap interval, and an exact permutation test on ranks.
//   - Comparisons that are shown together are judged together ([Judge]): Holm's
//     correction keeps the probability of one false "faster" or "slower" in the
//     whole family at 5 %.
//   - What the numbers hide is said in words ([Warning]).
//
// Why ranks and not the plain sign-flip or label-shuffle test of a mean: one
// disturbed trial moves a mean but not a rank; and the distribution of a rank
// statistic can be counted to its end for any number of blocks, where shuffling
// 10 000 times cannot give a p-value below 1/10 001 and so can never pass Holm's
// correction in a family of 500 comparisons.
//
// What it refuses: an interval or a verdict below [MinSamples], a percentile that
// fewer than two samples exceed, a ratio of values that are not positive. It
// cannot tell why two runs differ: the host may have changed between them.
//
// The claims (coverage of intervals, false alarms, power) are simulated by the
// tests, on normal, skewed, heavy-tailed and bimodal noise.
package stats
