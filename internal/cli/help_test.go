package cli_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cli"
)

func help(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := cli.New(cli.Environment{Stdout: &stdout, Stderr: &stderr})
	if code := app.Run(t.Context(), append(args, "--help")); code != cli.ExitOK || stderr.Len() > 0 {
		t.Errorf("touchstone %s --help: exit code %d, standard error %q", strings.Join(args, " "), code, stderr.String())
	}
	return stdout.String()
}

func TestHelpOfEveryVerb(t *testing.T) {
	_, list, found := strings.Cut(help(t), "Available Commands:\n")
	list, _, hasEnd := strings.Cut(list, "\n\n")
	if !found || !hasEnd {
		t.Fatal("the help lists no commands")
	}
	var verbs []string
	for line := range strings.Lines(list) {
		verb := strings.Fields(line)[0]
		verbs = append(verbs, verb)
		text := help(t, verb)
		if !strings.Contains(text, "Usage:\n  touchstone "+verb) || !strings.Contains(text, "Exit codes:") {
			t.Errorf("the help of %s lacks its usage or the exit codes:\n%s", verb, text)
		}
	}
	for _, verb := range []string{"benchmark", "cleanup", "completion", "export", "index", "list", "peer", "report", "runs", "targets", "version"} {
		if !slices.Contains(verbs, verb) {
			t.Errorf("the help does not list %s", verb)
		}
	}
}

func TestExitCodesInHelp(t *testing.T) {
	_, text, _ := strings.Cut(help(t), "Exit codes:")
	codes := map[int]string{
		cli.ExitOK: "ok", cli.ExitFailure: "failure", cli.ExitUsage: "usage", cli.ExitTrials: "some trials failed",
		cli.ExitWorse: "worse than the margin", cli.ExitNoTarget: "a target is missing", cli.ExitInconclusive: "inconclusive", cli.ExitInterrupted: "interrupted",
	}
	if numbers := regexp.MustCompile(`\d+`).FindAllString(text, -1); len(numbers) != len(codes) {
		t.Errorf("the help lists the exit codes %q, want only those of %v", numbers, codes)
	}
	for code, meaning := range codes {
		if !regexp.MustCompile(fmt.Sprintf(`\s%d %s\s`, code, meaning)).MatchString(text) {
			t.Errorf("the help lacks exit code %d, %s:\n%s", code, meaning, text)
		}
	}
}

// TestLinesFit: the lines of help fit into 100 columns.
func TestLinesFit(t *testing.T) {
	for _, verb := range [][]string{nil, {"benchmark"}, {"report"}, {"export"}, {"cleanup"}, {"list"}, {"targets"}, {"compare"}, {"baseline"}, {"baseline", "save"}, {"history"}, {"ui"}, {"peer"}, {"host"}, {"host", "tune"}, {"host", "restore"}} {
		for line := range strings.Lines(help(t, verb...)) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
				t.Errorf("help of %v: a line of %d columns: %s", verb, n, line)
			}
		}
	}
}
