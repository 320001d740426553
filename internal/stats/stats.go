// Package stats turns samples into statements: estimates with intervals,
// comparisons with verdicts, and warnings. It also has the rule that stops a
// benchmark with enough blocks ([StopRule]). All functions are pure. Random
// numbers come from the caller's seed, so that a report is always the same.
// No function sorts or changes its arguments.
//
// Benchmark samples are few and skewed, sometimes have two modes, and drift with the
// host. No function assumes a distribution:
//
//   - The headline is the median. Its 95 % interval is an expanded percentile
//     bootstrap ([Summarize]).
//   - Two targets of a run are compared block by block ([Compare]), two runs as
//     independent samples ([CompareUnpaired]): the ratio of the medians with a
//     bootstrap interval, and an exact permutation test on ranks.
//   - Comparisons of a run that ends single cells are judged at their looks ([Sequential]): the looks
//     share the error.
//   - Comparisons that are shown together are judged together ([Judge]): Holm's
//     correction keeps the probability of one false "faster" or "slower" in the
//     whole family at 5 %.
//   - Properties that the estimates hide, such as drift, are warnings ([Warning]).
//
// The tests use ranks, not the sign-flip or label-shuffle test of a mean. One
// disturbed trial moves a mean but not a rank. The distribution of a rank
// statistic is exact for any number of blocks, but 10 000 shuffles cannot give a
// p-value below 1/10 001, which never passes Holm's correction in a family of
// 500 comparisons.
//
// The package refuses an interval or a verdict below [MinSamples], a percentile that
// fewer than two samples exceed, and a ratio of values that are not positive. It
// cannot find the cause of a difference between two runs: the host may have changed.
//
// The tests simulate the claims (coverage of intervals, false alarms, power)
// on normal, skewed, heavy-tailed and bimodal noise.
package stats
