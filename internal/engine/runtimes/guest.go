package runtimes

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// getKata finds the shim of Kata Containers and the configuration of a target. must means that the shim must be on this host: a
// type that the user names may be known to the user's daemon only.
func getKata(ctx context.Context, s engine.Session, t target.Target, r Runtime, must bool) (Runtime, error) {
	r.Kind, r.Version = shimKind(r.Type), r.Type
	containerd := s.Engines["containerd"]
	if containerd == "" {
		containerd, _ = engine.LookPath("containerd") // the shim may be elsewhere
	}
	if override := s.Engines[kata.Shim]; override != "" {
		if err := engine.CheckProgram(override); err != nil {
			return r, &engine.UnsupportedError{What: t.String(), Reason: err.Error(), Advice: "correct --engine-bin " + kata.Shim + "=PATH"}
		}
	}
	r.Shim = cmp.Or(s.Engines[kata.Shim], kata.FindShim(r.Type, containerd))
	if r.Shim == "" && must {
		return r, &engine.UnsupportedError{
			What: t.String(), Reason: kata.Shim + " is neither on PATH nor in /opt/kata/bin", Advice: "install Kata Containers 3, on a machine with KVM",
		}
	}
	var err error
	if r.Guest, err = kata.Load(r.Shim, r.With(t).Options); err != nil {
		var u *engine.UnsupportedError
		if errors.As(err, &u) {
			u.What = t.String()
		}
		return r, err
	}
	r.Shim = cmp.Or(r.Guest.Shim, r.Shim)
	if r.Shim != "" {
		r.Version = cmp.Or(shimVersion(ctx, s, r.Shim), r.Version)
	}
	r.Notes = append(r.Notes, r.Guest.Notes()...)
	return r, nil
}

// kataVersion finds the version in the output of Kata's shims, such as "Kata Containers containerd shim (Golang): id:
// "io.containerd.kata.v2", version: 3.32.0, commit: REVISION".
var kataVersion = regexp.MustCompile(`\bversion: ([0-9][^,\s]*)`)

// shimVersion queries the version of Kata's shim. It is empty if the shim prints none.
func shimVersion(ctx context.Context, s engine.Session, shim string) string {
	ctx, cancel := context.WithTimeoutCause(ctx, AnswerLimit, ErrNoAnswer)
	defer cancel()
	var out Answer
	cmd := exec.CommandContext(ctx, shim, "--version")
	cmd.Stdout = &out
	_ = s.Launcher.Run(ctx, cmd) // without a version the target can be used too
	found := kataVersion.FindStringSubmatch(out.String())
	if found == nil {
		return ""
	}
	return "Kata Containers " + found[1][:min(len(found[1]), longestVersion)]
}

// TryLimit is the deadline for a test container: AnswerLimit, and with a guest also the time that Kata waits for it. After that time
// Kata reports the reason itself.
func (r Runtime) TryLimit() time.Duration {
	if r.Guest == nil {
		return AnswerLimit
	}
	return AnswerLimit + r.Guest.DialTimeout()
}

// WithTryLimit returns a context for a test container of the runtime.
func (r Runtime) WithTryLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := r.TryLimit()
	return context.WithTimeoutCause(ctx, limit, limitError(limit))
}
