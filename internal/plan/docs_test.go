package plan

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/must"
)

const page = "../../docs/plan.md"

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	must.Do(t, err)
	return string(text)
}

// TestPageExamples checks that each example of the page is a plan, or a part of a plan.
func TestPageExamples(t *testing.T) {
	blocks := regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n").FindAllStringSubmatch(readPage(t), -1)
	if len(blocks) < 10 {
		t.Fatalf("the page has %d examples", len(blocks))
	}
	schema := compiledSchema(t)
	for _, b := range blocks {
		text := b[1]
		touchstones := strings.HasPrefix(text, "cri:")
		if !strings.HasPrefix(text, "version:") && !touchstones {
			text = "version: 1\n" + text
		}
		p, err := Parse(page, []byte(text))
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		if err := validate(schema, []byte(text)); (err != nil) != touchstones {
			t.Errorf("the schema says %v of\n%s", err, text)
		}
		if p.Pinning != (Pinning{}) {
			if _, err := p.Check(Machine{Online: cpuset.Set{0}}); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPageListsBuiltins checks that the page has a row for each built-in plan.
func TestPageListsBuiltins(t *testing.T) {
	text := readPage(t)
	for _, b := range Builtins() {
		if !strings.Contains(text, "\n| ["+b.Name+"](../examples/"+b.Name+".yaml) | ") {
			t.Errorf("the page does not have the plan %s", b.Name)
		}
	}
}
