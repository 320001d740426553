package portability

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// stage is the step of an attempt in which the engine refused the image. It is empty if the program was started.
type stage string

const (
	pulling  stage = "pull"
	creating stage = "create"
	starting stage = "start"
)

// attempted is the result of an attempt to run an image.
type attempted struct {
	image          bench.Minimal
	id             string // of the container
	at             stage
	refusal        error // of the engine in the stage
	exit           engine.Exit
	stdout, stderr bench.Watch
	seconds        float64 // the sum of the phases until the exit
	guest          bool    // the container was in a virtual machine
}

// refused keeps the error of an engine that refuses an image. It returns other errors: the end of the context, a limit, and a
// missing capability.
func (a *attempted) refused(ctx context.Context, step stage, err error) error {
	if ctx.Err() != nil || engine.Unsupported(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	a.at, a.refusal = step, err
	return nil
}

// runs reports whether the program ran to its exit.
func (a *attempted) runs() bool {
	return a.at == "" && a.exit == engine.Exit{Code: bench.MinimalCode} && len(a.stdout.Bytes()) == 0
}

// failure is the reason why the program did not run.
func (a *attempted) failure() error {
	if a.refusal != nil {
		return a.refusal
	}
	text := fmt.Sprintf("the program ended: %v", a.exit)
	if out := strings.TrimSpace(string(a.stdout.Bytes())); out != "" {
		text += fmt.Sprintf(", with the output %.100q", out)
	}
	if message := strings.TrimSpace(string(a.stderr.Bytes())); message != "" {
		text += ": " + message
	}
	return errors.New(text)
}

// The words of kernels, runtimes and engines for a program or an image of another architecture, in lower case. ENOEXEC is the
// error of execve; strerror and Go's syscall package spell it differently from the kernel's name.
var (
	formatWords   = []string{"exec format error", "enoexec", "cannot execute binary file"}
	platformWords = []string{
		"no match for platform", "no matching manifest", "does not match the specified platform", "no image found in image index for architecture",
		"no image found in manifest list for architecture", "does not match the expected platform", "does not match the detected host platform",
		"unsupported platform", "unsupported architecture", "wrong architecture",
	}
	// Without the emulator's file in the container the kernel returns ENOENT for a program that exists.
	missingWords = []string{"no such file or directory", "not found", "enoent"}
)

// illegal are the signals of a program whose instructions the processor or the emulator cannot execute.
var illegal = []syscall.Signal{syscall.SIGILL, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGTRAP, syscall.SIGSYS}

// execErrors are the exit codes of a container in a Kata guest whose program is of another architecture. The agent exits with the
// error of execvp and writes no message. For ENOEXEC, glibc's execvp tries the shell, which the image does not have: ENOENT.
var execErrors = []syscall.Errno{syscall.ENOEXEC, syscall.ENOENT}

// outcome describes the result of the attempt for an image whose architecture is the host's own or, with isForeign,
// another. The error is the failure if the architecture does not explain it.
func (a *attempted) outcome(isForeign bool) (string, error) {
	failure := ""
	if !a.runs() {
		failure = strings.ToLower(a.failure().Error())
	}
	contains := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(failure, w) })
	}
	emulated := isForeign && a.image.Emulator.Name != ""
	switch {
	case failure == "" && emulated:
		return "runs by emulation", nil
	case failure == "" && isForeign && a.image.Emulator.Unknown != "":
		return "runs, perhaps by emulation", nil
	case failure == "":
		return "runs", nil
	case contains(formatWords):
		return "exec format error at " + a.where(), nil
	case contains(platformWords):
		return "refused at " + a.where(), nil
	case emulated && !a.image.Emulator.Fixed && contains(missingWords):
		return "emulator not found in the container", nil
	case a.at == "" && isForeign && slices.Contains(illegal, a.exit.Signal):
		return fmt.Sprintf("starts, but fails: %v", a.exit), nil
	case a.at == "" && isForeign && a.guest && slices.Contains(execErrors, syscall.Errno(a.exit.Code)) && len(a.stdout.Bytes())+len(a.stderr.Bytes()) == 0:
		return fmt.Sprintf("does not start in the guest: %v", a.exit), nil
	}
	return "", fmt.Errorf("the image of the other architecture does not run, for a reason that its architecture does not explain: %w", a.failure())
}

// where is the step of the failure.
func (a *attempted) where() string {
	if a.at == "" {
		return "exec, after start"
	}
	return string(a.at)
}

// random matches texts that engines and registries make for one trial: hexadecimal IDs and digests, the port of the registry,
// and times.
var random = regexp.MustCompile(`\b[0-9a-f]{12,}\b|127\.0\.0\.1:[0-9]+|\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)?`)

// ours matches the beginning of an error that names the call of Touchstone.
var ours = regexp.MustCompile(`^(create|start)( container)? "ID"( with \S+)?: |^pull image IMAGE( with \S+)?: `)

// words are the engine's message without the names and times of this trial, so that the same failure has the same words in each
// trial. They are empty if the program ran.
func (a *attempted) words() string {
	if a.runs() {
		return ""
	}
	text := a.failure().Error()
	if a.refusal == nil { // the program ended, and the runtime may have written to its standard error
		text = cmp.Or(strings.TrimSpace(string(a.stderr.Bytes())), text)
	}
	for name, stands := range map[string]string{a.id: "ID", a.image.Ref: "IMAGE"} {
		if name != "" {
			text = strings.ReplaceAll(text, name, stands)
		}
	}
	return random.ReplaceAllString(ours.ReplaceAllString(text, ""), "…")
}
