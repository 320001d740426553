package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// runAB compares two fake targets. Its fourth run is the last one. It returns the exit code, the output and ab.json.
func runAB(ctx context.Context, t *testing.T, runID func(number int) string, args ...string) (code int, output string, document []byte) {
	t.Helper()
	dir := t.TempDir()
	runs := 0
	var stdout, stderr bytes.Buffer
	app := cli.New(cli.Environment{Stdout: &stdout, Stderr: &stderr, RunID: func() string {
		runs++
		return runID(runs)
	}})
	code = app.Run(ctx, append([]string{"ab", "--repeat", "5", "-d", dir}, args...))
	if runs != 4 {
		t.Errorf("exit code %d after %d runs, want 4: %s", code, runs, &stderr)
	}
	document, err := os.ReadFile(filepath.Join(dir, "ab.json"))
	must.Do(t, err, followsSchema("../..", "ab", document))
	return code, stdout.String(), document
}

// TestABInterrupted: an interrupt shows the runs so far, without an answer. A pass would need all of them.
func TestABInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	code, output, text := runAB(ctx, t, func(number int) string {
		if number == 4 { // the third one after the calibration
			interrupt(cli.ErrInterrupted)
		}
		return fmt.Sprintf("20260101-0000%02d-aaaa", number)
	}, "--a", "fake/old@jitter=0.01", "--b", "fake/new@jitter=0.01", "--blocks", "10")
	for _, want := range []string{`"answer": "inconclusive"`, `"exit_code": 130`, `"unfinished": "interrupted"`, `"20260101-000003-aaaa"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("ab.json lacks %s:\n%s", want, text)
		}
	}
	if code != cli.ExitInterrupted || !strings.Contains(output, "2 of 5 runs of 10 blocks") {
		t.Errorf("exit code %d, want %d; the output is\n%s", code, cli.ExitInterrupted, output)
	}
}

// TestABBroken: an error ends the runs. The comparison so far has the error and the exit code of the command, and no test case passes.
func TestABBroken(t *testing.T) {
	t.Parallel()
	code, output, text := runAB(t.Context(), t, func(number int) string {
		return fmt.Sprintf("20260101-0000%02d-aaaa", min(number, 3)) // the ID of the third run after the calibration exists
	}, "--a", "fake/old", "--b", "fake/new", "--blocks", "4", "-o", "junit")
	for _, want := range []string{fmt.Sprintf(`"exit_code": %d`, code), `"unfinished": "a run ended with an error: `} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("ab.json lacks %s:\n%s", want, text)
		}
	}
	if code == cli.ExitOK || code == cli.ExitInconclusive ||
		!regexp.MustCompile(`<error type="inconclusive" message="[^"]*a run ended with an error: `).MatchString(output) {
		t.Errorf("exit code %d, want that of an error; the test cases are\n%s", code, output)
	}
}

// followsSchema checks a JSON document against a published schema.
func followsSchema(repository, name string, text []byte) error {
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(repository, "docs", "schema", name+".schema.json"))
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(document)
}
