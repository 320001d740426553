// Command cross checks that all code of the module, including its tests, has no error of types on other architectures:
//
//	cross ARCHITECTURE...
//
// It reads the source of the packages that the module imports, and compiles none of them. On a new machine go vet would compile all of them for each
// architecture. The exit code is 1 if there is an error.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cross:", err)
		os.Exit(1)
	}
}

func run(architectures []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, arch := range architectures {
		failed, err := check(root, arch)
		if err != nil {
			return err
		}
		if failed > 0 {
			return fmt.Errorf("%d errors on %s", failed, arch)
		}
	}
	return nil
}

// check prints the errors of the module below root on an architecture, and returns their number.
func check(root, arch string) (int, error) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax,
		Dir:   root,
		Env:   append(os.Environ(), "GOARCH="+arch, "GOOS=linux", "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(files *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				dropBodies(file)
			}
			return file, err
		},
	}
	list, err := packages.Load(config, "./...")
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, errors.New("the module has no packages")
	}
	found := make(map[string]bool) // a package and its tests have the same errors
	for _, p := range list {
		if strings.HasSuffix(p.ID, ".test") { // the generated program of the tests
			continue
		}
		for _, e := range p.Errors {
			if text := e.Error(); !found[text] {
				found[text] = true
				fmt.Fprintf(os.Stderr, "%s: %s\n", arch, text)
			}
		}
	}
	return len(found), nil
}

// dropBodies removes the bodies of functions: the types of a package do not depend on them.
func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
