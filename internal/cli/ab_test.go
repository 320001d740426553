package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestABAdvice: the flags of the advice decide. The ratio varies from run to run by more than the margin and little within a run, so that a larger budget
// alone gives longer runs and no answer.
func TestABAdvice(t *testing.T) {
	if testing.Short() {
		t.Skip("it has many runs")
	}
	t.Parallel()
	dir := t.TempDir()
	runs := 0
	compare := func(flags ...string) (code int, output string) {
		var stdout, stderr bytes.Buffer
		app := cli.New(cli.Environment{Stdout: &stdout, Stderr: &stderr, RunID: func() string {
			runs++
			return fmt.Sprintf("20260111-%06d-aaaa", runs)
		}})
		code = app.Run(t.Context(), append([]string{"ab", "--a", "fake/old@jitter=0.01", "--b", "fake/new@jitter=0.01,wander=0.1", "-d", dir}, flags...))
		return code, stdout.String() + stderr.String()
	}
	code, output := compare("--budget", "15s")
	advice := regexp.MustCompile(`(?m)^→ repeat with (--repeat \d+ --blocks \d+ --budget \S+): a decision would take about `).FindStringSubmatch(output)
	if code != cli.ExitInconclusive || advice == nil {
		t.Fatalf("exit code %d, want %d and flags that decide:\n%s", code, cli.ExitInconclusive, output)
	}
	flags := strings.Fields(advice[1])
	if n, err := strconv.Atoi(flags[1]); err != nil || n <= 20 {
		t.Errorf("the advice is %v, want more runs than a budget alone gives", flags)
	}
	if code, output = compare(flags...); code != cli.ExitOK {
		t.Errorf("exit code %d with %v:\n%s", code, flags, output)
	}
}

// TestABInterrupted: an interrupt shows the runs so far, without an answer. A pass would need all of them.
func TestABInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, interrupt := context.WithCancelCause(t.Context())
	runs := 0
	var stdout, stderr bytes.Buffer
	app := cli.New(cli.Environment{Stdout: &stdout, Stderr: &stderr, RunID: func() string {
		if runs++; runs == 4 { // the third one after the calibration
			interrupt(cli.ErrInterrupted)
		}
		return fmt.Sprintf("20260101-0000%02d-aaaa", runs)
	}})
	code := app.Run(ctx, []string{"ab", "--a", "fake/old@jitter=0.01", "--b", "fake/new@jitter=0.01", "--repeat", "5", "--blocks", "10", "-d", dir})
	if code != cli.ExitInterrupted || runs != 4 {
		t.Errorf("exit code %d after %d runs, want %d after 4: %s", code, runs, cli.ExitInterrupted, &stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ab.json"))
	must.Do(t, err)
	for _, want := range []string{`"answer": "inconclusive"`, `"exit_code": 130`, `"unfinished": "interrupted"`, `"20260101-000003-aaaa"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("ab.json lacks %s:\n%s", want, text)
		}
	}
	followsSchema(t, "ab", text)
	if !strings.Contains(stdout.String(), "2 of 5 runs of 10 blocks") {
		t.Errorf("the output is\n%s", &stdout)
	}
}

// TestABBroken: an error ends the runs. The comparison so far has the error and the exit code of the command, and no test case passes.
func TestABBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs := 0
	var stdout, stderr bytes.Buffer
	app := cli.New(cli.Environment{Stdout: &stdout, Stderr: &stderr, RunID: func() string {
		runs++
		return fmt.Sprintf("20260101-0000%02d-aaaa", min(runs, 3)) // the ID of the third run after the calibration exists
	}})
	code := app.Run(t.Context(), []string{"ab", "--a", "fake/old", "--b", "fake/new", "--repeat", "5", "--blocks", "4", "-d", dir, "-o", "junit"})
	if code == cli.ExitOK || code == cli.ExitInconclusive || runs != 4 {
		t.Errorf("exit code %d after %d runs, want that of an error after 4: %s", code, runs, &stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ab.json"))
	must.Do(t, err)
	followsSchema(t, "ab", text)
	for _, want := range []string{fmt.Sprintf(`"exit_code": %d`, code), `"unfinished": "a run ended with an error: `} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("ab.json lacks %s:\n%s", want, text)
		}
	}
	if !regexp.MustCompile(`<error type="inconclusive" message="[^"]*a run ended with an error: `).Match(stdout.Bytes()) {
		t.Errorf("the test cases are\n%s", &stdout)
	}
}

// followsSchema checks a JSON document against the published schema of a name.
func followsSchema(t *testing.T, name string, text []byte) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "..", "docs", "schema", name+".schema.json"))
	must.Do(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(document)
	}
	if err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}
