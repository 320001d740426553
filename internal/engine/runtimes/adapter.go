package runtimes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// adapterPrefix begins the file's name of an adapter, by which the probe knows that it is one.
const adapterPrefix = "runtime-"

// Adapter is a program that stands in for an OCI runtime where an engine can name a binary but no
// flags for it. It is a copy of the probe that becomes the runtime by exec, which takes some tenths of
// a millisecond a call.
type Adapter struct {
	Binary string   // of the runtime
	Flags  []string // put before the arguments of each call
	// Hide lists prefixes of annotations that the runtime is not to see.
	Hide []string
	// Over is what the runtime says of a kill that fails because the container has ended. The engine is then
	// told so in runc's words. Empty if it speaks runc's.
	Over string
}

// Write writes the adapter into a directory, which it makes if it is not there, under a
// name of its own there, and gives its path.
func (a Adapter) Write(dir, name string) (string, error) {
	var conf strings.Builder
	line := func(key, value string) error {
		if strings.ContainsAny(value, "\n\x00") {
			return fmt.Errorf("an adapter cannot have a %s with a line end: %q", key, value)
		}
		fmt.Fprintf(&conf, "%s %s\n", key, value)
		return nil
	}
	err := line("binary", a.Binary)
	for _, f := range a.Flags {
		err = errors.Join(err, line("flag", f))
	}
	for _, h := range a.Hide {
		err = errors.Join(err, line("hide", h))
	}
	if a.Over != "" {
		err = errors.Join(err, line("over", a.Over))
	}
	path := filepath.Join(dir, adapterPrefix+name)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = image.WriteProbe(path)
	}
	if err == nil {
		err = os.WriteFile(path+".conf", []byte(conf.String()), 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("write an adapter for %s: %w", a.Binary, err)
	}
	return path, nil
}
