package docgen

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// invariant is a promise of the code: its sentence, the directory of the comment that states it, and links to all comments that name it.
type invariant struct {
	id, sentence, dir string
	places            []string
}

// comment is a comment with the name of its declaration or file; the name is empty if it belongs to none.
type comment struct{ name, text string }

var (
	// statement is the line of a comment that states an invariant, or that names one. hash matches a line; its group is a comment with #.
	statement = regexp.MustCompile(`^Invariant ([a-z0-9-]+)(?:\.|: (.+))$`)
	decision  = regexp.MustCompile(`ADR ([0-9]+)`)
	hash      = regexp.MustCompile(`(?m)^[ \t]*(?:# ?(.*)|.*)$`)
)

// Invariants returns docs/invariants.md from the comments of the files below root: comments of Go that belong to a package or a declaration,
// and lines with # in scripts, testscripts and configurations. One comment states an invariant, and others may name it.
func Invariants(root string) ([]byte, error) {
	promises := map[string]*invariant{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "bin", "out"}, e.Name()):
			return filepath.SkipDir
		case !e.Type().IsRegular() || !slices.Contains([]string{".go", ".sh", ".txtar", ".yml", ""}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(" Invariant")) {
			return err
		}
		comments := []comment{{e.Name(), hash.ReplaceAllString(string(text), "$1")}}
		if filepath.Ext(path) == ".go" {
			comments, err = goComments(text)
		}
		for i := 0; err == nil && i < len(comments); i++ {
			err = collect(promises, strings.TrimPrefix(filepath.ToSlash(path), root+"/"), comments[i])
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return invariantPage(root, promises)
}

func goComments(text []byte) ([]comment, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[*ast.CommentGroup]string{file.Doc: "package " + file.Name.Name}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Doc] = d.Name.Name
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[cmp.Or(s.Doc, d.Doc)] = s.Name.Name
				case *ast.ValueSpec:
					names[cmp.Or(s.Doc, d.Doc)] = s.Names[0].Name
				}
			}
		}
	}
	comments := make([]comment, 0, len(file.Comments))
	for _, group := range file.Comments {
		comments = append(comments, comment{names[group], group.Text()})
	}
	return comments, nil
}

// collect adds the invariants of a comment. A sentence ends at an empty line or at the next invariant.
func collect(promises map[string]*invariant, file string, c comment) error {
	open := &invariant{}
	for line := range strings.Lines(c.text) {
		line = strings.TrimSpace(line)
		if line == "" {
			open = &invariant{}
		}
		if word, _, _ := strings.Cut(line, " "); strings.TrimSuffix(word, ":") != "Invariant" {
			open.sentence += " " + line
			continue
		}
		parts := statement.FindStringSubmatch(line)
		if parts == nil || c.name == "" {
			return fmt.Errorf("%q: write \"Invariant name: sentence\" or \"Invariant name.\" in the comment of a package or a declaration", line)
		}
		open = cmp.Or(promises[parts[1]], &invariant{id: parts[1]})
		promises[open.id] = open
		open.places = append(open.places, fmt.Sprintf("[%s](../%s)", c.name, file))
		if parts[2] == "" {
			open = &invariant{}
		} else if open.sentence != "" {
			return fmt.Errorf("the invariant %s is stated twice", open.id)
		}
		open.sentence, open.dir = parts[2], filepath.ToSlash(filepath.Dir(file))
	}
	return nil
}

func invariantPage(root string, promises map[string]*invariant) ([]byte, error) {
	var page bytes.Buffer
	fmt.Fprint(&page, "# Invariants\n\nEach invariant is a sentence in the comment of a test, a check or a function that keeps it. The links lead to all of these.\n"+
		"`make gen` writes this page. [CONTRIBUTING.md](../CONTRIBUTING.md#an-invariant) describes the form of the comments.\n")
	var dir string
	for _, promise := range slices.SortedFunc(maps.Values(promises), func(a, b *invariant) int {
		return cmp.Or(strings.Compare(a.dir, b.dir), strings.Compare(a.id, b.id))
	}) {
		if promise.sentence == "" {
			return nil, fmt.Errorf("no comment states the invariant %s of %s", promise.id, promise.places[0])
		}
		if promise.dir != dir {
			dir = promise.dir
			fmt.Fprintf(&page, "\n## %s\n\n", dir)
		}
		sentence := decision.ReplaceAllStringFunc(promise.sentence, func(name string) string {
			number := "000" + strings.TrimPrefix(name, "ADR ")
			files, _ := filepath.Glob(filepath.Join(root, "docs", "adr", number[len(number)-4:]+"-*.md")) // a missing one becomes a broken link
			return fmt.Sprintf("[%s](adr/%s)", name, filepath.Base(strings.Join(files, "")))
		})
		fmt.Fprintf(&page, "- **%s**: %s\n  %s\n", promise.id, sentence, strings.Join(slices.Compact(promise.places), ", "))
	}
	return page.Bytes(), nil
}
