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
//     independent samples ([CompareUnpaired]). The ratio is the estimate of Hodges and
//     Lehmann, and its interval inverts the rank test. One permutation test judges the
//     typical value and three other parts of the distribution together ([Part]).
//   - Comparisons that are shown together are judged together ([Judge]): Holm's
//     correction keeps the probability of one false "faster" or "slower" in the
//     whole family at 5 %. [JudgeTogether] marks the differences that hold over all
//     comparisons of a report.
//   - Several runs a side are compared with the runs as the observations
//     ([CompareRuns], [Pooled]).
//   - Properties that the estimates hide, such as drift, are warnings ([Warning]).
//
// The typical value is tested by ranks, not by a mean. One
// disturbed trial moves a mean but not a rank.
//
// The package refuses an interval or a verdict below [MinSamples], a percentile that
// fewer than two samples exceed, and a ratio of values that are not positive. It
// cannot find the cause of a difference between two runs: the host may have changed.
//
// The tests simulate the claims (coverage of intervals, false alarms, power)
// on normal, skewed, heavy-tailed and bimodal noise.
package stats
