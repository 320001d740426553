// Package examples holds plans. Some of them are part of the program: the files are what it reads.
package examples

import "embed"

// Builtin are the plans that touchstone benchmark --plan knows.
//
//go:embed quick.yaml standard.yaml paper.yaml
var Builtin embed.FS
