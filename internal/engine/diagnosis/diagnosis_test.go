package diagnosis

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// files makes every path below /there exist on the host.
func files(t *testing.T) {
	t.Helper()
	real := exists
	exists = func(path string) bool { return strings.HasPrefix(path, "/there/") }
	t.Cleanup(func() { exists = real })
}

// messageLists returns the messages by their kinds. The messages of reports are a kind.
func messageLists() map[string][]message {
	list := maps.Clone(messages)
	for _, r := range reports {
		list["reports"] = append(list["reports"], r.message)
	}
	return list
}

// Invariant known-errors: A known error has its cause and one remedy; a permanent one is tried once; root is never told to become root (ADR 42).
func TestMessages(t *testing.T) {
	files(t)
	for kind, list := range messageLists() {
		count := 0
		for _, m := range list {
			d := Find(errors.New(m.text), m.f)
			text := d.Reason()
			if (m.cause != "") != d.Known() || !strings.Contains(text, m.cause) || !strings.Contains(d.Advice, m.advice) || d.Permanent == m.transient {
				t.Errorf("%s: %.120q…\n\treason %s\n\tadvice %s\n\tpermanent %v\n\twant %q, %q, %v", kind, m.text, text, d.Advice, d.Permanent, m.cause, m.advice, !m.transient)
			}
			if strings.Contains(text+d.Advice, "${") || strings.ContainsAny(text+d.Advice, "\n") || strings.Contains(text+d.Advice, "  ") {
				t.Errorf("%s: a text is incomplete: %s; %s", kind, text, d.Advice)
			}
			if d.Known() {
				count++
			}
		}
		if count < 3 && kind != "unknown" {
			t.Errorf("%s has %d messages", kind, count)
		}
	}
}

// Each pattern of each rule recognises a message of a real program.
//
// Invariant known-errors.
func TestPatternsHaveMessages(t *testing.T) {
	var texts []string
	for _, list := range messageLists() {
		for _, m := range list {
			texts = append(texts, clean(m.text))
		}
	}
	for _, r := range rules {
		for _, pattern := range r.patterns() {
			found := false
			for _, text := range texts {
				found = found || pattern.MatchString(text)
			}
			if !found {
				t.Errorf("no message for %s (%s)", pattern, r.cause)
			}
		}
	}
}

// A message matches one special rule, so that the order of the special rules does not matter.
//
// Invariant known-errors.
func TestRulesAreDistinct(t *testing.T) {
	files(t)
	for kind, list := range messageLists() {
		for _, m := range list {
			var causes []string
			for _, r := range rules {
				if !r.general && r.find(clean(m.text), m.f).Known() {
					causes = append(causes, r.cause)
				}
			}
			if len(causes) > 1 {
				t.Errorf("%s: %.200q matches several special rules: %s", kind, m.text, strings.Join(causes, "; "))
			}
		}
	}
}

// The documentation has each rule as a whole text.
func TestSignatures(t *testing.T) {
	for _, s := range Signatures() {
		if s.Cause == "" || s.Advice == "" || strings.Contains(s.Cause+s.Advice, "${") {
			t.Errorf("the signature is incomplete: %+v", s)
		}
	}
}

// The advice of a rule begins with a verb, and no rule sends root to root.
//
// Invariant known-errors.
func TestRootIsNotSentToRoot(t *testing.T) {
	for kind, list := range messageLists() {
		for _, m := range list {
			m.f.Root = true
			if d := Find(errors.New(m.text), m.f); strings.Contains(d.Advice, "run as root") {
				t.Errorf("%s: root is advised to %s", kind, d.Advice)
			}
		}
	}
	for _, name := range []string{"", "containerd", "cri-o", "docker", "podman"} {
		for _, isPrivate := range []bool{false, true} {
			f := at(name, "runsc")
			f.Private = isPrivate
			for _, r := range rules {
				if (r.when == nil || r.when(f)) && (strings.Contains(r.advice, "as root") || strings.Contains(r.advice, "sudo")) {
					t.Errorf("root is advised to %s behind %q", r.advice, name)
				}
			}
		}
	}
}

// A known error is short, also at the end of a long log. An unknown one keeps its errors.
func TestExplain(t *testing.T) {
	log := strings.Repeat(`time="2026-11-28T10:00:00Z" level=info msg="loading plugin"`+"\n", 30)
	f := at("docker", "crun")
	text := dockerd + log + `failed to start daemon: exec: "runc": executable file not found in $PATH`
	hit := Explain(errors.New(text), f, "its container did not work", "look")
	if len(hit.Error()) > 400 || strings.Contains(hit.Error(), "\n") || hit.What != "docker/crun" {
		t.Errorf("a known error is %d bytes: %s", len(hit.Error()), hit.Error())
	}
	miss := Explain(errors.New("surprise\n"+log), f, "its container did not work", "look")
	if miss.Reason != "its container did not work: surprise" || miss.Advice != "look" {
		t.Errorf("an unknown error is %s", miss.Error())
	}
	if got := Lack(errors.New("surprise"), f, "its network", ""); got != "its network: surprise" {
		t.Errorf("Lack() = %q", got)
	}
	if got := Lack(errors.New("netavark: No such file or directory (os error 2)"), f, "", ""); !strings.HasSuffix(got, "; install the package iptables") {
		t.Errorf("Lack() = %q", got)
	}
}

func TestRefuse(t *testing.T) {
	f := at("", "runc")
	f.Notes = []string{"a note"}
	for text, transient := range map[string]bool{"connection reset by peer": true, "invalid argument": false, "read-only file system": false, "signal: killed": true} {
		err := Refuse(errors.New(text), f, "its first container did not work", "look")
		if err.Transient != transient || len(err.Info.Notes) != 1 || err.Error() != "oci/runc: its first container did not work: "+text+"; look" {
			t.Errorf("Refuse(%s) = %v, transient %v", text, err, err.Transient)
		}
	}
}

func TestRecognise(t *testing.T) {
	f := at("containerd", "runc")
	surprise := errors.New("surprise")
	if err := Recognise(surprise, f); err != surprise { //nolint:errorlint // the same value
		t.Errorf("Recognise(unknown) = %v", err)
	}
	cause := fmt.Errorf("open: %w", &engine.UnsupportedError{What: "x", Reason: "too many open files"})
	if err := Recognise(cause, f); err != cause { //nolint:errorlint // the same value
		t.Errorf("Recognise(refusal) = %v", err)
	}
	err := Recognise(fmt.Errorf("watch log files: %w", os.NewSyscallError("inotify_init1", errors.New("too many open files"))), f)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), "fs.inotify.max_user_instances") {
		t.Errorf("Recognise(known) = %v", err)
	}
}

// The excerpt of a long line contains the matched part.
func TestExcerpt(t *testing.T) {
	line := strings.Repeat("a: ", 400) + `exec: "runc": executable file not found in $PATH` + strings.Repeat(": b", 400)
	d := Find(errors.New("first line\n"+line+"\nlast line"), at("docker", "runc"))
	if len(d.Excerpt) > longestExcerpt+20 || !strings.Contains(d.Excerpt, `exec: "runc": executable file not found`) {
		t.Errorf("the excerpt is %q", d.Excerpt)
	}
	if d := Find(errors.New("ä\xff: no space left on device"), at("", "runc")); !strings.Contains(d.Excerpt, "no space left") {
		t.Errorf("the excerpt is %q", d.Excerpt)
	}
}

// A proposed limit is higher than the present one.
func TestRaise(t *testing.T) {
	file := t.TempDir() + "/limit"
	for text, want := range map[string]string{"128\n": "1024", "4096\n": "8192", "": "1024", "many": "1024"} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		values := map[string]string{}
		raise(file, 1024)(Facts{}, values, "", "")
		if values["limit"] != want {
			t.Errorf("above %q comes %s, want %s", text, values["limit"], want)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, list := range messageLists() {
		for _, m := range list {
			f.Add(m.text, m.f.Engine)
		}
	}
	f.Fuzz(func(t *testing.T, text, engineName string) {
		d := Find(errors.New(text), at(engineName, "runsc"))
		if d.Known() && (d.Advice == "" || len(d.Excerpt) > longestExcerpt+20) {
			t.Errorf("%q: advice %q, excerpt %q", text, d.Advice, d.Excerpt)
		}
	})
}
