package docgen_test

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

var (
	showProse = flag.Bool("prose", false, "list every finding of TestProse, also the accepted ones")
	accept    = flag.Bool("accept", false, "accept all findings of TestProse, and write them to its file")
)

// proseRule is a construction that plain technical English avoids. CONTRIBUTING.md has the rules with examples.
type proseRule struct {
	advice  string
	pattern *regexp.Regexp
	// except cancels a match if it matches the text after it. It may be nil.
	except *regexp.Regexp
}

var proseRules = []proseRule{
	{
		"noun-less 'what': name the thing ('the value that …')",
		regexp.MustCompile(`(?i)(?:^|[.;:(]\s+|,\s+(?:and|or|but)?\s*|\b(?:of|from|to|by|with|for|in|on|at|than|as|like|beside|below|above|behind|` +
			`into|after|before|about|without|and|or|but|not|all|only|just|is|are|was|were|be|also)\s+)(?:what|whatever)\b`),
		regexp.MustCompile(`(?i)^(?:[^.;]*\?|\s+(?:to|if|happens|happened)\b)`),
	},
	{"noun-less 'who': name the person or program", regexp.MustCompile(`(?i)(?:^|[.;:,]\s+|\b(?:by|for|to|of|from|that|and|or)\s+)who\b`), nil},
	{"pronoun with 'of': repeat the noun", regexp.MustCompile(`(?i)\b(?:that|those|the one|the ones) of\b`), nil},
	{
		"preposition with 'which' or 'whom': split the sentence",
		regexp.MustCompile(`(?i)\b(?:of|by|in|from|with|at|on|for|to|below|above|after) (?:which|whom|whose)\b`), nil,
	},
	{"a person for a program", regexp.MustCompile(`(?i)\b(?:nobody|somebody|anybody|no one|someone|whoever)\b`), nil},
	{
		"inverted sentence: put the subject first",
		regexp.MustCompile(`(?:^|[.;:]\s+)(?:Of|Below|Above|Beside|Behind|Neither|Nor|So many|Where) [^.;:]{0,60}?` +
			`\b(?:is|are|has|have|was|were)\b (?:no|not|a|an|the|none|nothing)\b`), nil,
	},
	{
		"code does not speak: use 'reports', 'returns', 'means'",
		regexp.MustCompile(`(?i)\b(?:tells?|told|says?|said) (?:that|whether|of|how|what|why|which|apart)\b`), nil,
	},
	{"'there is' without a thing: put the subject first", regexp.MustCompile(`(?i)\bthere (?:is|are) (?:no|none|nothing)\b`), nil},
	{"infinitive with 'to be': use 'must be'", regexp.MustCompile(`(?i)\b(?:is|are|was|were|has|have) to be\b`), nil},
	{"comparison with a pronoun: say it directly", regexp.MustCompile(`(?i)\bas (?:it|they|he|she|one) (?:does|do|did)\b`), nil},
}

// findings returns how often a line violates the rule.
func (r proseRule) findings(text string) int {
	n := 0
	for _, span := range r.pattern.FindAllStringIndex(text, -1) {
		if r.except == nil || !r.except.MatchString(text[span[1]:]) {
			n++
		}
	}
	return n
}

// proseLine is one line of a comment, a string literal or a page.
type proseLine struct {
	number int
	text   string
}

var (
	cComment    = regexp.MustCompile(`(?:(?:^|\s)//\s?|^\s*/?\*+\s)(.*)$`)
	hashComment = regexp.MustCompile(`^\s*#+\s(.*)$`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
)

// proseOf returns the prose of a file: the comments of Go, C, shell, YAML and Make, the string literals of Go, and the text of Markdown.
func proseOf(path string, content []byte) []proseLine {
	switch ext := filepath.Ext(path); {
	case ext == ".go":
		return goProse(path, content)
	case ext == ".md":
		return markdownProse(content)
	case ext == ".c", ext == ".h", ext == ".S":
		return commentProse(content, cComment)
	case ext == ".sh", ext == ".yaml", ext == ".yml", filepath.Base(path) == "Makefile":
		return commentProse(content, hashComment)
	}
	return nil
}

func commentProse(content []byte, comment *regexp.Regexp) (prose []proseLine) {
	for i, line := range strings.Split(string(content), "\n") {
		if m := comment.FindStringSubmatch(line); m != nil {
			prose = append(prose, proseLine{i + 1, m[1]})
		}
	}
	return prose
}

// markdownProse leaves out code: fenced, indented or between backticks.
func markdownProse(content []byte) (prose []proseLine) {
	fenced := false
	for i, line := range strings.Split(string(content), "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "    "):
			prose = append(prose, proseLine{i + 1, codeSpan.ReplaceAllString(strings.TrimSpace(line), "``")})
		}
	}
	return prose
}

// goProse returns nothing for a generated file. A string literal is prose if it has a few words.
func goProse(path string, content []byte) (prose []proseLine) {
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	for {
		pos, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return prose
		case kind == token.COMMENT && strings.HasPrefix(literal, "// Code generated"):
			return nil
		case kind != token.COMMENT && kind != token.STRING:
			continue
		}
		for i, line := range strings.Split(literal, "\n") {
			isProse := len(line) > 25 && strings.Count(line, " ") >= 3
			if kind == token.COMMENT {
				line = strings.TrimSpace(strings.TrimPrefix(line, "//"))
				isProse = line != "" && !strings.HasPrefix(line, "go:") && !strings.HasPrefix(line, "nolint")
			}
			if isProse {
				prose = append(prose, proseLine{file.Line(pos) + i, strings.Trim(line, "\"`")})
			}
		}
	}
}

// proseCount counts the lines and the findings of one package or page.
type proseCount struct {
	lines    int
	findings []string
}

func (c *proseCount) add(path string, prose []proseLine) {
	for _, line := range prose {
		c.lines++
		for _, rule := range proseRules {
			for range rule.findings(line.text) {
				c.findings = append(c.findings, fmt.Sprintf("%s:%d: %s\n\t%s", path, line.number, rule.advice, line.text))
			}
		}
	}
}

// check fails if there are more findings than the file of findings has for this package or page. Fewer need no change of the file.
func (c *proseCount) check(t *testing.T, name string, limit int) {
	t.Helper()
	if len(c.findings) > limit {
		t.Errorf("%s: %d findings, allowed are %d; write another sentence, or accept it with go test ./internal/docgen -run TestProse -accept if the rule is wrong:\n%s",
			name, len(c.findings), limit, strings.Join(c.findings, "\n"))
	} else if *showProse && len(c.findings) > 0 {
		t.Logf("%s: %d findings in %d lines of prose:\n%s", name, len(c.findings), c.lines, strings.Join(c.findings, "\n"))
	}
}

// acceptedFile has the number of accepted findings of each package and page, since a rule can be wrong. A new finding fails the test.
const acceptedFile = "testdata/prose.tsv"

// readAccepted reads the file of findings: a package or page and a number in each line, separated by a tab.
func readAccepted(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(acceptedFile)
	must.Do(t, err)
	accepted := make(map[string]int)
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		unit, number, _ := strings.Cut(line, "\t")
		if accepted[unit], err = strconv.Atoi(number); err != nil {
			t.Fatalf("%s line %d: %q is not a package or page and a number, separated by a tab", acceptedFile, n+1, line)
		}
	}
	return accepted
}

func writeAccepted(t *testing.T, counts map[string]*proseCount) {
	t.Helper()
	var b strings.Builder
	for _, unit := range slices.Sorted(maps.Keys(counts)) {
		if n := len(counts[unit].findings); n > 0 {
			fmt.Fprintf(&b, "%s\t%d\n", unit, n)
		}
	}
	must.Do(t, os.WriteFile(acceptedFile, []byte(b.String()), 0o644))
}

// eachSource calls visit with each file of the project, except results of builds and test data. The path is relative to root.
//
// Invariant fresh-pages.
func eachSource(t *testing.T, root string, visit func(path string, content []byte)) {
	t.Helper()
	must.Do(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "out", "testdata"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		if err == nil {
			visit(path, content)
		}
		return err
	}))
}

// TestProse checks the writing rules of CONTRIBUTING.md on every package and every page.
func TestProse(t *testing.T) {
	counts := map[string]*proseCount{}
	eachSource(t, "../..", func(path string, content []byte) {
		prose := proseOf(path, content)
		if len(prose) == 0 {
			return
		}
		unit := filepath.Dir(path)
		if filepath.Ext(path) == ".md" {
			unit = path
		}
		if counts[unit] == nil {
			counts[unit] = &proseCount{}
		}
		counts[unit].add(path, prose)
	})
	if *accept {
		writeAccepted(t, counts)
	}
	accepted := readAccepted(t)
	for _, unit := range slices.Sorted(maps.Keys(counts)) {
		counts[unit].check(t, unit, accepted[unit])
	}
}

// TestProseRules checks the rules with the examples in CONTRIBUTING.md: a rule must find each bad sentence and none of the good ones.
func TestProseRules(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	must.Do(t, err)
	examples := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(examples) < len(proseRules) {
		t.Errorf("CONTRIBUTING.md has %d examples for %d rules", len(examples), len(proseRules))
	}
	rest := slices.Clone(proseRules)
	for _, example := range examples {
		bad, good := example[1], example[2]
		found := func(r proseRule) bool { return r.findings(bad) > 0 }
		if !slices.ContainsFunc(proseRules, found) {
			t.Errorf("no rule finds %q", bad)
		}
		rest = slices.DeleteFunc(rest, found)
		for _, rule := range proseRules {
			if rule.findings(good) > 0 {
				t.Errorf("%q is found by the rule %s", good, rule.advice)
			}
		}
	}
	for _, rule := range rest {
		t.Errorf("CONTRIBUTING.md has no example of %s", rule.advice)
	}
}

func TestProseOf(t *testing.T) {
	for _, tt := range []struct {
		path, content string
		want          []proseLine
	}{
		{"x.go", "// Package x is one.\npackage x\n\n//go:embed y\nconst a = \"too short\" // a comment\n", []proseLine{{1, "Package x is one."}, {5, "a comment"}}},
		{"x.go", "package x\n\nconst a = `the first line of some help\nand the second line of the help`\n", []proseLine{
			{3, "the first line of some help"}, {4, "and the second line of the help"},
		}},
		{"x.go", "// Code generated by y. DO NOT EDIT.\npackage x\n", nil},
		{"x.c", "/* one\n * two\n */\nint x; // three\nint y = 2 * 3;\n", []proseLine{{1, "one"}, {2, "two"}, {4, "three"}}},
		{"x.sh", "#!/bin/sh\n# one\nfalse # not read\n", []proseLine{{2, "one"}}},
		{"x.md", "# Title\n\nA `span of code` is left out.\n\n    indented\n```\nfenced\n```\n", []proseLine{{1, "# Title"}, {3, "A `` is left out."}}},
		{"x.png", "# binary", nil},
	} {
		if got := proseOf(tt.path, []byte(tt.content)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q\n\thas the prose %+v, want %+v", tt.path, tt.content, got, tt.want)
		}
	}
}
