package managed

import (
	"runtime"
	"strings"
)

// WaitEnd waits until the daemon's exit is known.
func (d *Daemon) WaitEnd() {
	d.mu.Lock()
	exited := d.exited
	d.mu.Unlock()
	<-exited
}

// Dirs are the daemon's directories.
func (d *Daemon) Dirs() Dirs { return d.dirs }

// WaitSyslog waits until a complaint with this text has been read. It returns false if that takes too long.
func (d *Daemon) WaitSyslog(text string) bool {
	const rounds = 10_000_000
	for range rounds {
		if strings.Contains(d.Complaints(), text) {
			return true
		}
		runtime.Gosched()
	}
	return false
}
