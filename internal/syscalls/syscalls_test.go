package syscalls

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

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "write table.txt")

// TestTableIsCurrent: the table has the system calls of golang.org/x/sys.
func TestTableIsCurrent(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	must.Do(t, err)
	dir := strings.TrimSpace(string(output))
	numbers := map[string][]string{} // by name
	for i, arch := range architectures {
		file := filepath.Join(dir, "unix", "zsysnum_linux_"+arch.name+".go")
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must.Do(t, err)
		ast.Inspect(syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			name := strings.ToLower(strings.TrimPrefix(spec.Names[0].Name, "SYS_"))
			if numbers[name] == nil {
				numbers[name] = slices.Repeat([]string{"-"}, len(architectures))
			}
			numbers[name][i] = spec.Values[0].(*ast.BasicLit).Value
			return false
		})
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintln(&text, name, strings.Join(numbers[name], " "))
	}
	if *update {
		must.Do(t, os.WriteFile("table.txt", []byte(text.String()), 0o600))
		return
	}
	if text.String() != table {
		t.Error("table.txt differs from golang.org/x/sys; run make gen")
	}
}

func TestNames(t *testing.T) {
	for number, want := range map[uint32]string{unix.SYS_EXECVE: "execve", unix.SYS_MOUNT: "mount", unix.SYS_CLONE3: "clone3", 1 << 20: "number 1048576"} {
		if got := Name(number); got != want {
			t.Errorf("Name(%d) = %q, want %q", number, got, want)
		}
	}
	if calls := namesOf("sparc"); len(calls) > 0 {
		t.Errorf("an unknown architecture has the calls %v", calls)
	}
}
