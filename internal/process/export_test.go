package process

import "time"

// SetGrace changes the time that a killed process has for its exit.
func SetGrace(l *Launcher, grace time.Duration) { l.grace = grace }
