// Package script holds the instructions for the wrapper of the campaign: which calls of a runtime go wrong, and how.
package script

// File is the name of the script, beside the wrapper's program. Calls is the name of the list of calls, one line of JSON each, and Reached
// the name of a pipe that gets a byte whenever a rule applies. Go is a pipe that lets a held call continue.
const (
	File    = "script.json"
	Calls   = "calls"
	Reached = "reached"
	Go      = "go"
)

// Script describes a runtime.
type Script struct {
	// Real is the runtime that executes the calls.
	Real string
	// Rules are tried in order. Without a rule a call is forwarded.
	Rules []Rule
}

// Rule selects calls and their fault.
type Rule struct {
	// Verb is the verb of the runtime, such as create, or "version" for --version.
	Verb string
	// From is the first of the verb's calls, from 1. Until is the last one; 0 means no end.
	From, Until int
	Fault       Fault
	// Size is the number of bytes of a flood.
	Size int64
}

// Fault is a way to go wrong.
type Fault string

const (
	// Hang does nothing until SIGKILL.
	Hang Fault = "hang"
	// Hold waits for a byte from the pipe Go, and forwards the call.
	Hold Fault = "hold"
	// Escape hangs as well, with a child in a session of its own, as a program behind sudo.
	Escape Fault = "escape"
	// Lie exits with code 0 and does nothing.
	Lie Fault = "lie"
	// Fail exits with code 1 and does nothing.
	Fail Fault = "fail"
	// FloodOutput writes Size bytes to standard output, and forwards the call.
	FloodOutput Fault = "flood stdout"
	// FloodError does the same with standard error.
	FloodError Fault = "flood stderr"
	// FloodLog does the same with the file of --log.
	FloodLog Fault = "flood log"
)

// Call is a recorded call.
type Call struct {
	Verb string
	PID  int
	Args []string
}
