package oci

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// remedy returns the advice for the error of the first container if a refused system call is its cause. refused are the calls that this
// program may not make. The runtime may not make them either, and some runtimes cannot do without.
func remedy(err error, refused []*refusal.Error) (advice string, ok bool) {
	if _, ok := errors.AsType[*refusal.Error](err); ok {
		return "", true // its message ends with the remedy
	}
	text := err.Error()
	for _, r := range refused {
		if strings.Contains(text, r.What) {
			return r.Remedy, true
		}
	}
	if len(refused) > 0 && denied(err) {
		r := refused[0]
		return fmt.Sprintf("the reason may be %s, which is refused to Touchstone too (%v): %s", r.What, r.Err, r.Remedy), true
	}
	return "", false
}

// denied reports whether the kernel has denied something to the runtime, by the error or by the runtime's message.
func denied(err error) bool {
	text := err.Error()
	return errors.Is(err, syscall.EPERM) || strings.Contains(text, "ermission denied") || strings.Contains(text, "not permitted")
}
