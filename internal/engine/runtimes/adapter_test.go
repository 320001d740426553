package runtimes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// script writes a script that prints its arguments, and returns its path.
func script(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "my runtime")
	must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\nprintf '<%s>' \"$0\" \"$@\"\nexit 7\n"), 0o700))
	return path
}

func adapter(t *testing.T, a runtimes.Adapter) string {
	t.Helper()
	path, err := a.Write(filepath.Join(t.TempDir(), "adapters"), "x@platform=ptrace")
	must.Do(t, err)
	return path
}

func TestAdapterPassesOn(t *testing.T) {
	binary := script(t)
	path := adapter(t, runtimes.Adapter{Binary: binary, Flags: []string{"--platform=ptrace", "--a b"}})
	for _, args := range [][]string{{"--version"}, {"--root", "/r", "create", "--bundle", "/no/such/bundle", "id"}, {"state", "", "x y"}} {
		out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
		want := "<" + strings.Join(append([]string{binary, "--platform=ptrace", "--a b"}, args...), "><") + ">"
		if string(out) != want || exitCode(err) != 7 {
			t.Errorf("%q called the runtime with %s (%v), want %s and exit code 7", args, out, err, want)
		}
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // package exec returns it unwrapped
		return exit.ExitCode()
	}
	return -1
}

// rewritten returns the configuration of a bundle after a create through an adapter. The bundle follows the last argument, or is a part of it.
func rewritten(t *testing.T, path, config string, args ...string) string {
	t.Helper()
	bundle := t.TempDir()
	file := filepath.Join(bundle, "config.json")
	must.Do(t, os.WriteFile(file, []byte(config), 0o600))
	if last := len(args) - 1; strings.HasSuffix(args[last], "=") {
		args[last] += bundle
	} else {
		args = append(args, bundle)
	}
	if out, err := exec.CommandContext(t.Context(), path, append(args, "id")...).CombinedOutput(); exitCode(err) != 7 {
		t.Fatalf("%q: %v, %s", args, err, out)
	}
	text, err := os.ReadFile(file)
	must.Do(t, err)
	return string(text)
}

func TestAdapterHidesAnnotations(t *testing.T) {
	const input = `{"annotations":{"io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri-o.X":"io.kubernetes","mine":"y"},"hostname":"io.kubernetes.pod"}`
	const output = `{"annotations":{"xo.kubernetes.cri.container-type":"sandbox","xo.kubernetes.cri-o.X":"io.kubernetes","mine":"y"},"hostname":"io.kubernetes.pod"}`
	path := adapter(t, runtimes.Adapter{Binary: script(t), Hide: []string{"io.kubernetes.cri"}})
	for _, flag := range []string{"--bundle", "-b", "--bundle="} {
		if got := rewritten(t, path, input, "create", flag); got != output {
			t.Errorf("with %s the configuration is %s, want %s", flag, got, output)
		}
	}
}

func TestAdapterReplacesNegativeScores(t *testing.T) {
	for _, c := range []struct{ score, before, after string }{
		{"500", `{"oomScoreAdj":-998,"x":"oomScoreAdj"}`, `{"oomScoreAdj": 500,"x":"oomScoreAdj"}`},
		{"500", `{"oomScoreAdj":  -998}`, `{"oomScoreAdj":   500}`},
		{"1000", `{"oomScoreAdj":-998}`, `{"oomScoreAdj":1000}`},
		{"0", `{"oomScoreAdj":-998}`, `{"oomScoreAdj":   0}`},
		{"500", `{"oomScoreAdj":100}`, `{"oomScoreAdj":100}`},
		{"1000", `{"oomScoreAdj":-99}`, `{"oomScoreAdj":-99}`}, // too short for the place
		{"", `{"oomScoreAdj":-998}`, `{"oomScoreAdj":-998}`},
	} {
		path := adapter(t, runtimes.Adapter{Binary: script(t), OOMScore: c.score})
		if got := rewritten(t, path, c.before, "create", "--bundle"); got != c.after {
			t.Errorf("score %q: the configuration is %s, want %s", c.score, got, c.after)
		}
	}
}

func TestAdapterFails(t *testing.T) {
	for _, c := range []struct {
		name, conf string
		args       []string
		code       int
		says       string
	}{
		{"no runtime", "binary /no/such/runtime\n", nil, 127, "adapter: run /no/such/runtime: ENOENT"},
		{"no binary", "flag x\n", nil, 126, "adapter: read: no binary in"},
		{"unknown line", "binary /bin/true\nsecret x\n", nil, 126, "adapter: read: what is this line secret x"},
		{"no time", "binary /bin/true\nsleep create soon\n", nil, 126, "adapter: read: not a number of nanoseconds up to a minute: soon"},
		{"too long", "binary /bin/true\nburn create 60000000001\n", nil, 126, "up to a minute: 60000000001"},
		{"no verb", "binary /bin/true\nsleep\n", nil, 126, "adapter: read: what is this line sleep"},
		{"no bundle", "binary /bin/true\nhide x\n", []string{"--bundle", "/no/such/bundle"}, 126, "adapter: open /no/such/bundle/config.json: ENOENT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := adapter(t, runtimes.Adapter{Binary: "/bin/true"})
			must.Do(t, os.WriteFile(path+".conf", []byte(c.conf), 0o600))
			out, err := exec.CommandContext(t.Context(), path, append([]string{"create"}, c.args...)...).CombinedOutput()
			if exitCode(err) != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s; want exit code %d and %q", err, out, c.code, c.says)
			}
		})
	}
	if _, err := (runtimes.Adapter{Binary: "/bin/true", Flags: []string{"a\nhide x"}}).Write(t.TempDir(), "x"); err == nil {
		t.Error("Write accepts a flag with a line end")
	}
}

// Only calls of a delayed verb are delayed. A sleep takes time, and a burn also CPU time.
func TestAdapterDelays(t *testing.T) {
	const delay = 500 * time.Millisecond // a call without a delay takes far less CPU time, also beside other programs
	path := adapter(t, runtimes.Adapter{Binary: "/bin/true", Delays: []runtimes.Delay{
		{Verb: "create", Time: delay}, {Verb: "delete", Time: delay, Burn: true}, {Verb: "delete", Time: time.Millisecond},
	}})
	for _, c := range []struct {
		args        []string
		sleep, burn bool
	}{
		{[]string{"--root", "/delete", "create", "--bundle", "/b", "delete"}, true, false},
		{[]string{"delete", "--force", "create"}, false, true},
		{[]string{"start", "create"}, false, false},
		{[]string{"--version"}, false, false},
	} {
		cmd := exec.CommandContext(t.Context(), path, c.args...)
		start := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(start)
		if err != nil {
			t.Fatalf("%q: %v, %s", c.args, err, out)
		}
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		// A call without a delay can take long on a busy machine, so only CPU time has an upper limit.
		if (c.sleep || c.burn) && took < delay || c.burn != (cpu > delay*9/10) {
			t.Errorf("%q took %v and %v of CPU time; want a sleep %v, a burn %v of %v", c.args, took, cpu, c.sleep, c.burn, delay)
		}
	}
	if _, err := (runtimes.Adapter{Binary: "/bin/true", Delays: []runtimes.Delay{{Verb: "a\nhide x"}}}).Write(t.TempDir(), "x"); err == nil {
		t.Error("Write accepts a verb with a line end")
	}
}

// The adapter replaces only the message about a late kill.
func TestAdapterTranslatesKill(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "runtime")
	const fails = "#!/bin/sh\nfor verb; do :; done\necho out\ncase $verb in late) echo 'the sandbox is not running, sorry' >&2; exit 128;; odd) echo 'it rains' >&2; exit 3;; die) kill -TERM $$;; esac\n"
	must.Do(t, os.WriteFile(binary, []byte(fails), 0o700))
	path := adapter(t, runtimes.Adapter{Binary: binary, Over: "is not running"})
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"kill", "late"}, 1, "container not running\n"},
		{[]string{"--log", "x", "kill", "odd"}, 3, "it rains\n"},
		{[]string{"kill", "fine"}, 0, ""},
		{[]string{"kill", "die"}, 128 + 15, ""},
		{[]string{"delete", "late"}, 128, "the sandbox is not running, sorry\n"},
	} {
		var out, errs strings.Builder
		cmd := exec.CommandContext(t.Context(), path, c.args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		code := exitCode(cmd.Run())
		if c.code == 0 {
			code++ // exitCode returns -1 without an error
		}
		if code != c.code || errs.String() != c.stderr || out.String() != "out\n" {
			t.Errorf("%q: exit code %d, %q, %q; want %d and %q", c.args, code, out.String(), errs.String(), c.code, c.stderr)
		}
	}
}

// A runtime may write more than the adapter's buffer, with its error at any place.
func TestAdapterBearsMuchOutput(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "runtime")
	const script = `#!/bin/sh
fill() { head -c "$1" /dev/zero | tr '\0' x >&2; }
for place; do :; done
case $place in
first) echo 'it is not running, sorry' >&2; fill 300000;;
middle) fill 16370; echo 'it is not running, sorry' >&2; fill 300000;;
zero) head -c 10 /dev/zero >&2; fill 300000; echo 'it is not running, sorry' >&2;;
last) fill 300000; echo 'it is not running, sorry' >&2;;
none) fill 300000; echo 'it rains' >&2;;
esac
exit 3
`
	must.Do(t, os.WriteFile(binary, []byte(script), 0o700))
	path := adapter(t, runtimes.Adapter{Binary: binary, Over: "is not running"})
	for _, place := range []string{"first", "middle", "zero", "last"} {
		out, err := exec.CommandContext(t.Context(), path, "kill", place).CombinedOutput()
		if exitCode(err) != 1 || string(out) != "container not running\n" {
			t.Errorf("%s: %v, %.100q; want the translated error", place, err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), path, "kill", "none").CombinedOutput()
	if exitCode(err) != 3 || !strings.HasSuffix(string(out), "x"+"it rains\n") || len(out) < 8<<10 || len(out) > 16<<10 {
		t.Errorf("another error: %v, %d bytes, which end in %.20q", err, len(out), out[max(0, len(out)-20):])
	}
}

// The kernel's name of an adapter is a name of the runtime, and not of a program in a container, also below CRI-O's monitor.
func TestAdapterIsTheRuntime(t *testing.T) {
	name := filepath.Base(adapter(t, runtimes.Adapter{Binary: script(t)}))
	target := monitor.Target{Programs: runtimes.Programs()}
	if got := target.Classify([]monitor.Program{{Parent: monitor.NoParent, Name: name[:min(len(name), 15)]}}); got[0] != monitor.Runtime {
		t.Errorf("the program %s belongs to component %s", name, got[0])
	}
}
