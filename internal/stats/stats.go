// Package stats turns samples into statements: estimates with intervals,
// comparisons with verdicts, and warnings. All functions are pure; a random
// number comes from a seed that the caller gives, so that a report is the same
// each time it is made.
package stats
