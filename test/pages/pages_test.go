// Package pages checks that all that a page tells a reader to run exists and runs. It finds the command lines from the pages themselves: make
// targets, scripts and command lines of touchstone, in blocks, in inline code, in the help of make and in the workflows of examples/ci and .github.
//
// In every go test each target, script, verb, flag, target of a run and plan that a page names must exist, and a page or the help of make
// must name each target and script. With TOUCHSTONE_PAGES=1, as root, each of them has a short run with real runtimes, in a copy of the
// project. A target or script without a short run fails the test by its name. The package has only tests.
package pages

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the project.
const root = "../.."

// place is a piece of text that can contain commands.
type place struct {
	page string
	line int
	text string
	// code is a line of a block, which must be a command if it begins like one. Other text is an inline code.
	code bool
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.page, p.line) }

// pageFiles returns the pages with commands, relative to the project. The decisions of docs/adr describe the past.
func pageFiles(t *testing.T) []string {
	t.Helper()
	files := []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"}
	for _, dir := range []string{".github", "docs", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if e.IsDir() && name == filepath.Join("docs", "adr") {
				return filepath.SkipDir
			}
			if slices.Contains([]string{".md", ".yaml"}, filepath.Ext(name)) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence  = regexp.MustCompile("^ *```")
	item   = regexp.MustCompile(`^ *([-*]|[0-9]+\.) `)
	inline = regexp.MustCompile("(?s)`([^`]+)`")
)

// places returns the blocks and the inline code of a page, and the comments of an example.
func places(page, text string) []place {
	if filepath.Ext(page) == ".yaml" {
		return comments(page, text)
	}
	var list []place
	fenced, inList, blank := false, false, true
	var prose []string // the lines since the last block; inline code can go over the end of a line
	start := 1
	flush := func(next int) {
		paragraph := strings.Join(prose, "\n")
		for _, match := range inline.FindAllStringSubmatchIndex(paragraph, -1) {
			line := start + strings.Count(paragraph[:match[0]], "\n")
			list = append(list, place{page, line, strings.Join(strings.Fields(paragraph[match[2]:match[3]]), " "), false})
		}
		prose, start = nil, next
	}
	for i, line := range strings.Split(text, "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		// In a list an indented line continues an item, unless it is indented further.
		depth := cmp.Or(map[bool]int{true: 6}[inList], 4)
		switch {
		case fence.MatchString(line):
			flush(i + 2)
			fenced = !fenced
		case fenced || blank && indent >= depth:
			flush(i + 2)
			// In the help of a verb the command lines are indented, and other lines are prose.
			if indent > 0 || !strings.HasPrefix(page, filepath.Join("docs", "cli")) {
				list = append(list, place{page, i + 1, strings.TrimSpace(line), true})
			}
			continue // the next line of a block needs no blank line before it
		default:
			if indent == 0 && line != "" {
				inList = item.MatchString(line)
			}
			prose = append(prose, line)
			if line == "" {
				flush(i + 2)
			}
		}
		blank = line == ""
	}
	flush(0)
	return list
}

// comments returns the comments of a YAML file as prose and as blocks.
func comments(page, text string) (list []place) {
	for i, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			continue
		}
		if strings.HasPrefix(comment, "   ") {
			list = append(list, place{page, i + 1, strings.TrimSpace(comment), true})
		}
		for _, code := range inline.FindAllStringSubmatch(comment, -1) {
			list = append(list, place{page, i + 1, code[1], false})
		}
	}
	return list
}

// everything returns the commands of all pages and workflows.
func everything(t *testing.T) []command {
	t.Helper()
	var list []command
	for _, page := range pageFiles(t) {
		text := read(t, page)
		found, err := commands(places(page, text))
		if err != nil {
			t.Error(err)
		}
		list = append(list, found...)
		if strings.HasPrefix(page, filepath.Join("examples", "ci")) || strings.HasPrefix(page, filepath.Join(".github", "workflows")) {
			found, err := workflow(page, text)
			if err != nil {
				t.Error(err)
			}
			list = append(list, found...)
		}
	}
	return list
}
