package runtimes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// adapterPrefix begins the file name of an adapter. The probe acts as an adapter under such a name.
const adapterPrefix = "runtime-"

// Adapter is a program in place of an OCI runtime, for engines that accept a binary but no flags for it. It is a copy of the
// probe that executes the runtime, which adds some tenths of a millisecond to each call.
type Adapter struct {
	Binary string   // of the runtime
	Flags  []string // put before the arguments of each call
	// Hide lists prefixes of annotations to hide from the runtime.
	Hide []string
	// OOMScore replaces a negative OOM score of a container. It has at most four digits. It is empty to keep all scores.
	OOMScore string
	// Over is the runtime's message about a kill after the container's exit. The adapter replaces it by runc's message,
	// which engines recognize. It is empty for a runtime with runc's message.
	Over string
	// Delays make the runtime slower by known times.
	Delays []Delay
}

// Delay is a time that passes before each call of a verb, such as create.
type Delay struct {
	Verb string
	Time time.Duration // at most a minute
	// Burn spends the time on a CPU. Without it the adapter sleeps.
	Burn bool
}

// Write writes the adapter to a directory, which it makes if it is missing, and returns its path. The name must be unique in
// the directory.
func (a Adapter) Write(dir, name string) (string, error) {
	var conf strings.Builder
	line := func(key, value string) error {
		if strings.ContainsAny(value, "\n\x00") {
			return fmt.Errorf("the %s of an adapter contains a line end: %q", key, value)
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
	if a.OOMScore != "" {
		err = errors.Join(err, line("score", a.OOMScore))
	}
	if a.Over != "" {
		err = errors.Join(err, line("over", a.Over))
	}
	for _, d := range a.Delays {
		key := "sleep"
		if d.Burn {
			key = "burn"
		}
		err = errors.Join(err, line(key, fmt.Sprintf("%s %d", d.Verb, d.Time.Nanoseconds())))
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
