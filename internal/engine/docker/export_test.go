package docker

import "testing"

// Listening is for tests that start a daemon.
var Listening = listening

// OptDirs are the directories that such a daemon leaves.
var OptDirs = optDirs

// SetDefaultSocket changes the path of Docker's default socket for a test.
func SetDefaultSocket(t *testing.T, path string) {
	t.Helper()
	original := defaultSocket
	defaultSocket = path
	t.Cleanup(func() { defaultSocket = original })
}
