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
	must.Do(t, app.printTargets(rows, nil))
	const table = `engine × runtime: 4 of 9 work
RUNTIME             oci     containerd  ISOLATION
runc                works   works       none
crun                no [1]  no [1]      -
runsc               works   works       none
runsc@platform=kvm  no [2]  no [2]      -
kata                -       no [3]      -
Versions: fake 1

[1] crun is not on PATH; remedy: install it
[2] no answer within 20s
    delete the container: it is gone
[3] its shim` + "\uFFFD" + `[2J is missing; remedy: install it

Missing: update, bridged network on every target. touchstone targets -o json has the reasons.
`
	got, _, _ := strings.Cut(out.String(), "\nWithout root Touchstone measures only")
	got, _, _ = strings.Cut(got, "\nThis repairs most")
	if diff := cmp.Diff(table, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Missing capabilities are listed by target, or by the patterns of targets that all lack them.
func TestMissingCapabilities(t *testing.T) {
	rows := []targetRow{{Target: "oci/kata", Engine: "oci", Cannot: map[string]string{"exec": "it does not work"}}}
	for _, name := range []string{
		"native", "oci/runc", "oci/runsc", "oci/runsc@platform=ptrace", "containerd/runc", "containerd/crun",
		"containerd/runsc@platform=systrap", "crio/runc",
	} {
		engineName, _, _ := strings.Cut(name, "/")
		r := targetRow{Target: name, Engine: engineName, Works: true, Cannot: map[string]string{}}
		if strings.HasPrefix(name, "c") {
			r.Cannot = map[string]string{"pause": "CRI has no call for it", "update": "CRI has no call for it"}
		}
		if name == "native" || strings.HasPrefix(name, "oci/runsc") {
			r.Cannot["pull"] = "it pulls nothing"
		}
		rows = append(rows, r)
	}
	var out bytes.Buffer
	printIncapable(&out, 0, rows)
	const want = `
Missing: pause, update on containerd/*, crio/runc; pull on native, oci/runsc*. touchstone targets -o
    json has the reasons.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An excerpt of an error with the names of one target makes no other reason. A command stays in one line.
func TestEqualFailures(t *testing.T) {
	var reasons notes
	for _, tt := range []struct {
		reason, advice string
		want           int
	}{
		{"the sandbox exited (… try-1: EOF)", "read the log", 1},
		{"the sandbox exited (… try-2: EOF)", "read the log", 1},
		{"the sandbox exited (… try-2: EOF)", "buy memory", 2},
		{"it is (too) old", "try it by hand:\n(cd / && runc spec)", 3},
	} {
		if got := reasons.number(targetRow{Reason: tt.reason, Advice: tt.advice}); got != tt.want {
			t.Errorf("%s: note %d, want %d", tt.reason, got, tt.want)
		}
	}
	var out bytes.Buffer
	reasons.print(&out, 12)
	if got := out.String(); !strings.HasSuffix(got, "hand:\n    (cd / && runc spec)\n") {
		t.Errorf("a command is not in one line:\n%s", got)
	}
}

// The last line of the listing is the command that makes the most targets work.
func TestRepair(t *testing.T) {
	row := func(reason, advice string) targetRow { return targetRow{Reason: reason, Advice: advice} }
	crun, youki := row("crun is not on PATH", "install it, or name it with --runtime crun=PATH"), row("youki is not on PATH", "install it")
	docker := row("no Docker daemon can be reached, and a private one cannot start because dockerd is missing: not found", "start Docker, install its packages")
	conmon := row("conmon, which it needs, is neither beside /usr/bin/crio nor on PATH", "install it, or name it with --engine-bin conmon=PATH")
	managed, root := row("an odd daemon", "use --managed for a private one"), row("a private containerd needs root", "run as root")
	kvm := row("no KVM", "use another machine")
	for _, tt := range []struct {
		name  string
		rows  []targetRow
		apt   bool
		want  string
		count int
	}{
		{"nothing fails", []targetRow{{Works: true, Reason: crun.Reason}}, true, "", 0},
		{"no command helps", []targetRow{kvm}, true, "", 0},
		{"parts of setup", []targetRow{crun, youki, docker, kvm}, true, "touchstone setup crun youki", 2},
		{"no apt-get", []targetRow{docker, youki}, false, "touchstone setup youki", 1},
		{"packages", []targetRow{docker, crun, crun, conmon, youki, managed}, true, "apt-get install conmon crun docker.io", 4},
		{"daemons", []targetRow{crun, managed, managed, root}, true, "touchstone targets --managed", 2},
		{"root", []targetRow{crun, root, root}, true, "sudo touchstone targets", 2},
	} {
		command, count := repair(tt.rows, tt.apt)
		if strings.TrimPrefix(command, "sudo ") != strings.TrimPrefix(tt.want, "sudo ") || count != tt.count {
			t.Errorf("%s: %q for %d targets, want %q for %d", tt.name, command, count, tt.want, tt.count)
		}
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
	must.Do(t, New(Environment{Stdout: &out}).printTargets(rows, nil))
	if got := out.String(); !strings.HasPrefix(got, "native: no [1]; engine × runtime: 0 of 1 work\nRUNTIME  oci     ISOLATION\nrunc     no [1]  -\n\n[1] no\n") {
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
This machine makes results less complete or less stable
    (touchstone host lists more):
  - the kernel offers no memory cgroup controller; boot with
    cgroup_enable=memory
  - it is hot
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
