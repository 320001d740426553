// Package examples holds plans. Some of them are built into the program.
package examples

import "embed"

// Builtin holds the plans of touchstone benchmark --plan and of touchstone reproduce.
//
//go:embed quick.yaml standard.yaml latency.yaml paper.yaml reproduce-*.yaml
var Builtin embed.FS
