// Package examples holds plans. Some of them are built into the program.
package examples

import "embed"

// Builtin holds the plans of touchstone benchmark --plan, of touchstone reproduce, and of touchstone cluster run.
//
//go:embed cluster.yaml explain.yaml quick.yaml standard.yaml latency.yaml paper.yaml reproduce-*.yaml
var Builtin embed.FS
