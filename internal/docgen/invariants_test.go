package docgen_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/docgen"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// Invariant fresh-pages.
func TestInvariantsAreFresh(t *testing.T) {
	page, err := docgen.Invariants("../..")
	must.Do(t, err)
	compare(t, filepath.Join(docs, "invariants.md"), page)
	overview, err := os.ReadFile("../../ARCHITECTURE.md")
	must.Do(t, err)
	sentences := regexp.MustCompile(`(?m)^- \*\*[a-z0-9-]+\*\*: .*\n`).FindAllString(string(overview), -1)
	for _, sentence := range sentences {
		if !strings.Contains(string(page), strings.ReplaceAll(sentence, "](docs/adr/", "](adr/")) {
			t.Errorf("ARCHITECTURE.md has an invariant that no comment states: %s", sentence)
		}
	}
	if len(sentences) != 10 {
		t.Errorf("ARCHITECTURE.md has %d invariants, want 10", len(sentences))
	}
}

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(t, os.WriteFile(file, []byte(text), 0o644))
	}
	return dir
}

func TestInvariants(t *testing.T) {
	dir := tree(t, map[string]string{
		"docs/adr/0007-seven.md": "",
		"b/b_test.go": "// Package b has tests.\n//\n// Invariant late.\npackage b\n\n" +
			"// TestB tests.\n//\n// Invariant late: A promise of two\n// lines (ADR 7).\n// Invariant early.\n//\n// More.\nfunc TestB() {}\n",
		"a/a.go": "package a\n\n// T has a value.\n// Invariant early: Another `promise`.\n// Invariant late.\ntype T int\n\n" +
			"// Invariant late.\nconst c = \"// Invariant none.\"\n",
		"a/testdata/one.txtar": "# Invariant early.\n# Invariant script: A promise\n#  of a script.\nexec x\n# No part of it.\n",
		"bin/a.go":             "broken // Invariant none.",
		"a/a.md":               "# Invariant none.\n",
	})
	got, err := docgen.Invariants(dir)
	must.Do(t, err)
	_, list, _ := strings.Cut(string(got), "comments.\n")
	const want = `
## a

- **early**: Another ` + "`promise`" + `.
  [T](../a/a.go), [one.txtar](../a/testdata/one.txtar), [TestB](../b/b_test.go)

## a/testdata

- **script**: A promise of a script.
  [one.txtar](../a/testdata/one.txtar)

## b

- **late**: A promise of two lines ([ADR 7](adr/0007-seven.md)).
  [T](../a/a.go), [c](../a/a.go), [package b](../b/b_test.go), [TestB](../b/b_test.go)
`
	if list != want {
		t.Errorf("got %s\nwant %s", list, want)
	}
}

func TestInvariantsAreRefused(t *testing.T) {
	const function = "func f() {}\n"
	for text, want := range map[string]string{
		"// Invariant a.\n" + function:                                            "no comment states the invariant a of [f]",
		"// Invariant a: One.\n// Invariant a: Two.\n" + function:                 "a is stated twice",
		"// Invariant: One.\n" + function:                                         `"Invariant: One.": write`,
		"// Invariant A: One.\n" + function:                                       `"Invariant A: One.": write`,
		"// Invariant a: One.\n\n" + function:                                     "in the comment of a package or a declaration",
		"func f() {\n\t// Invariant a: One.\n}\n":                                 "in the comment of a package or a declaration",
		"broken // Invariant a.\n":                                                "expected declaration",
		"// Invariant a: One.\n" + function + "// Invariant a: One.\nvar x int\n": "a is stated twice",
	} {
		if _, err := docgen.Invariants(tree(t, map[string]string{"a.go": "package a\n\n" + text})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
