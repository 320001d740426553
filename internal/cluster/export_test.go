package cluster

// Joined is joined, for tests.
var Joined = joined
