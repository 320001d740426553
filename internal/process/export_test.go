package process

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// SetGrace changes the time that a killed process has for its exit.
func SetGrace(l *Launcher, grace time.Duration) { l.grace = grace }

// Remember makes a launcher know an exit code of an orphan.
func Remember(l *Launcher, pid, code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[pid] = Exit{Status: syscall.WaitStatus(code << 8)}
}

// RefuseClone makes a launcher work as if clone3 had failed with an error.
func RefuseClone(l *Launcher, errno unix.Errno) { l.noClone = cloneRefusalOf(errno) }

// CloneRefusal is the interpretation of an error of clone3.
func CloneRefusal(errno unix.Errno) *refusal.Error { return cloneRefusalOf(errno) }

// RefusePidfds makes a launcher work as if pidfd_open had failed with an error.
func RefusePidfds(l *Launcher, errno unix.Errno) {
	l.noPidfd = refusal.SystemCall("pidfd_open", "5.3", errno)
}

// RealTimeRefusal is the interpretation of the refusal of a cgroup.
func RealTimeRefusal(err error, policy uint32) error {
	return realTimeRefusal("/sys/fs/cgroup/cpu/any", err, policy)
}
