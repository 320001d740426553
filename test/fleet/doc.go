// Package fleet tests touchstone cluster on a real cluster: whole runs, with faults of the coordinator, the agents and the nodes. It is not part of the
// product.
package fleet
