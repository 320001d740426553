package crilog

// Unwatch ends the events of a log.
func (f *Follower) Unwatch() { f.watcher.remove(f) }
