package docgen_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/docgen"
	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "write the pages")

const docs = "../../docs"

// Invariant fresh-pages: Pages do not drift from the code.
func TestCommandPagesAreFresh(t *testing.T) {
	pages, err := docgen.Commands(t.Context())
	must.Do(t, err)
	dir := filepath.Join(docs, "cli")
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		compare(t, filepath.Join(dir, name), pages[name])
	}
	entries, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, e := range entries {
		if _, ok := pages[e.Name()]; ok {
			continue
		}
		if !*update {
			t.Errorf("%s describes a command that does not exist; make gen removes it", e.Name())
		} else if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			t.Error(err)
		}
	}
}

// Invariant fresh-pages.
func TestTablesAreFresh(t *testing.T) {
	generators := map[string]func([]byte) ([]byte, error){"image.md": docgen.Programs, "papers.md": docgen.Papers, "troubleshooting.md": docgen.KnownErrors}
	for _, suite := range docgen.Suites() {
		generators[filepath.Join("benchmarks", suite+".md")] = func(page []byte) ([]byte, error) { return docgen.Benchmarks(page, suite) }
	}
	for name, generate := range generators {
		file := filepath.Join(docs, name)
		page, err := os.ReadFile(file)
		must.Do(t, err)
		want, err := generate(page)
		must.Do(t, err)
		compare(t, file, want)
	}
	if _, err := docgen.Programs([]byte("a page")); err == nil {
		t.Error("a page without a place for the programs is accepted")
	}
	for _, page := range []string{"a page", "<!-- flags -->\n<!-- end -->\n"} {
		if _, err := docgen.Papers([]byte(page)); err == nil {
			t.Errorf("%q has no place for the flags or the notes and is accepted", page)
		}
	}
}

// TestScriptIsFresh holds that the committed script of the pages equals the compiled source.
//
// Invariant fresh-pages.
func TestScriptIsFresh(t *testing.T) {
	file, script, err := docgen.Script("../..")
	must.Do(t, err)
	compare(t, file, script)
}

// TestSchemasAreFresh holds that a published schema has the fields of the types that make the JSON.
//
// Invariant published-schemas.
func TestSchemasAreFresh(t *testing.T) {
	files, err := docgen.Schemas("../..")
	must.Do(t, err)
	for name, want := range files {
		compare(t, filepath.Join(docs, "schema", name), want)
	}
	entries, err := os.ReadDir(filepath.Join(docs, "schema"))
	must.Do(t, err)
	for _, e := range entries {
		if n := e.Name(); files[n] == nil && n != "plan.schema.json" && n != "result.schema.json" {
			t.Errorf("%s is the schema of no kind", n)
		}
	}
}

func compare(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		must.Do(t, os.WriteFile(file, want, 0o644))
		return
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run make gen", file, err)
	}
}

func TestBenchmarksRefusesWrongTables(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "benchmarks", "operations.md"))
	must.Do(t, err)
	const one = "<!-- generated: operations.container.exec -->"
	for name, text := range map[string]string{
		"unknown":          strings.Replace(string(page), one, "<!-- generated: operations.container.dance -->", 1),
		"twice":            string(page) + one + "\n<!-- end -->\n",
		"of another suite": string(page) + "<!-- generated: density.memory -->\n<!-- end -->\n",
		"missing":          strings.Replace(string(page), one, "", 1),
	} {
		if _, err := docgen.Benchmarks([]byte(text), "operations"); err == nil {
			t.Errorf("%s: a page with wrong tables is accepted", name)
		}
	}
}

func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "probe/*.md", "linpack/*.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		must.Do(t, err)
		found = append(found, files...)
	}
	return found
}

// Invariant fresh-pages.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		must.Do(t, err)
		for _, m := range link.FindAllSubmatch(text, -1) {
			destination, anchor := string(m[1]), string(m[2])
			if strings.Contains(destination, "://") {
				continue
			}
			target := page
			if destination != "" {
				target = filepath.Join(filepath.Dir(page), destination)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, destination, err)
			} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s links to %s#%s, which has no such heading", page, destination, anchor)
			}
		}
	}
}

// anchors returns the anchors of the headings of a page, as GitHub makes them.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	must.Do(t, err)
	noise := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(noise.ReplaceAllString(strings.ToLower(string(m[1])), ""), " ", "-"))
	}
	return list
}

// Every test that a page names exists.
//
// Invariant fresh-pages.
func TestNamedTestsExist(t *testing.T) {
	tests := map[string]bool{}
	defined := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range defined.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	must.Do(t, err)
	pattern := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		must.Do(t, err)
		for _, name := range pattern.FindAllString(string(text), -1) {
			if !tests[name] {
				t.Errorf("%s names the test %s, which does not exist", page, name)
			}
		}
	}
}
