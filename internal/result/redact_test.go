package result

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/expect"
)

func TestHider(t *testing.T) {
	h := NewHider([]string{"", "C", "true", "secret", "secret-longer", "päss word", "quote\"d", "0123456789abcdef"})
	for text, want := range map[string]string{
		"":                               "",
		"true: the C locale":             "true: the C locale",
		"a secret, a secret-longer one":  "a (redacted), a (redacted) one",
		"--password=päss word|päss|word": "--password=(redacted)|päss|word",
		`begins with "quote\"d"`:         `begins with "(redacted)"`,
		`cut: "0123456789ab", 89abcdef…`: `cut: "(redacted)", (redacted)…`,
		"short parts stay: 0123456":      "short parts stay: 0123456",
	} {
		if got := h.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := (Hider{}).Text("secret"); got != "secret" {
		t.Errorf("without values the text became %q", got)
	}
}

// leaky is a run with the text in every field that may hold text of programs, plans or the host.
func leaky(text string) Run {
	run := fullDocument().Runs[0]
	run.Plan = "image: " + text + "\nargv:\n- " + text + "\n"
	run.Caveats = []string{text}
	run.Host.Warnings = []string{text}
	run.Host.Cmdline = text
	run.Targets[1].Notes, run.Targets[1].Version, run.Targets[2].Unavailable = []string{text}, text, text
	run.Bench[0].Summary, run.Bench[0].Metrics[0].Help = text, text
	run.Images[1].Unavailable = text
	run.Trials[0].Conditions["file system"] = ConditionText(text)
	run.Trials[1].Reason, run.Trials[1].Output = text, text
	run.Traces[0].Counts[1].Paths = map[string]int64{text: 2}
	run.Traces[1].Reason = text
	return run
}

func TestHiderOfRuns(t *testing.T) {
	original, run := leaky("a s3cret b"), leaky("a s3cret b")
	run.Plan, original.Plan, run.Host, original.Host = "", "", Host{}, Host{}
	public := NewHider([]string{"s3cret"}).Run(run)
	expect.Equal(t, "the caller's run changed", original, run)
	if text := encoded(t, Document{Runs: []Run{public}}); bytes.Contains(text, []byte("s3cret")) {
		t.Errorf("the value is still in\n%s", text)
	}
	want := leaky("a (redacted) b")
	want.Plan, want.Host = "", Host{}
	expect.Equal(t, "the result", want, public)
}

// Trials with equal conditions share them. A hider must not make a copy for each trial.
func TestHiderKeepsConditionsWithoutSecrets(t *testing.T) {
	conditions := map[string]string{"cpus": "2-3"}
	run := Run{Trials: []Trial{{Conditions: conditions}, {Conditions: map[string]string{"key": "s3cret"}}}}
	public := NewHider([]string{"s3cret"}).Run(run)
	public.Trials[0].Conditions["cpus"] = "4"
	if conditions["cpus"] != "4" {
		t.Error("a trial without a secret has a copy of its conditions")
	}
	if got, was := public.Trials[1].Conditions["key"], run.Trials[1].Conditions["key"]; got == "s3cret" || was != "s3cret" {
		t.Errorf("the secret is %q after hiding, and %q in the run itself", got, was)
	}
}

func TestAnonymous(t *testing.T) {
	const text = `see /home/alice/My Docs/app.tar, unix:///run/user/1000/x.sock, ~/y, "../z" and '/srv/a b/c.tar' of alice on bench1.lan (bench1) bob`
	change := func(run Run) Run {
		run.Host.Hostname = "bench1.lan"
		run.Name = "alice-nightly"
		run.Host.Node.Name, run.Host.Node.Labels = "node.bench1.lan", map[string]string{"owner": "dave"}
		run.Host.Selfcheck.Target = "oci/runsc@config=/home/carol/one"
		run.Plan = "image: /home/alice/My Docs/app.tar\nargv:\n- /usr/bin/app\n- --user=alice\n- \"/a \\\"b\"\n"
		run.Images[1].Name = "/srv/a b/c.tar"
		for i, path := range []string{"/home/carol/one", "/home/carol/two"} {
			name := "oci/runsc@config=" + path + ",platform=systrap"
			run.Targets = append(run.Targets, Target{Name: name, Kind: KindRuntime, Runtime: strings.TrimPrefix(name, "oci/"), Binary: "/opt/secret bin/runsc"})
			run.Trials = append(run.Trials, Trial{Seq: 10 + i, Cell: Cell{Benchmark: run.Bench[0].Name, Target: name}, Status: Skipped, Reason: "it printed " + text, Started: run.Started})
		}
		for i, peer := range []string{"192.0.2.7", "192.0.2.70:9000", "bench2.secret", "host"} {
			run.Trials = append(run.Trials, Trial{
				Seq: 20 + i, Cell: Cell{Benchmark: run.Bench[0].Name, Params: "duration=1s peer=" + peer, Target: run.Targets[0].Name}, Block: 7 + i,
				Status: Skipped, Reason: "none", Started: run.Started,
			})
		}
		run.Traces[0].Counts[1].Paths["customer/data"] = 1
		run.Traces = append(run.Traces, Trace{
			Seq: 4, Cell: Cell{Benchmark: run.Bench[0].Name, Params: "peer=192.0.2.7", Target: run.Targets[3].Name}, Status: Failed, Reason: "it printed " + text, Started: run.Started,
		})
		run.Caveats = append(run.Caveats, "the servers of peer=192.0.2.70:9000 are on another machine")
		run.Plan += "# peer: bench2.secret\n"
		run.Baseline = run.Targets[3].Name
		run.Stopping.Stopped = []Stop{{Cell: run.Trials[len(run.Trials)-1].Cell, Blocks: 13, Reason: Decided}}
		return run
	}
	original, run := change(leaky(text)), change(leaky(text))
	got := run.Anonymous("", "bob", "root")
	expect.Equal(t, "the caller's run changed", original, run)
	public := string(encoded(t, Document{Runs: []Run{got}}))
	for _, leak := range []string{"alice", "bob", "carol", "dave", "bench1", ".lan", "/home", "app.tar", "/run/", "sock", "~/y", "../z", "/srv", "c.tar", "secret bin", "/opt", "/usr", "printed", "192.0.2", "bench2", "customer"} {
		if index := strings.Index(public, leak); index >= 0 {
			t.Errorf("%q is still there: …%s…", leak, public[max(0, index-60):min(len(public), index+60)])
		}
	}
	for _, stays := range []string{`"oci/runsc@config=path-1,platform=systrap"`, `"oci/runsc@config=path-2,platform=systrap"`, "6.18.0 #1 SMP", "Example CPU", "operations.container.lifecycle", "spectre_v2: IBRS", `"fleet": "f1"`, `"kind": "m5.large"`, "peer=machine-1.\"", "peer=machine-2.\"", "peer=machine-3.\"", "peer=host", "of peer=machine-2. are", "peer: machine-3."} {
		if !strings.Contains(public, stays) {
			t.Errorf("%s is missing in\n%s", stays, public)
		}
	}
	expect.Equal(t, "the samples changed", run.Trials[0].Samples, got.Trials[0].Samples)
	if repeat := got.Anonymous(); cmp.Diff(got, repeat) != "" {
		t.Errorf("a second time changes it (-once +twice):\n%s", cmp.Diff(got, repeat))
	}
}
