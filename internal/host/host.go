// Package host describes the machine of a run.
//
// The packages below it have one task each: [facts] reads the fingerprint, [check] finds the conditions that make results less stable, with their
// effects and remedies, and [tune] changes settings and puts them back. Package noise measures how other load disturbed a trial, energy reads the
// energy that the machine takes, supply reads its free resources, and binfmt finds the interpreters of programs of another architecture. All of them
// read the kernel's files by package machine, below a root directory, so that tests can use copies of real machines.
package host

import (
	"github.com/touchstone-bench/touchstone/internal/host/check"
	"github.com/touchstone-bench/touchstone/internal/host/facts"
	"github.com/touchstone-bench/touchstone/internal/host/tune"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Facts describes a machine with its tuning, and with warnings about conditions that make results less stable. root is the root of its file system:
// "/", or a copy in tests.
func Facts(root string) result.Host {
	h := facts.Read(root)
	h.Tuned, h.Warnings = tune.InEffect(root), check.Warnings(root, h)
	return h
}
