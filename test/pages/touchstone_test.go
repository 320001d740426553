package pages

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// usageOf is the line with the path of a command in its help.
var usageOf = regexp.MustCompile(`(?m)^Usage:\n  touchstone ?(\S*) ?(\S*)`)

// help executes a command line with --help after it. Its flags are parsed before the help is printed.
func help(t *testing.T, args []string) (text string, err error) {
	t.Helper()
	var out, complaints bytes.Buffer
	if code := cli.New(cli.Environment{Stdout: &out, Stderr: &complaints}).Run(t.Context(), append(slices.Clone(args), "--help")); code != cli.ExitOK {
		return "", fmt.Errorf("exit code %d: %s", code, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

// placeholder matches a word of a page that stands for a value: NAME, N, …, [flags].
var placeholder = regexp.MustCompile(`^([A-Z]{2,}|[A-Z]|…|\.\.\.|\[.*)$`)

// checkTouchstone checks the verb, the flags, the targets and the plans of a command line of touchstone.
func checkTouchstone(t *testing.T, args []string) error {
	t.Helper()
	if placeholder.MatchString(args[0]) || strings.HasPrefix(args[0], "-") {
		return nil
	}
	// A placeholder can be the number or the duration of a flag.
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "…" })
	text, err := help(t, args)
	if err != nil {
		return err
	}
	usage := usageOf.FindStringSubmatch(text)
	switch {
	case usage == nil || usage[1] != args[0]:
		return fmt.Errorf("touchstone has no verb %q", args[0])
	case strings.Contains(text, "\nAvailable Commands:\n") && len(args) > 1 && !strings.HasPrefix(args[1], "-") && !placeholder.MatchString(args[1]):
		return fmt.Errorf("touchstone %s has no verb %q", args[0], args[1])
	}
	for i, arg := range args {
		name, value, hasValue := strings.Cut(arg, "=")
		if !strings.HasPrefix(name, "-") {
			continue
		}
		if !hasValue && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "-t", "--target", "--targets":
			err = checkTargets(value)
		case "--a", "--b": // a build: TARGET=PATH
			build, _, _ := strings.Cut(value, "=")
			err = checkTargets(build)
		case "-f":
			err = checkPlan(value)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", name, value, err)
		}
	}
	return nil
}

// checkTargets checks a list of targets, of which each can be a pattern.
func checkTargets(list string) error {
	names := map[string]bool{"*": true, "all": true}
	for _, d := range engines.All(nil, nil).Descriptions() {
		names[d.Name] = true
	}
	for item := range strings.SplitSeq(list, ",") {
		if strings.Contains(item, "=") && !strings.Contains(item, "/") { // another option of the target before
			continue
		}
		engine, _, _ := strings.Cut(item, "/")
		if !names[engine] {
			return fmt.Errorf("no engine has the name %q", engine)
		}
		if strings.Contains(item, "*") || item == "all" {
			continue
		}
		if _, err := target.Parse(item); err != nil {
			return err
		}
	}
	return nil
}

// checkPlan checks the path of a plan below examples. Other plans are the reader's.
func checkPlan(path string) error {
	if !strings.HasPrefix(path, "examples/") {
		return nil
	}
	_, err := os.Stat(filepath.Join(root, path))
	return err
}

// Each verb, flag, engine and example in a page exists.
//
// Invariant page-commands.
func TestCommandLinesOfTouchstone(t *testing.T) {
	checked := map[string]bool{}
	for _, c := range everything(t) {
		line := strings.Join(c.words[1:], " ")
		if c.program() != "touchstone" || checked[line] {
			continue
		}
		checked[line] = true
		if err := checkTouchstone(t, c.words[1:]); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	if len(checked) < 100 {
		t.Errorf("%d command lines of touchstone were found in the pages, want more than 100", len(checked))
	}
}

func TestCheckTouchstone(t *testing.T) {
	for line, want := range map[string]string{
		"benchmark -t native,oci/runsc@platform=kvm,memory=1 --runs 3": "",
		"benchmark --monitor memory …":                                 "",
		"list NAME":                                                    "",
		"image [command]":                                              "",
		"image build --arch ARCH":                                      "",
		"benchmark -t */runc,all":                                      "",
		"nonsense":                                                     `no verb "nonsense"`,
		"image nonsense":                                               `touchstone image has no verb "nonsense"`,
		"benchmark --nonsense":                                         "unknown flag: --nonsense",
		"benchmark --runs many":                                        "invalid argument",
		"benchmark --targets=oci/runc,nonsense/runc":                   `no engine has the name "nonsense"`,
		"ab --a oci/runc=./runc --b oci/runc":                          "",
		"ab --a nonsense/runc=./runc":                                  `no engine has the name "nonsense"`,
		"benchmark -t oci/":                                            "target",
		"benchmark -f examples/nonsense.yaml":                          "no such file",
	} {
		err := checkTouchstone(t, strings.Fields(line))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
