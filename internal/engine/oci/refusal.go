package oci

import (
	"errors"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// remedy returns the advice for the error of the first container if a refused system call is its cause. refusals are the calls that this
// program may not make. The runtime may not make them either, and some runtimes cannot do without.
func remedy(err error, refusals []*refusal.Error) (advice string, ok bool) {
	if _, ok := errors.AsType[*refusal.Error](err); ok {
		return "", true // its message ends with the remedy
	}
	advice = refusal.Suspect(err.Error(), refusals)
	return advice, advice != ""
}
