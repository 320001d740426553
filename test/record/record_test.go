package record_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/record"
)

const self = "github.com/touchstone-bench/touchstone/test/record"

// fakeTest is a test whose errors and skip do not count.
type fakeTest struct {
	testing.TB
	log, errors, skipped string
}

func (t *fakeTest) Name() string                      { return "TestFake/part" }
func (t *fakeTest) Logf(format string, args ...any)   { t.log += fmt.Sprintf(format, args...) }
func (t *fakeTest) Errorf(format string, args ...any) { t.errors += fmt.Sprintf(format, args...) }
func (t *fakeTest) Skip(args ...any) {
	t.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func call(t *testing.T, function func(testing.TB)) *fakeTest {
	t.Helper()
	fake := &fakeTest{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() { function(fake) }) // Skip ends its goroutine
	wg.Wait()
	return fake
}

// file returns the path of a record that does not exist yet.
func file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record")
	t.Setenv(record.Variable, path)
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Do(t, err)
	return string(text)
}

// Each call is one line of four fields, whatever is in the reason.
//
// Invariant recorded-repeats: Tests repeat and skip only with a reason, in a file that CI shows (`TOUCHSTONE_TEST_RECORD`).
func TestLines(t *testing.T) {
	path := file(t)
	repeat := call(t, func(t testing.TB) { record.Repeat(t, "exit code 3:\n\tno\tanswer\n") })
	skip := call(t, func(t testing.TB) { record.Skip(t, "no KVM") })
	want := "repeat\t" + self + "\tTestFake/part\texit code 3: no answer\nskip\t" + self + "\tTestFake/part\tno KVM\n"
	if got := read(t, path); got != want {
		t.Errorf("the record is %q, want %q", got, want)
	}
	if !strings.Contains(repeat.log, "no\tanswer") || skip.skipped != "no KVM" || repeat.errors+skip.errors != "" {
		t.Errorf("Repeat logs %q, Skip skips with %q; errors %q", repeat.log, skip.skipped, repeat.errors+skip.errors)
	}
}

// Lines of several writers do not mix, and no writer removes lines of another one.
//
// Invariant recorded-repeats.
func TestWriters(t *testing.T) {
	path := file(t)
	const writers, lines = 8, 100
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range lines {
				record.Repeat(&fakeTest{TB: t}, strings.Repeat("long ", 200))
			}
		})
	}
	wg.Wait()
	entries := strings.Split(strings.TrimSpace(read(t, path)), "\n")
	if len(entries) != writers*lines {
		t.Errorf("there are %d lines, want %d", len(entries), writers*lines)
	}
	for _, line := range entries {
		if line != entries[0] || strings.Count(line, "\t") != 3 {
			t.Fatalf("a line is %q", line)
		}
	}
}

func TestInclude(t *testing.T) {
	path, guestFile := file(t), filepath.Join(t.TempDir(), "guest")
	missing := call(t, func(t testing.TB) { record.Include(t, guestFile) })
	const line = "repeat\tpkg\tTestGuest\tlost\n"
	must.Do(t, os.WriteFile(guestFile, []byte(line), 0o600))
	found := call(t, func(t testing.TB) {
		record.Include(t, guestFile)
		record.Include(t, guestFile)
	})
	if got := read(t, path); got != line+line || missing.errors+found.errors != "" {
		t.Errorf("the record is %q, want the line twice; errors %q", got, missing.errors+found.errors)
	}
}

func TestWithoutFile(t *testing.T) {
	t.Setenv(record.Variable, "")
	if got := call(t, func(t testing.TB) { record.Repeat(t, "lost packet") }); got.errors != "" || got.log == "" {
		t.Errorf("errors %q, log %q", got.errors, got.log)
	}
}

// A repeat that is not recorded fails its test.
//
// Invariant recorded-repeats.
func TestRefusals(t *testing.T) {
	for path, want := range map[string]string{"record": "set an absolute one", filepath.Join(t.TempDir(), "no", "record"): "no such file"} {
		t.Setenv(record.Variable, path)
		if got := call(t, func(t testing.TB) { record.Repeat(t, "lost packet") }); !strings.Contains(got.errors, want) {
			t.Errorf("%s: the error is %q, want %q in it", path, got.errors, want)
		}
	}
	file(t)
	if got := call(t, func(t testing.TB) { record.Repeat(t, " \n") }); !strings.Contains(got.errors, "repeat has no reason") {
		t.Errorf("a repeat without a reason: %q", got.errors)
	}
}
