package pages

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"mvdan.cc/sh/v3/syntax"
)

// command is a simple command of make, of a script or of touchstone.
type command struct {
	at    place
	words []string // the program and its arguments; an expansion has the value of the variable, or "x"
}

func (c command) String() string { return fmt.Sprintf("%s: %s", c.at, strings.Join(c.words, " ")) }

// program returns "make", "touchstone", the path of a script, or an empty string.
func (c command) program() string { return programOf(c.words) }

// ours is the beginning of a line with a command that this package checks.
var ours = regexp.MustCompile(`^(?:\$ )?(?:(?:[A-Z_]+=\S*|sudo|mkdir \S+ &&) )*(?:make|touchstone|(?:\./)?bin/touchstone|(?:\./)?scripts/\S+) \S`)

// commands returns the commands in the places. A line of a block that begins like a command must be one, with the lines that continue it.
func commands(places []place) (list []command, err error) {
	var errs []error
	for i := 0; i < len(places); i++ {
		spot := places[i]
		text := strings.TrimPrefix(spot.text, "$ ")
		found, err := parse(spot, text, nil)
		// A quoted string or a backslash continues the line.
		for next := i + 1; err != nil && spot.code && ours.MatchString(spot.text) && next < len(places) && places[next].code && places[next].page == spot.page; next++ {
			text += "\n" + places[next].text
			if found, err = parse(spot, text, nil); err == nil {
				i = next
			}
		}
		if err != nil && ours.MatchString(spot.text) {
			errs = append(errs, fmt.Errorf("%s: %q is no command line: %w", spot, spot.text, err))
		}
		list = append(list, found...)
	}
	return list, errors.Join(errs...)
}

// wrappers are programs that run another one, which their arguments name.
var wrappers = []string{"sudo", "ssh", "env", "systemd-run", "nice", "time", "exec"}

// parse returns the commands of a script in bash's language. variables are its environment.
func parse(spot place, text string, variables map[string]string) (list []command, err error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text+"\n"), "")
	if err != nil {
		return nil, err
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok {
			return true
		}
		var words []string
		for _, word := range call.Args {
			words = append(words, valueOf(word, variables))
		}
		if len(words) > 0 && slices.Contains(wrappers, words[0]) {
			words = words[1:]
			for len(words) > 1 && programOf(words) == "" && !strings.Contains(words[0], " ") {
				words = words[1:]
			}
		}
		if len(words) == 1 && strings.Contains(words[0], " ") { // for a shell on another machine
			found, parseErr := parse(spot, words[0], variables)
			list, err = append(list, found...), errors.Join(err, parseErr)
		}
		if c := (command{spot, words}); c.program() != "" && len(words) > 1 || strings.HasPrefix(c.program(), "scripts/") {
			list = append(list, c)
		}
		return true
	})
	return list, err
}

// programOf returns the program of a command line: see command.program.
func programOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	switch path := strings.TrimPrefix(words[0], "./"); {
	case path == "make":
		return path
	case path == "touchstone" || path == "bin/touchstone":
		return "touchstone"
	case strings.HasPrefix(path, "scripts/") && filepath.Ext(path) == ".sh":
		return path
	}
	return ""
}

func valueOf(word syntax.Node, variables map[string]string) string {
	var text strings.Builder
	add := func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				text.WriteString(part.Value)
			case *syntax.SglQuoted:
				text.WriteString(part.Value)
			case *syntax.DblQuoted:
				text.WriteString(valueOf(&syntax.Word{Parts: part.Parts}, variables))
			case *syntax.ParamExp:
				if value, ok := variables[part.Param.Value]; ok {
					text.WriteString(value)
				} else {
					text.WriteString("x")
				}
			default:
				text.WriteString("x")
			}
		}
	}
	if w, ok := word.(*syntax.Word); ok {
		add(w.Parts)
	}
	return text.String()
}

// workflow returns the commands of the jobs in a file of GitHub Actions or GitLab CI: those of the keys run and script. It refuses a workflow
// without any command of touchstone or make.
func workflow(page, text string) ([]command, error) {
	var document any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("%s: %w", page, err)
	}
	variables := map[string]string{}
	var scripts []string
	var walk func(key string, value any)
	walk = func(key string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, v := range value {
				if key == "env" || key == "variables" {
					variables[name] = fmt.Sprint(v)
				}
				walk(name, v)
			}
		case []any:
			for _, v := range value {
				walk(key, v)
			}
		case string:
			if key == "run" || key == "script" {
				scripts = append(scripts, value)
			}
		}
	}
	walk("", document)
	var list []command
	for _, script := range scripts {
		line := 1 + strings.Count(text[:max(strings.Index(text, strings.SplitN(script, "\n", 2)[0]), 0)], "\n")
		found, err := parse(place{page, line, script, true}, script, variables)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", page, line, err)
		}
		list = append(list, found...)
	}
	if len(scripts) > 0 && !slices.ContainsFunc(list, func(c command) bool { return c.program() == "touchstone" || c.program() == "make" }) {
		return nil, fmt.Errorf("%s has no command of touchstone or make in its scripts", page)
	}
	return list, nil
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		"$ make test-quick   # comment":                                 "make test-quick",
		"mkdir out && LAB_OUT=$PWD/out make test-lab":                   "make test-lab",
		"ssh board touchstone export | touchstone import - server.json": "touchstone export; touchstone import - server.json",
		"ssh -t user@board 'sudo touchstone export > board.json'":       "touchstone export",
		"systemd-run --user --scope touchstone benchmark":               "touchstone benchmark",
		"touchstone benchmark -t fake/slow@create=30ms --filter 'a b'":  "touchstone benchmark -t fake/slow@create=30ms --filter a b",
		"touchstone report latest -o json | jq -e '.a // [] | length'":  "touchstone report latest -o json",
		"scripts/workload-matrix.sh":                                    "scripts/workload-matrix.sh",
		"PATH=$(scripts/runtimes.sh runsc):$PATH":                       "scripts/runtimes.sh runsc",
		"scp bin/touchstone examples/embedded.yaml user@board:":         "",
		"cd touchstone":                      "",
		"make":                               "",
		"touchstone: no target is available": "",
		"for i in 1 2; do touchstone runs -d \"results/$i\"; done; true": "touchstone runs -d results/x",
	} {
		found, err := commands([]place{{"p.md", 1, text, true}})
		var got []string
		for _, c := range found {
			got = append(got, strings.Join(c.words, " "))
		}
		if err != nil || strings.Join(got, "; ") != want {
			t.Errorf("%q has the commands %q, %v; want %q", text, strings.Join(got, "; "), err, want)
		}
	}
	if _, err := commands([]place{{"p.md", 1, "make test 'x", true}}); err == nil || !strings.HasPrefix(err.Error(), "p.md:1: ") {
		t.Errorf("an open quote: %v", err)
	}
	list, err := commands([]place{{"p.md", 1, "touchstone export | jq '.a |", true}, {"p.md", 2, ".b'", true}})
	if err != nil || len(list) != 1 {
		t.Errorf("a command of two lines: %v, %v", list, err)
	}
}

func TestWorkflow(t *testing.T) {
	text := "job:\n  env: {T: oci/runc}\n  steps:\n    - run: |\n        make -C base\n        touchstone benchmark --targets \"$T\"\n  script:\n    - touchstone runs\n"
	found, err := workflow("w.yaml", text)
	var got []string
	for _, c := range found {
		got = append(got, strings.Join(c.words, " "))
	}
	slices.Sort(got)
	if want := []string{"make -C base", "touchstone benchmark --targets oci/runc", "touchstone runs"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the workflow has %q, %v; want %q", got, err, want)
	}
	for name, text := range map[string]string{"no YAML": "a: [", "open quote": "run: touchstone 'x", "no command": "run: echo"} {
		if _, err := workflow("w.yaml", text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
