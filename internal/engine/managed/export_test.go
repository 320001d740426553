package managed

// WaitEnd waits until the daemon's exit is known.
func (d *Daemon) WaitEnd() {
	d.mu.Lock()
	exited := d.exited
	d.mu.Unlock()
	<-exited
}

// Dirs are the daemon's directories.
func (d *Daemon) Dirs() Dirs { return d.dirs }
