package result

// TraceCounts counts what the processes of a component did in a step of a traced trial.
type TraceCounts struct {
	// Step is the name of a phase, or "phase/Step"; empty for the time outside of all calls of the engine.
	Step string `json:"step,omitempty"`
	// Component is the part of the target, such as "runtime" or "shim".
	Component string `json:"component"`
	// Calls counts system calls by name.
	Calls map[string]int64 `json:"calls,omitempty"`
	// Processes and Threads count the new ones.
	Processes int64 `json:"processes,omitempty"`
	Threads   int64 `json:"threads,omitempty"`
	// Programs counts executed programs by the kernel's name.
	Programs map[string]int64 `json:"programs,omitempty"`
}
