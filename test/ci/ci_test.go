// Package ci executes action.yml, the component of GitLab and the workflows of examples/ci, on a runner of its own: the scripts of the steps are real, and
// so are the program and its comparisons. The servers of the releases, of GitHub and of GitLab are imitated. The package has only tests.
package ci

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/forge/forgetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// service is a service with a runner.
type service struct {
	name string
	// warning is the exit code after an inconclusive answer that is a warning.
	warning int
	// run executes the job.
	run func(*testing.T, *job)
	// join gives a job the variables of a change.
	join func(t *testing.T, j *job, s *forgetest.Server, fork bool)
}

func services() []service {
	return []service{
		{"GitHub", 0, func(t *testing.T, j *job) { j.github(t) }, joinGitHub},
		{"GitLab with bash", 7, func(t *testing.T, j *job) { j.gitlab(t, "bash") }, joinGitLab},
		{"GitLab with sh", 7, func(t *testing.T, j *job) { j.gitlab(t, "sh") }, joinGitLab},
	}
}

func joinGitHub(t *testing.T, j *job, s *forgetest.Server, fork bool) {
	repository := forgetest.Project
	if fork {
		repository = "stranger/runtime"
	}
	event := filepath.Join(t.TempDir(), "event.json")
	must.Do(t, os.WriteFile(event, []byte(forgetest.Event(repository)), 0o600))
	variables := s.GitHub(event, "")
	delete(variables, "GITHUB_TOKEN") // only the action's input has it
	maps.Copy(j.variables, variables)
}

func joinGitLab(_ *testing.T, j *job, s *forgetest.Server, fork bool) {
	source := "5"
	if fork {
		source = "6"
	}
	maps.Copy(j.variables, s.GitLab(source, j.token))
}

// each runs a test on each service.
func each(t *testing.T, test func(*testing.T, service)) {
	t.Helper()
	needs(t)
	for _, s := range services() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func (j *job) check(t *testing.T, code int, log string) {
	t.Helper()
	if j.code != code || !strings.Contains(j.log, log) {
		t.Errorf("the job ended with %d, want %d and %q:\n%s", j.code, code, log, j.log)
	}
}

// The answer decides the exit code, and the comment is written once and then updated. It, the summary and the report have the answer.
func TestAnswers(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		forge := forgetest.New(t, forgetest.Comment{Author: forgetest.Other, Body: "Looks good."})
		dir, err := results()
		must.Do(t, err)
		for _, c := range []struct {
			candidate, inconclusive, verdict string
			code                             int
			comment, junit                   string
		}{
			{"faster", "fail", "not-worse", 0, "Passed", `failures="0" errors="0"`},
			{"slower", "fail", "worse", 4, "Regression", "<failure "},
			{"one", "fail", "inconclusive", 6, "Inconclusive", `<error type="inconclusive"`},
			{"one", "warn", "inconclusive", s.warning, "warning", `failures="0" errors="0"`},
		} {
			j := newJob(t, signed(t))
			j.inputs["candidate"], j.inputs["inconclusive"] = filepath.Join(dir, c.candidate), c.inconclusive
			s.join(t, j, forge, false)
			s.run(t, j)
			j.check(t, c.code, c.comment)
			comments := forge.Comments()
			if len(comments) != 2 || !strings.HasPrefix(comments[1].Body, "<!-- touchstone: touchstone -->\n### Touchstone: ") || !strings.Contains(comments[1].Body, c.comment) {
				t.Errorf("%s, %s: the comments are %+v, want one with %q\n%s", c.candidate, c.inconclusive, comments, c.comment, j.log)
			}
			junit, err := os.ReadFile(filepath.Join(j.report, "junit.xml"))
			if err != nil || !bytes.Contains(junit, []byte(c.junit)) {
				t.Errorf("%s, %s: the test cases are %s, %v, want %s", c.candidate, c.inconclusive, junit, err, c.junit)
			}
			if s.name != "GitHub" {
				continue
			}
			if !strings.Contains(j.summary, c.comment) || j.outputs["verdict"] != c.verdict {
				t.Errorf("%s, %s: the verdict is %q, want %q, and the summary %s", c.candidate, c.inconclusive, j.outputs["verdict"], c.verdict, j.summary)
			}
			if warns := strings.Contains(j.log, "\n::warning::The comparison is inconclusive.\n"); warns != (c.inconclusive == "warn") {
				t.Errorf("%s, %s: the log warns: %v\n%s", c.candidate, c.inconclusive, warns, j.log)
			}
		}
	})
}

// Two builds are measured in a private folder, and the report has the pages and the results.
func TestBuilds(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		j := newJob(t, signed(t))
		must.Do(t, os.Chmod(j.workspace, 0o777)) // as the workspace of GitLab's Docker executor
		j.inputs["command"], j.inputs["baseline"], j.inputs["candidate"] = "ab", "fake/old@jitter=0.02", "fake/new@create=12ms,jitter=0.02"
		j.inputs["args"] = "--margin 3%\n  --repeat 6 --blocks 2 --allow-concurrent"
		s.run(t, j)
		j.check(t, 4, "B is worse than the margin.")
		for _, name := range []string{"ab.html", "ab.json", "touchstone.db", "comment.md", "junit.xml"} {
			if _, err := os.Stat(filepath.Join(j.report, name)); err != nil {
				t.Error(err)
			}
		}
	})
}

// Only an archive is executed whose digest is known to the action, by a signature or by the input. A job without an archive shows no earlier report.
//
// Invariant checked-release: The action executes only an archive with the digest of a signed list, or with the digest that the workflow gives.
func TestRelease(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		name := version(t)
		forgery, older := newRelease(t, name, "/dev/null"), newRelease(t, "v0.0.1", "/dev/null")
		digest := strings.Fields(string(signed(t).files[name+"/SHA256SUMS"]))[0]
		for reason, change := range map[string]func(r *release, inputs map[string]string){
			"has the digest": func(r *release, _ map[string]string) {
				r.files[archiveName(name)] = forgery.files[archiveName(name)]
			},
			"has no signature by a key of releases": func(r *release, _ map[string]string) {
				r.files = forgery.files
			},
			"SHA256SUMS of release " + name + " has no signature": func(r *release, _ map[string]string) {
				r.files[archiveName(name)], r.files[name+"/SHA256SUMS"] = forgery.files[archiveName(name)], forgery.files[name+"/SHA256SUMS"]
			},
			"must have one in SHA256SUMS": func(r *release, _ map[string]string) {
				r.signers = older.signers
				for _, file := range []string{"SHA256SUMS", "SHA256SUMS.sig"} {
					r.files[name+"/"+file] = older.files["v0.0.1/"+file]
				}
			},
			"the key of releases is missing": func(r *release, _ map[string]string) { r.signers = "" },
			"SHA256SUMS cannot be fetched: does http://": func(_ *release, inputs map[string]string) {
				inputs["version"] = "v99.0.0"
			},
			".tar.gz cannot be fetched: does http://":         func(r *release, _ map[string]string) { delete(r.files, archiveName(name)) },
			"the input version is no name of a release":       func(_ *release, inputs map[string]string) { inputs["version"] = "../v0.1.0" },
			"and must have " + strings.Repeat("0", 64):        func(_ *release, inputs map[string]string) { inputs["sha256"] = strings.Repeat("0", 64) },
			"the input inconclusive is none of fail and warn": func(_ *release, inputs map[string]string) { inputs["inconclusive"] = "skip" },
			"the input command is none of ab and compare":     func(_ *release, inputs map[string]string) { inputs["command"] = "cleanup" },
		} {
			r := signed(t).clone()
			inputs := map[string]string{}
			change(r, inputs)
			if s.name != "GitHub" && (inputs["inconclusive"] != "" || inputs["command"] != "") {
				continue // GitLab checks the value itself
			}
			j := newJob(t, r)
			maps.Copy(j.inputs, inputs)
			stale := filepath.Join(j.workspace, ".touchstone")
			must.Do(t, os.MkdirAll(filepath.Join(stale, "report"), 0o700), os.WriteFile(filepath.Join(stale, "touchstone"), []byte("#!/bin/sh\necho stale\n"), 0o700))
			s.run(t, j)
			j.check(t, 1, reason)
			if entries, err := os.ReadDir(j.report); j.report != "" && err == nil || j.outputs["verdict"] != "" || strings.Contains(j.log, "stale\n") {
				t.Errorf("%s: the report has %v and the verdict %q\n%s", reason, entries, j.outputs["verdict"], j.log)
			}
		}
		r := signed(t).clone()
		r.signers = ""
		delete(r.files, name+"/SHA256SUMS")
		j := newJob(t, r)
		j.inputs["sha256"] = digest
		s.run(t, j)
		j.check(t, 0, "Passed: ")
	})
}

// The job of a fork has the answer in its log, with the reason for the missing comment. So has a job without a token.
func TestFork(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		for _, token := range []string{forgetest.ReadOnly, ""} {
			forge := forgetest.New(t)
			j := newJob(t, signed(t))
			j.token, j.inputs["github-token"] = token, token
			if s.name != "GitHub" {
				delete(j.inputs, "github-token")
			}
			s.join(t, j, forge, true)
			s.run(t, j)
			j.check(t, 0, "Passed: ")
			j.check(t, 0, "no comment: ")
			if s.name == "GitHub" && !strings.Contains(j.log, "\n::notice::no comment: ") {
				t.Errorf("the log has no notice:\n%s", j.log)
			}
			if comments := forge.Comments(); len(comments) > 0 {
				t.Errorf("the comments are %+v", comments)
			}
		}
	})
}

// A comment that fails is a warning, because the answer decides the job. Without the input comment, and after a cancellation, the job tries none.
func TestCommentFails(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		j := newJob(t, signed(t))
		j.token = forgetest.ReadOnly
		s.join(t, j, forgetest.New(t), false)
		s.run(t, j)
		j.check(t, 0, "touchstone: comment on ")
		if s.name == "GitHub" && !strings.Contains(j.log, "\n::warning::touchstone: comment on pull request 7: ") {
			t.Errorf("the log has no warning:\n%s", j.log)
		}
		j.inputs["comment"], j.log = "false", ""
		s.run(t, j)
		if s.name != "GitHub" { // there the condition of the step has cancelled()
			j.inputs["comment"], j.variables["CI_JOB_STATUS"] = "true", "canceled"
			s.run(t, j)
		}
		if j.check(t, 0, ""); strings.Contains(j.log, "comment on") {
			t.Errorf("a comment was tried:\n%s", j.log)
		}
	})
}

// Text from names of branches and files is no command of a shell, no pattern of files and no command of GitHub, in any input.
//
// Invariant no-template: No text of an input becomes a part of a script.
func TestHostileInputs(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		for _, text := range []string{
			"$(touch hostile)`touch hostile`'; touch hostile; '\"; touch hostile; \"${{ github.token }} * $HOME/* && touch hostile", "\n::error::x\ntouch hostile\n",
		} {
			for _, name := range []string{"baseline", "candidate", "args", "version", "sha256", "releases"} {
				j := newJob(t, signed(t))
				j.inputs[name], j.inputs["marker"] = text, text
				s.join(t, j, forgetest.New(t), false)
				s.run(t, j)
				if entries, err := os.ReadDir(j.workspace); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != ".touchstone" }) {
					t.Errorf("%s=%q made %v, %v", name, text, entries, err)
				}
				for line := range strings.Lines(j.log) {
					if strings.HasPrefix(strings.TrimSpace(line), "::error") {
						t.Errorf("%s=%q has the log\n%s", name, text, j.log)
						break
					}
				}
				if j.code == 0 {
					t.Errorf("%s=%q has no effect", name, text)
				}
			}
		}
	})
}

// stub is a release whose program is a script.
func stub(t *testing.T, text string) *release {
	t.Helper()
	file := filepath.Join(t.TempDir(), "touchstone")
	must.Do(t, os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700))
	return newRelease(t, version(t), file)
}

// A command that gives no answer is an error with its exit code, and the comment says so.
func TestNoAnswer(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		forge := forgetest.New(t)
		j := newJob(t, signed(t))
		j.inputs["candidate"] = filepath.Join(j.workspace, "missing")
		s.join(t, j, forge, false)
		s.run(t, j)
		j.check(t, 1, "missing")
		if comments := forge.Comments(); len(comments) != 1 || !strings.Contains(comments[0].Body, "no result\n\nThe command ended with exit code 1.") {
			t.Errorf("the comments are %+v", comments)
		}
		if s.name == "GitHub" && j.outputs["verdict"] != "error" {
			t.Errorf("the verdict is %q", j.outputs["verdict"])
		}
	})
}

// The words of args are arguments as they are. The sides may have blanks.
func TestArguments(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		j := newJob(t, stub(t, `printf '<%s>' "$@"`))
		must.Do(t, os.WriteFile(filepath.Join(j.workspace, "a file"), nil, 0o600))
		j.inputs["baseline"], j.inputs["candidate"], j.inputs["args"] = "old runs", "new runs", " --allow-differences 'version'\n* a?file "
		s.run(t, j)
		j.check(t, 0, "<compare><--allow-differences><'version'><*><a?file><--a><old runs><--b><new runs><--inconclusive><fail>")
	})
}

// The program that measures does not have the token of the comment. With the input sudo it is executed by sudo.
func TestEnvironmentOfProgram(t *testing.T) {
	each(t, func(t *testing.T, s service) {
		j := newJob(t, stub(t, `printenv >"$ENVIRONMENT.$1"`))
		bin := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\necho \"sudo $1\"\nexec \"$@\"\n"), 0o700))
		j.variables["PATH"], j.variables["ENVIRONMENT"], j.inputs["sudo"] = bin+":"+j.variables["PATH"], filepath.Join(bin, "environment"), "true"
		s.join(t, j, forgetest.New(t), false)
		s.run(t, j)
		j.check(t, 0, "sudo env\n")
		for _, verb := range []string{"compare", "comment"} {
			text, err := os.ReadFile(j.variables["ENVIRONMENT"] + "." + verb)
			if err != nil {
				t.Fatalf("%s was not executed: %v\n%s", verb, err, j.log)
			}
			if got, want := strings.Contains(string(text), "_TOKEN="+forgetest.Token+"\n"), verb == "comment"; got != want {
				t.Errorf("the environment of %s has the token: %v, want %v\n%s", verb, got, want, text)
			}
		}
	})
}

// A cancelled job lets the program remove its containers. A runner of GitLab signals the whole process group of the script, and the program gets the
// signal from the script only: a second one would end the clean-up.
func TestCancelledJob(t *testing.T) {
	needs(t)
	r := stub(t, `trap 'kill $!; echo cleaned; exit 130' TERM
(
	echo "$$ $(cut -d ' ' -f 5 "/proc/$$/stat")" >&3 # the subshell has no trap
	exec cat <&4
) &
wait
`)
	readReady, ready, err := os.Pipe()
	must.Do(t, err)
	endless, end, err := os.Pipe()
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/ci.sh"))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "TOUCHSTONE_OUTPUT=" + t.TempDir(), "TOUCHSTONE_SIGNERS=" + r.signers, "TOUCHSTONE_WARNING=0",
		"TOUCHSTONE_INPUT_RELEASES=" + r.serve(t), "TOUCHSTONE_INPUT_INCONCLUSIVE=fail", "TOUCHSTONE_INPUT_COMMAND=ab", "TMPDIR=" + t.TempDir(),
	}
	for _, name := range []string{"BASELINE", "CANDIDATE", "ARGS", "SUMMARY", "VERSION", "SHA256", "SUDO"} {
		cmd.Env = append(cmd.Env, fmt.Sprintf("TOUCHSTONE_INPUT_%s=", name))
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.SysProcAttr = &log, &log, []*os.File{ready, endless}, &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, cmd.Start(), ready.Close(), endless.Close())
	line, err := bufio.NewReader(readReady).ReadString('\n')
	if id, group, _ := strings.Cut(strings.TrimSpace(line), " "); err != nil || id != group {
		t.Errorf("the program has the ID and the process group %q, %v", line, err)
	}
	must.Do(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM))
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || !strings.Contains(log.String(), "cleaned\n") {
		t.Errorf("the script ended with %v:\n%s", err, log.String())
	}
	must.Do(t, readReady.Close(), end.Close())
}
