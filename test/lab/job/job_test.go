package job_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

func write(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(file, []byte(content), mode))
	return file
}

// A step is repeated once if it fails and may be repeated, perhaps with other arguments. The first outcome is kept.
func TestRepeat(t *testing.T) {
	good, bad, timeout := job.Outcome{Output: "good"}, job.Outcome{Code: 1, Output: "bad"}, job.Outcome{Code: -1, Error: "killed after its limit"}
	for _, tt := range []struct {
		repeat   bool
		outcomes []job.Outcome
		want     job.Outcome
	}{
		{true, []job.Outcome{good}, good},
		{true, []job.Outcome{bad, good}, job.Outcome{Output: "good", Earlier: &bad}},
		{true, []job.Outcome{timeout, bad}, job.Outcome{Code: 1, Output: "bad", Earlier: &timeout}},
		{false, []job.Outcome{bad}, bad},
	} {
		runs := 0
		got := job.Step{Args: []string{"0"}, Repeat: tt.repeat, RepeatArgs: []string{"1"}}.Execute(func(s job.Step) job.Outcome {
			if s.Args[0] != strconv.Itoa(runs) {
				t.Errorf("run %d has the arguments %q", runs, s.Args)
			}
			runs++
			return tt.outcomes[runs-1]
		})
		if diff := cmp.Diff(tt.want, got); diff != "" || runs != len(tt.outcomes) {
			t.Errorf("%d runs, want %d; the outcome (-want +got):\n%s", runs, len(tt.outcomes), diff)
		}
	}
}

// A machine that crashed leaves an empty disk or a truncated archive.
func TestTruncatedReport(t *testing.T) {
	files := map[string]string{"one.log": write(t, t.TempDir(), "one.log", strings.Repeat("output", 1000), 0o600)}
	var archive bytes.Buffer
	must.Do(t, job.Write(&archive, job.Report{}, files))
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
		must.Do(t, errors.Join(w.WriteHeader(&header), w.Close()))
		var got job.Report
		if err := job.Read(&archive, t.TempDir(), &got); err == nil || errors.Is(err, job.ErrNoReport) {
			t.Errorf("%c %s: %v; want an error about the name", header.Typeflag, header.Name, err)
		}
	}
}
