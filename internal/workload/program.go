package workload

// Program is a call of a program of the workload image, with the reader of its output.
type Program struct {
	Args []string
	// Env are variables beside PATH. LC_ALL=C is not among them: the image has no other locale.
	Env []string
	// Parse reads what the program has written to standard output when it has ended with code 0. It
	// refuses output that is cut off, of another program, version or locale, or in which a count,
	// a checksum or a number cannot be: a failure must never look like a result.
	Parse func(stdout []byte) (Values, error)
}

// Values are what a program found, by the names of metrics, in base units: seconds, bytes, operations
// a second. They are finite.
type Values map[string]float64
