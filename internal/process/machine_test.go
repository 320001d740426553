package process

import (
	"errors"
	"testing"
)

// A program outside of a container, or in one with processes of its own, does not start a second one of itself.
func TestStartOnOwnMachine(t *testing.T) {
	if err := enterMachine("/proc/self/ns/", "/proc/thread-self/ns/"); !errors.Is(err, errOwnProcesses) {
		t.Errorf("entering the own namespaces ends with %v, want %v", err, errOwnProcesses)
	}
}
