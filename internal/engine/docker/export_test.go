package docker

// Listening is for tests that start a daemon.
var Listening = listening
