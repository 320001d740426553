package docker

// Listening is for tests that start a daemon.
var Listening = listening

// OptDirs are the directories that such a daemon leaves.
var OptDirs = optDirs
