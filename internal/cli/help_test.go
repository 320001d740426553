package cli_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestLinesFit: the lines of the help of every verb fit into 100 columns, and its prose and flags into a narrower terminal.
func TestLinesFit(t *testing.T) {
	check := func(text string, width int, verb []string, skips func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > width && !skips(line) {
				t.Errorf("help of %v at %d columns: a line of %d: %s", verb, width, n, line)
			}
		}
	}
	verbs := 0
	var walk func(verb ...string)
	walk = func(verb ...string) {
		verbs++
		text := help(t, verb...)
		check(text, 100, verb, func(string) bool { return false })
		var terminal bytes.Buffer
		cli.New(cli.Environment{Stdout: &terminal, Stderr: &terminal, Width: 80}).Run(t.Context(), append(slices.Clone(verb), "--help"))
		check(terminal.String(), 80, verb, func(line string) bool { // examples and lists of names
			isFlag := strings.HasPrefix(strings.TrimSpace(line), "-") && !strings.HasPrefix(line, "  - ")
			return strings.HasPrefix(line, "  ") && !isFlag || strings.HasPrefix(line, "Use \"")
		})
		_, list, _ := strings.Cut(text, "Available Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			walk(append(slices.Clone(verb), strings.Fields(line)[0])...)
		}
	}
	walk()
	if verbs < 40 {
		t.Errorf("the help lists %d verbs, want at least 40 with those below others", verbs)
	}
}
