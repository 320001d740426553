package trace

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "write calls.txt")

// TestCallTableIsCurrent: calls.txt has the system calls of golang.org/x/sys.
func TestCallTableIsCurrent(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	must.Do(t, err)
	dir := strings.TrimSpace(string(output))
	numbers := map[string][]string{} // by name
	for i, arch := range callArchitectures {
		file := filepath.Join(dir, "unix", "zsysnum_linux_"+arch+".go")
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must.Do(t, err)
		ast.Inspect(syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			name := strings.ToLower(strings.TrimPrefix(spec.Names[0].Name, "SYS_"))
			if numbers[name] == nil {
				numbers[name] = slices.Repeat([]string{"-"}, len(callArchitectures))
			}
			numbers[name][i] = spec.Values[0].(*ast.BasicLit).Value
			return false
		})
	}
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintln(&table, name, strings.Join(numbers[name], " "))
	}
	if *update {
		must.Do(t, os.WriteFile("calls.txt", []byte(table.String()), 0o600))
		return
	}
	if table.String() != callTable {
		t.Error("calls.txt differs from golang.org/x/sys; run make gen")
	}
}
