package ci

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "write scripts/ci.sh and the keys of releases into the component")

const componentFile = "templates/touchstone.yml"

// between replaces the text between a line "# begin NAME, by make gen" and the line "# end". The text is indented like these lines.
func between(t *testing.T, text, name, replacement string) string {
	t.Helper()
	begin := regexp.MustCompile(`(?m)^( *)# begin ` + regexp.QuoteMeta(name) + `, by make gen\n`).FindStringSubmatchIndex(text)
	if begin == nil {
		t.Fatalf("%s has no place for %s", componentFile, name)
	}
	indent := text[begin[2]:begin[3]]
	_, rest, ok := strings.Cut(text[begin[1]:], indent+"# end\n")
	if !ok {
		t.Fatalf("%s has no end of %s", componentFile, name)
	}
	var b strings.Builder
	for line := range strings.Lines(replacement) {
		if line != "\n" {
			line = indent + line
		}
		b.WriteString(line)
	}
	return text[:begin[1]] + b.String() + indent + "# end\n" + rest
}

// A component of GitLab is one file, so it contains the script of the action and the keys.
//
// Invariant same-script: GitHub and GitLab execute the same script with the same keys of releases.
func TestComponentIsCurrent(t *testing.T) {
	keys, err := os.ReadFile(filepath.Join(root, ".github/allowed_signers"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // before the first release
		t.Fatal(err)
	}
	variable := "TOUCHSTONE_SIGNERS: \"\"\n"
	if len(keys) > 0 {
		variable = "TOUCHSTONE_SIGNERS: |\n"
		for line := range strings.Lines(string(keys)) {
			variable += "  " + line
		}
	}
	old := read(t, componentFile)
	text := between(t, between(t, old, ".github/allowed_signers", variable), "scripts/ci.sh", read(t, "scripts/ci.sh"))
	switch {
	case text == old:
	case *update:
		must.Do(t, os.WriteFile(filepath.Join(root, componentFile), []byte(text), 0o644))
	default:
		t.Errorf("%s lacks the current script or keys: run make gen", componentFile)
	}
}

// The inputs of the action and of the component are the same, but for the ones that belong to one service.
func TestSameInputs(t *testing.T) {
	a, c := parseAction(t), parseComponent(t).Spec.Inputs
	for name, input := range a.Inputs {
		twin, ok := c[name]
		if isOwn := name == "github-token" || name == "summary"; ok == isOwn {
			t.Errorf("the input %s is in the component: %v, want %v", name, ok, !isOwn)
		}
		if ok && (input.Required != (twin.Default == nil) || !input.Required && input.Default != *twin.Default) {
			t.Errorf("the default of %s is %q in the action, and another one in the component", name, input.Default)
		}
	}
	for name := range c {
		if _, ok := a.Inputs[name]; !ok && name != "job" && name != "stage" && name != "tags" {
			t.Errorf("the action has no input %s", name)
		}
	}
}

// pinned matches an action at a commit. The examples use this action at the commit of a release, which their reader finds out.
var pinned = regexp.MustCompile(`^([\w.-]+/[\w./-]+@[0-9a-f]{40}|touchstone-bench/touchstone@COMMIT)$`)

// Invariant pinned-actions: Each action in a workflow, in an example and in action.yml is named by its commit.
func TestPinnedActions(t *testing.T) {
	files := []string{"action.yml"}
	for _, pattern := range []string{".github/workflows/*", "examples/ci/github*"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(matches) == 0 {
			t.Fatalf("%s has %q, %v", pattern, matches, err)
		}
		for _, match := range matches {
			name, err := filepath.Rel(root, match)
			must.Do(t, err)
			files = append(files, name)
		}
	}
	count := 0
	for _, file := range files {
		var document any
		must.Do(t, yaml.Unmarshal([]byte(read(t, file)), &document))
		visit(document, func(name, value string) {
			if name != "uses" {
				return
			}
			count++
			if !pinned.MatchString(value) || strings.HasSuffix(value, "@COMMIT") && !strings.HasPrefix(file, "examples/") {
				t.Errorf("%s: %s is named by no commit", file, value)
			}
		})
	}
	if count < 5 {
		t.Errorf("%d actions were found", count)
	}
}

// visit calls a function with each text of a document and its key.
func visit(value any, f func(name, value string)) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if text, ok := v.(string); ok {
				f(name, text)
			}
			visit(v, f)
		}
	case []any:
		for _, v := range value {
			visit(v, f)
		}
	}
}

// Invariant no-template.
func TestScriptsHaveNoTemplates(t *testing.T) {
	for _, s := range parseAction(t).Runs.Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("an expression of GitHub becomes a part of the script\n%s", s.Run)
		}
	}
	jobs, ok := parseComponent(t).jobs.(map[string]any)
	if !ok || len(jobs) != 1 {
		t.Fatalf("the component has the jobs %v", jobs)
	}
	for _, value := range jobs {
		fields, ok := value.(map[string]any)
		if !ok {
			t.Fatalf("the job is %v", value)
		}
		for _, name := range []string{"script", "after_script"} {
			lines, ok := fields[name].([]any)
			if !ok || len(lines) == 0 {
				t.Errorf("%s is %v", name, fields[name])
			}
			for _, line := range lines {
				if text, ok := line.(string); !ok || strings.Contains(text, "$[[") {
					t.Errorf("an input of GitLab becomes a part of %s\n%v", name, line)
				}
			}
		}
	}
}

// docs/ci.md has each input in its table, and each output.
func TestDocumentedInputs(t *testing.T) {
	page := read(t, "docs/ci.md")
	var names []string
	for name := range parseAction(t).Inputs {
		names = append(names, name)
	}
	for name := range parseAction(t).Outputs {
		names = append(names, name)
	}
	for name := range parseComponent(t).Spec.Inputs {
		names = append(names, name)
	}
	for _, name := range names {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + name + "`").MatchString(page) {
			t.Errorf("docs/ci.md has no row of %s", name)
		}
	}
}
