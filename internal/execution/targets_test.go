package execution

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// machine returns candidates: "name" may work and "-name" cannot work. A final ! marks a candidate of
// the default plan.
func machine(t *testing.T, list string) []engine.Candidate {
	t.Helper()
	var candidates []engine.Candidate
	for item := range strings.FieldsSeq(list) {
		var c engine.Candidate
		name, isDefault := strings.CutSuffix(item, "!")
		name, failure := strings.CutPrefix(name, "-")
		if c.Default = isDefault; failure {
			c.Err = errors.New("it does not work")
		}
		parsed, err := target.Parse(name)
		must.Do(t, err)
		c.Target = parsed
		candidates = append(candidates, c)
	}
	return candidates
}

func TestSelectTargets(t *testing.T) {
	// runc and runsc are there, crun is not; containerd is, CRI-O is too but without runsc, Docker is not.
	const standard = "native! oci/runc! -oci/crun! oci/runsc! oci/runsc@platform=kvm " +
		"containerd/runc! -containerd/crun! containerd/runsc! containerd/runsc@platform=kvm " +
		"crio/runc -crio/crun -crio/runsc -docker/runc -docker/crun -docker/runsc"
	const kata = "version: 1\nruntimes: {kata: {type: io.containerd.kata.v2}}\n"
	for _, c := range []struct {
		name, machine, plan string
		targets             []string
		want                string
	}{
		{"the default", standard, "version: 1", nil, "native oci/runc oci/runsc"},
		{"private daemons", standard, "version: 1\nengines: {managed: true}", nil, "native oci/runc oci/runsc containerd/runc containerd/runsc"},
		{"a CRI socket", standard, "version: 1\nengines: {sockets: {containerd: /run/c.sock}}", nil, "native oci/runc oci/runsc containerd/runc containerd/runsc"},
		{"Docker's address", standard + " docker/runc!", "version: 1\nengines: {sockets: {docker: /run/d.sock}}", nil, "native oci/runc oci/runsc"},
		{"nothing but bare metal", "native! -oci/runc! -oci/crun!", "version: 1", nil, "native"},
		{"a runtime that the plan defines", "native! -oci/runc! -oci/kata! -containerd/runc! -containerd/kata!", kata, nil, "native oci/kata"},
		{"the same by a pattern", "native! oci/runc! -oci/kata! containerd/runc containerd/kata -crio/kata", kata, []string{"*/kata"}, "oci/kata containerd/kata"},
		{"a baseline beside the default", standard, "version: 1\nbaseline: containerd/runc", nil, "native oci/runc oci/runsc containerd/runc"},
		{"exact names", standard, "version: 1", []string{"docker/crun", "native"}, "docker/crun native"},
		{"an engine", standard, "version: 1", []string{"containerd/*"}, "containerd/runc containerd/runsc"},
		{"a runtime", standard, "version: 1", []string{"*/runc"}, "oci/runc containerd/runc crio/runc"},
		{"a pair that does not work together", standard, "version: 1", []string{"*/runsc"}, "oci/runsc containerd/runsc crio/runsc"},
		{"options", standard, "version: 1", []string{"*/runsc@platform=kvm"}, "oci/runsc@platform=kvm containerd/runsc@platform=kvm crio/runsc@platform=kvm"},
		{"all", standard, "version: 1", []string{"all"}, "native oci/runc oci/runsc containerd/runc containerd/runsc crio/runc crio/runsc"},
		{"each once, in the order of the plan", standard, "version: 1", []string{"crio/runc", "*/runc", "oci/*", "native"}, "crio/runc oci/runc containerd/runc oci/runsc native"},
		{"an engine that is missing", standard, "version: 1", []string{"docker/*"}, "docker/runc docker/crun docker/runsc"},
		{"a daemon of the user's that does not answer", standard, "version: 1\nengines: {sockets: {docker: /run/d.sock}}", []string{"*/runc"}, "oci/runc containerd/runc crio/runc docker/runc"},
		{"a baseline that is not found", standard, "version: 1\nbaseline: docker/runc\ntargets: ['*/*']", nil, "oci/runc oci/runsc containerd/runc containerd/runsc crio/runc crio/runsc docker/runc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Parse("p", []byte(c.plan))
			if err == nil {
				p, err = p.Apply(plan.Overrides{Targets: c.targets})
			}
			must.Do(t, err)
			selection, err := selectTargets(p, engines.All(fake.NewClock(), p.Engines.Sockets), machine(t, c.machine))
			must.Do(t, err)
			var got []string
			for _, s := range selection {
				got = append(got, s.String())
			}
			expect.Equal(t, "targets", c.want, strings.Join(got, " "))
		})
	}
}

func TestPatternWithoutMatchIsRefused(t *testing.T) {
	p, err := plan.Quick().Apply(plan.Overrides{Targets: []string{"native", "lxc/*"}})
	must.Do(t, err)
	selection, err := selectTargets(p, engines.All(fake.NewClock(), p.Engines.Sockets), machine(t, "native! oci/runc!"))
	if usage := (*UsageError)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), "lxc/*") || selection != nil {
		t.Errorf("a pattern without a match selects %v, %v", selection, err)
	}
}

// The record of a run knows the kinds of isolation that engines declare.
func TestSandboxedTargets(t *testing.T) {
	for isolation, want := range map[engine.Isolation]bool{
		engine.NoIsolation: false, engine.SharedKernel: false, engine.Unknown: false, engine.UserKernel: true, engine.VM: true,
	} {
		if got := (result.Target{Isolation: string(isolation)}).Sandboxed(); got != want {
			t.Errorf("a target with the isolation %q has a sandbox: %v, want %v", isolation, got, want)
		}
	}
}

// driver is a driver whose targets cannot be opened.
type driver struct {
	fake.Driver
	err   error
	calls int
}

func (*driver) Describe() engine.Description { return engine.Description{Name: "broken"} }

func (d *driver) Open(context.Context, target.Target, engine.Session) (engine.Engine, error) {
	d.calls++
	return nil, d.err
}

// outages explain a number of failures.
type outages int

func (o *outages) Begin(context.Context) func(context.Context, error) string {
	return func(context.Context, error) string {
		if *o--; *o < 0 {
			return ""
		}
		return "the node is away"
	}
}

// An attempt to open a target that an outage explains does not count, also if its error is final. The attempts have an end.
func TestTargetsAfterOutages(t *testing.T) {
	for count, calls := range map[outages]int{0: 1, 1: 2, 100: 1 + mostTries} {
		d := &driver{err: &engine.OpenError{Err: &engine.UnsupportedError{What: "k8s", Reason: "forbidden"}}}
		o := &recorder{}
		e := &Execution{environment: environment{drivers: engines.Drivers{d}, clock: fake.NewClock()}, Config: Config{Observer: o, Outages: &count}}
		if _, _, err := e.openTarget(t.Context(), target.Target{Engine: "broken"}); !errors.Is(err, d.err) || d.calls != calls || len(o.events) != calls-1 {
			t.Errorf("%d calls with the events %v, %v; want %d", d.calls, o.events, err, calls)
		}
	}
}

// Only an error that may pass is worth another attempt. The reason is told once, at the end.
//
// Invariant known-errors.
func TestPermanentErrorsAreTriedOnce(t *testing.T) {
	facts := diagnosis.Facts{Info: engine.Info{Target: target.Target{Engine: "broken", Runtime: "x"}}, Engine: "broken", Root: true}
	for text, calls := range map[string]int{
		"fork/exec /usr/bin/crun : no such file or directory":                            1,
		"mount proc: operation not permitted":                                            1,
		"open sysctl x file: reopen fd 8: permission denied":                             1,
		"crun: mount `cgroup2`: Invalid argument":                                        1,
		"clone: function not implemented":                                                1,
		`failed to get sandbox image "registry.k8s.io/pause:3.8": dial tcp: i/o timeout`: 1,
		"no answer within 20s":                                                           mostTries,
		"runc did not terminate successfully: signal: segmentation fault":                mostTries,
		"a new message": mostTries,
	} {
		o := &recorder{}
		d := &driver{err: diagnosis.Refuse(errors.New(text), facts, "its first container did not work", "")}
		e := &Execution{environment: environment{drivers: engines.Drivers{d}, clock: fake.NewClock()}, Config: Config{Observer: o}}
		_, failures, err := e.openTarget(t.Context(), facts.Target)
		if d.calls != calls || !errors.Is(err, d.err) || len(failures) > calls {
			t.Errorf("%s: %d calls, %v; want %d", text, d.calls, err, calls)
		}
		if len(o.events) != calls-1 || o.mentions(text) {
			t.Errorf("%s: the events are %v, want %d without the reason", text, o.events, calls-1)
		}
	}
}
