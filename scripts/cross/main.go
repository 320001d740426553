// Command cross checks that all code of the module, its tests, and all that they import have no error of types on other architectures:
//
//	cross ARCHITECTURE...
//
// It compiles nothing. On a new machine go vet would compile all imported packages for each architecture. The exit code is 1 if there is an error.
package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"

	"github.com/touchstone-bench/touchstone/internal/wording"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cross:", err)
		os.Exit(1)
	}
}

func run(architectures []string) error {
	if len(architectures) == 0 {
		return errors.New("name the architectures, as in GOARCH")
	}
	total := 0
	for _, arch := range architectures {
		failed, err := check(".", arch)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		total += failed
	}
	if total > 0 {
		return errors.New(wording.Counted(total, "error"))
	}
	return nil
}

// check prints the errors of the module in a directory and of all that it imports, and returns their number.
func check(dir, arch string) (int, error) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax,
		Dir:   dir,
		Env:   append(os.Environ(), "GOARCH="+arch, "GOOS=linux", "CGO_ENABLED=0"),
		Tests: true,
	}
	list, err := packages.Load(config, "./...")
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, errors.New("the module has no packages")
	}
	found := make(map[string]bool) // a package and its tests have the same errors
	packages.Visit(list, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if text := e.Error(); !found[text] {
				found[text] = true
				fmt.Fprintf(os.Stderr, "%s: %s\n", arch, text)
			}
		}
	})
	return len(found), nil
}
