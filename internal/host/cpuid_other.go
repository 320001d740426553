//go:build !amd64

package host

// signature is empty, because only x86 CPUs have it.
func signature() string { return "" }
