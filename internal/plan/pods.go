package plan

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Pods are the properties of pods over CRI. The zero value is Touchstone's choice.
type Pods struct {
	// PID is sharedPIDs or ownPIDs; empty stands for ownPIDs.
	PID string `yaml:"pid,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL, in whole seconds; 0 is SIGKILL at once.
	Grace time.Duration `yaml:"grace,omitempty"`
}

// The values of PID: the pod has one PID namespace, or each container its own.
const (
	sharedPIDs = "pod"
	ownPIDs    = "container"
)

// touchstonePods are the properties of TouchStone's pods: it left the PID namespace of CRI at its zero value POD, and stopped
// containers with a timeout of 10 (pkg/runtime/runtime.go, InitLinuxSandbox and StopAndRemoveContainer).
var touchstonePods = Pods{PID: sharedPIDs, Grace: 10 * time.Second}

// Engine returns the properties in the form of engines.
func (p Pods) Engine() engine.Pods {
	return engine.Pods{SharePIDs: p.PID == sharedPIDs, Grace: p.Grace}
}

// podFields are the keys of pods.
func (r *reader) podFields() []field {
	p := &r.plan.Pods
	return []field{
		{"pid", func(n ast.Node) { r.choice(n, "pods.pid", []string{sharedPIDs, ownPIDs}, &p.PID) }},
		{"grace", func(n ast.Node) {
			r.seen["pods.grace"] = r.at(n)
			var grace time.Duration
			r.duration(n, "pods.grace", &grace)
			if grace%time.Second != 0 {
				r.fail(n, fmt.Sprintf("pods.grace: %s is not a number of whole seconds, the unit of CRI", shown(n)), "write it like 10s")
				return
			}
			p.Grace = grace
		}},
	}
}

// seccomp reads the filter of system calls.
func (r *reader) seccomp(n ast.Node) {
	var s string
	r.choice(n, "seccomp", []string{string(engine.DefaultSeccomp), string(engine.Unconfined)}, &s)
	r.plan.Seccomp = engine.Seccomp(s)
}

// choice reads one of two words.
func (r *reader) choice(n ast.Node, key string, words []string, dest *string) {
	s, _ := text(n)
	for _, word := range words {
		if s == word {
			*dest = s
			return
		}
	}
	r.fail(n, fmt.Sprintf("%s: %s is neither %s nor %s", key, shown(n), words[0], words[1]), didYouMean(s, words, "write one of the two"))
}
