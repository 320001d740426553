package job_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

func write(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// padded returns an archive on a longer disk.
func padded(archive []byte) []byte { return append(bytes.Clone(archive), make([]byte, 1<<20)...) }

// A step is repeated once if it fails and may be repeated. The first outcome is kept.
func TestRepeat(t *testing.T) {
	good, bad, late := job.Outcome{Output: "good"}, job.Outcome{Code: 1, Output: "bad"}, job.Outcome{Code: -1, Error: "killed after its limit"}
	for _, tt := range []struct {
		repeat   bool
		outcomes []job.Outcome
		want     job.Outcome
	}{
		{true, []job.Outcome{good}, good},
		{true, []job.Outcome{bad, good}, job.Outcome{Output: "good", Earlier: &bad}},
		{true, []job.Outcome{late, bad}, job.Outcome{Code: 1, Output: "bad", Earlier: &late}},
		{false, []job.Outcome{bad}, bad},
	} {
		runs := 0
		got := job.Step{Repeat: tt.repeat}.Execute(func(job.Step) job.Outcome {
			runs++
			return tt.outcomes[runs-1]
		})
		if diff := cmp.Diff(tt.want, got); diff != "" || runs != len(tt.outcomes) {
			t.Errorf("%d runs, want %d; the outcome (-want +got):\n%s", runs, len(tt.outcomes), diff)
		}
	}
}

// The repeat of a step may have other arguments.
func TestRepeatArgs(t *testing.T) {
	var ran []string
	step := job.Step{Args: []string{"short"}, Repeat: true, RepeatArgs: []string{"long"}}
	step.Execute(func(s job.Step) job.Outcome {
		ran = append(ran, s.Args...)
		return job.Outcome{Code: 1}
	})
	if diff := cmp.Diff([]string{"short", "long"}, ran); diff != "" {
		t.Errorf("the arguments (-want +got):\n%s", diff)
	}
}

func TestJobRoundTrip(t *testing.T) {
	want := job.Job{
		Hostname: "v2", Keep: []string{"/root"},
		Steps: []job.Step{{Name: "one", Args: []string{"prog", "-x"}, Env: []string{"A=b"}, Stdout: "one.json", User: "user", Limit: time.Minute, Repeat: true, RepeatArgs: []string{"prog", "-y"}}},
	}
	var archive bytes.Buffer
	if err := job.Write(&archive, want, map[string]string{"prog": write(t, t.TempDir(), "whatever", "content", 0o755)}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var got job.Job
	err := job.Read(bytes.NewReader(padded(archive.Bytes())), dir, &got)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	info, err := os.Stat(filepath.Join(dir, "prog"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("the program has the mode %v, %v", info, err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "prog")); err != nil || string(content) != "content" {
		t.Errorf("the program is %q, %v", content, err)
	}
	if err := job.Write(&archive, want, map[string]string{"prog": "/no/such/file"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestReportRoundTrip(t *testing.T) {
	files := map[string]string{"one.log": write(t, t.TempDir(), "one.log", "output", 0o600)}
	want := job.Report{Left: []string{"mount /x"}, Steps: []job.Outcome{{Name: "one", Elapsed: time.Second, Memory: 1, Written: 2, Output: "o"}, {Name: "two", Code: -1, Error: "e"}}}
	var archive bytes.Buffer
	if err := job.Write(&archive, want, files); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var got job.Report
	err := job.Read(bytes.NewReader(padded(archive.Bytes())), dir, &got)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "one.log")); err != nil || string(content) != "output" {
		t.Errorf("the file is %q, %v", content, err)
	}
	if got.Step("one") == nil || !got.Step("one").OK() || got.Step("two").OK() || got.Step("three").OK() {
		t.Errorf("step one %v, two %v, three %v", got.Step("one"), got.Step("two"), got.Step("three"))
	}
}

// A machine that crashed leaves an empty disk or a truncated archive.
func TestTruncatedReport(t *testing.T) {
	files := map[string]string{"one.log": write(t, t.TempDir(), "one.log", strings.Repeat("output", 1000), 0o600)}
	var archive bytes.Buffer
	if err := job.Write(&archive, job.Report{}, files); err != nil {
		t.Fatal(err)
	}
	var got job.Report
	if err := job.Read(bytes.NewReader(make([]byte, 1<<20)), t.TempDir(), &got); !errors.Is(err, job.ErrNoReport) {
		t.Errorf("an empty disk: %v", err)
	}
	for n := 512; n < archive.Len()-1024; n += 512 { // the last two blocks are the end marker
		disk := append(bytes.Clone(archive.Bytes()[:n]), make([]byte, archive.Len())...)
		if err := job.Read(bytes.NewReader(disk), t.TempDir(), &got); err == nil {
			t.Fatalf("the first %d bytes of %d are accepted: %+v", n, archive.Len(), got)
		}
	}
}

// An archive of a machine must not write outside the directory.
func TestReportWithUnsafeNames(t *testing.T) {
	for _, header := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "../out"},
		{Typeflag: tar.TypeReg, Name: "/etc/out"},
		{Typeflag: tar.TypeReg, Name: "a/b"},
		{Typeflag: tar.TypeReg, Name: ".."},
		{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc"},
		{Typeflag: tar.TypeDir, Name: "directory"},
	} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := errors.Join(w.WriteHeader(&header), w.Close()); err != nil {
			t.Fatal(err)
		}
		var got job.Report
		if err := job.Read(&archive, t.TempDir(), &got); err == nil || errors.Is(err, job.ErrNoReport) {
			t.Errorf("%c %s: %v; want an error about the name", header.Typeflag, header.Name, err)
		}
	}
}
