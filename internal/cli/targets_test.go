package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// stub is an engine with fake targets.
type stub struct {
	name       string
	candidates []engine.Candidate
	fails      map[string]error // of opening, by target
	opened     *[]string
	told       *[]string // the session's targets at each call of Open
	opening    func(target.Target)
}

func (s stub) Describe() engine.Description {
	kind := engine.FullEngine
	if s.name == "oci" {
		kind = engine.BareRuntime
	}
	return engine.Description{Name: s.name, Kind: kind}
}

func (s stub) Candidates(context.Context, engine.Session) []engine.Candidate { return s.candidates }

func (s stub) Open(ctx context.Context, t target.Target, session engine.Session) (engine.Engine, error) {
	if s.opening != nil {
		s.opening(t)
	}
	*s.opened = append(*s.opened, t.String())
	*s.told = append(*s.told, fmt.Sprint(session.Targets))
	if err := s.fails[t.String()]; err != nil {
		return nil, err
	}
	return fake.NewDriver(fake.NewClock()).Open(ctx, target.Target{Engine: fake.Name, Runtime: "x", Options: []target.Option{{Name: "no", Value: "update"}}}, session)
}

// lab returns two engines. runsc with kvm does not work, crun is missing, and containerd has no shim for kata.
func lab(t *testing.T, opening func(target.Target)) (drivers engines.Drivers, openings, lists *[]string) {
	t.Helper()
	openings, lists = new([]string), new([]string)
	missing := &engine.UnsupportedError{What: "it", Reason: "crun is not on PATH", Advice: "install it"}
	kvm := &engine.UnsupportedError{What: "it", Reason: "no answer within 20s\ndelete the container: it is gone"} // joined errors
	for _, d := range []struct{ name, list string }{
		{"oci", "oci/runc -oci/crun oci/runsc oci/runsc@platform=kvm"},
		{"containerd", "containerd/runc -containerd/crun containerd/runsc containerd/runsc@platform=kvm containerd/kata"},
	} {
		var candidates []engine.Candidate
		for item := range strings.FieldsSeq(d.list) {
			name, isMissing := strings.CutPrefix(item, "-")
			parsed, err := target.Parse(name)
			must.Do(t, err)
			c := engine.Candidate{Info: engine.Info{Target: parsed}}
			if isMissing {
				c.Err = missing
			}
			candidates = append(candidates, c)
		}
		drivers = append(drivers, stub{
			name: d.name, candidates: candidates, opened: openings, told: lists, opening: opening,
			fails: map[string]error{
				"oci/runsc@platform=kvm": kvm, "containerd/runsc@platform=kvm": kvm,
				"containerd/kata": &engine.OpenError{Err: &engine.UnsupportedError{What: "it", Reason: "its shim\x1b[2J is missing", Advice: "install it"}},
			},
		})
	}
	return drivers, openings, lists
}

func TestTargets(t *testing.T) {
	drivers, openings, lists := lab(t, nil)
	var out, notes bytes.Buffer
	app := New(Environment{Stdout: &out, Stderr: &notes, Live: true})
	rows, err := app.tryAll(t.Context(), drivers, plan.Quick(), &engine.Session{RunID: "r"})
	must.Do(t, err)
	names := []string{"oci/runc", "oci/runsc", "oci/runsc@platform=kvm", "containerd/runc", "containerd/runsc", "containerd/runsc@platform=kvm", "containerd/kata"}
	// A runtime that does not work by itself is not tried with each engine.
	want := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "containerd/runsc@platform=kvm" })
	if diff := cmp.Diff(want, *openings); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	for i, text := range *lists {
		if text != "["+strings.Join(names, " ")+"]" {
			t.Errorf("at the opening of %s the session has the targets %s, want all that may work", want[i], text)
		}
	}
	if got := notes.String(); !strings.Contains(got, "trying 4 of 7: containerd/runc …") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("progress was %q", got)
	}
	must.Do(t, printTargets(app, formatTable, rows))
	const table = `TARGET            VERSION  ISOLATION  CGROUP  BINARY
oci/runc          fake 1   none       none    -
oci/runsc         fake 1   none       none    -
containerd/runc   fake 1   none       none    -
containerd/runsc  fake 1   none       none    -

RUNTIME             oci         containerd
runc                works       works
crun                cannot [1]  cannot [1]
runsc               works       works
runsc@platform=kvm  cannot [2]  cannot [2]
kata                -           cannot [3]

[1] crun is not on PATH
    advice: install it

[2] no answer within 20s
    delete the container: it is gone

[3] its shim` + "\uFFFD" + `[2J is missing
    advice: install it

no update: taken away by the target's option no
    on no target

no bridged network: fake containers have no network of their own
    on no target
`
	if diff := cmp.Diff(table, strings.TrimSuffix(out.String(), "\nWithout root Touchstone measures only rootless containers. Root has more targets.\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Missing capabilities are printed once for each reason, within the width of the terminal.
func TestMissingCapabilities(t *testing.T) {
	const cri = "CRI has no call for it, and a direct call of the runtime would bypass the engine and its bookkeeping"
	rows := []targetRow{{Target: "oci/kata", Cannot: map[string]string{"exec": "it does not work"}}}
	for _, name := range []string{"native", "oci/runc", "containerd/runc", "containerd/crun", "containerd/runsc@platform=systrap", "crio/runc", "crio/crun"} {
		r := targetRow{Target: name, Works: true, Cannot: map[string]string{}}
		if strings.HasPrefix(name, "c") {
			r.Cannot = map[string]string{"pause": cri, "update": cri}
		}
		if name == "native" {
			r.Cannot["pull"] = "it pulls nothing"
		}
		rows = append(rows, r)
	}
	var out bytes.Buffer
	printIncapable(&out, 0, rows)
	const want = `
no pause, update: CRI has no call for it, and a direct call of the runtime would
    bypass the engine and its bookkeeping
    containerd/runc, containerd/crun, containerd/runsc@platform=systrap,
    crio/runc, crio/crun

no pull: it pulls nothing
    native
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// ^C ends the listing while a target is being tried.
func TestTargetsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	drivers, openings, _ := lab(t, func(candidate target.Target) {
		if candidate.String() == "oci/runsc" {
			interrupt(ErrInterrupted)
		}
	})
	rows, err := New(Environment{Stderr: &bytes.Buffer{}}).tryAll(ctx, drivers, plan.Quick(), &engine.Session{RunID: "r"})
	if !errors.Is(err, ErrInterrupted) || rows != nil || len(*openings) != 2 {
		t.Errorf("an interrupted listing returns %v and %v after %v", rows, err, *openings)
	}
}

// If no target works, the listing has no empty table.
func TestNoTargetWorks(t *testing.T) {
	var out bytes.Buffer
	rows := []targetRow{{Target: "native", Engine: "native", Reason: "no"}, {Target: "oci/runc", Engine: "oci", Runtime: "runc", Reason: "no"}}
	must.Do(t, printTargets(New(Environment{Stdout: &out}), formatTable, rows))
	if got := out.String(); !strings.HasPrefix(got, "native does not work [1]\n\nRUNTIME  oci\nrunc     cannot [1]\n\n[1] no\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestTargetsWarnOfTheHost(t *testing.T) {
	var out bytes.Buffer
	printHost(&out, 60, nil)
	if out.Len() > 0 {
		t.Errorf("a host without warnings prints %q", out.String())
	}
	printHost(&out, 60, []string{"the kernel offers no memory cgroup controller; boot with cgroup_enable=memory", "it is hot"})
	const want = `
Properties of this machine that make results less complete or less stable:
  - the kernel offers no memory cgroup controller; boot with
    cgroup_enable=memory
  - it is hot
touchstone host lists more of them.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
