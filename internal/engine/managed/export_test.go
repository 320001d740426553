package managed

import (
	"runtime"
	"slices"
	"strings"
	"time"
)

// WaitEnd waits until the daemon's exit is known.
func (d *Daemon) WaitEnd() { <-d.Exited() }

// SetAnswerLimit replaces the deadline for an answer after a timeout, and returns the earlier one.
func SetAnswerLimit(d time.Duration) (previous time.Duration) {
	previous, answerLimit = answerLimit, d
	return previous
}

// SetStopLimit replaces the deadline for an exit, and returns the earlier one.
func SetStopLimit(d time.Duration) (previous time.Duration) {
	previous, stopLimit = stopLimit, d
	return previous
}

// Dirs are the daemon's directories.
func (d *Daemon) Dirs() Dirs { return d.dirs }

// WaitSyslog waits until a complaint with this text has been read, which Complaints then returns. It returns false if that takes
// too long.
func (d *Daemon) WaitSyslog(text string) bool {
	const rounds = 10_000_000
	has := func(complaint string) bool { return strings.Contains(complaint, text) }
	for range rounds {
		d.syslog.mu.Lock()
		found := slices.ContainsFunc(d.syslog.complaints, has)
		d.syslog.mu.Unlock()
		if found {
			return true
		}
		runtime.Gosched()
	}
	return false
}
