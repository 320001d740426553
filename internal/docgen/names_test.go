package docgen_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func readNames(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("testdata/names.txt")
	must.Do(t, err)
	words := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		list, _, _ := strings.Cut(line, "#")
		for _, word := range strings.Fields(list) {
			words[word] = true
		}
	}
	return words
}

// localNames returns the names of the variables, constants, parameters and results that the functions of a Go file declare.
func localNames(file *ast.File) (names []*ast.Ident) {
	addFields := func(list *ast.FieldList) {
		if list != nil {
			for _, field := range list.List {
				names = append(names, field.Names...)
			}
		}
	}
	addDefined := func(operator token.Token, expressions ...ast.Expr) {
		for _, expression := range expressions {
			if name, ok := expression.(*ast.Ident); ok && operator == token.DEFINE {
				names = append(names, name)
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			addFields(n.Recv)
		case *ast.FuncType:
			addFields(n.Params)
			addFields(n.Results)
		case *ast.AssignStmt:
			addDefined(n.Tok, n.Lhs...)
		case *ast.RangeStmt:
			addDefined(n.Tok, n.Key, n.Value)
		case *ast.DeclStmt:
			for _, spec := range n.Decl.(*ast.GenDecl).Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					names = append(names, values.Names...)
				}
			}
		}
		return true
	})
	return names
}

// badNames lists the local names of a Go file that are among the words, with their places.
func badNames(t *testing.T, path string, source []byte, words map[string]bool) (findings []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	must.Do(t, err)
	for _, name := range localNames(file) {
		if words[name.Name] {
			findings = append(findings, fmt.Sprintf("%s: %s", files.Position(name.Pos()), name.Name))
		}
	}
	return findings
}

func TestNames(t *testing.T) {
	words := readNames(t)
	eachSource(t, "../..", func(path string, content []byte) {
		if filepath.Ext(path) != ".go" {
			return
		}
		if findings := badNames(t, path, content, words); len(findings) > 0 {
			t.Errorf("no nouns, and no verbs for functions:\n%s", strings.Join(findings, "\n"))
		}
	})
}

func TestBadNames(t *testing.T) {
	const source = "package p\nvar all int\ntype of struct{ from int }\ntype reader interface{ read(into any) (known bool) }\n" +
		"func (other of) f(until func(whole int)) (lost error) {\nconst most = 1\nvar seen int\nnow, err := most, lost\n" +
		"for each, held := range []int{} { seen, err = each, held }\nswitch later := any(now).(type) {}\nreturn of{from: seen}.g(err)\n}\n"
	want := "4:29: into, 4:40: known, 5:7: other, 5:19: until, 5:43: lost, 5:30: whole, 6:7: most, 7:5: seen, 8:1: now, 9:5: each, 9:11: held, 10:8: later"
	if got := strings.Join(badNames(t, "", []byte(source), readNames(t)), ", "); got != want {
		t.Errorf("the findings are\n%s\nwant\n%s", got, want)
	}
}
