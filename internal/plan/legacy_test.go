package plan

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlansOfVersionBefore reads plans of an earlier touchstone. The canonical spelling is the form that it kept with its runs.
func TestPlansOfVersionBefore(t *testing.T) {
	for _, name := range []string{"whole", "touchstone"} {
		kept, err := Load("testdata/v1/" + name + ".canonical.yaml")
		must(t, err)
		old, err := os.ReadFile("testdata/v1/" + name + ".canonical.yaml")
		must(t, err)
		if diff := cmp.Diff(strings.Replace(string(old), "\njson: ", "\nexport: ", 1), string(kept.YAML())); diff != "" {
			t.Errorf("%s: the plan is spelled in another way (-before +now):\n%s", name, diff)
		}
		p, err := Load("testdata/v1/" + name + ".yaml")
		must(t, err)
		if name == "touchstone" {
			// The earlier touchstone read these keys in another way: Touchstone's benchmarks of a group, its pods, and its form of the output.
			p.Benchmarks, p.Pods, p.TouchstoneOutput, p.Export = kept.Benchmarks, kept.Pods, "", p.TouchstoneOutput
		}
		if diff := cmp.Diff(kept, p, same); diff != "" {
			t.Errorf("%s: the plan and its canonical spelling differ (-canonical +plan):\n%s", name, diff)
		}
	}
}

func TestRenamedKeyHasHint(t *testing.T) {
	p := mustParse(t, "old.yaml", "version: 1\njson: a.json\n")
	if p.Export != "a.json" {
		t.Errorf("the export goes to %q", p.Export)
	}
	want := []string{"old.yaml:2:1: the key json is called export now; the old name still works"}
	if diff := cmp.Diff(want, p.Hints); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
	if p := mustParse(t, "new.yaml", "version: 1\nexport: a.json\n"); p.Export != "a.json" || p.Hints != nil {
		t.Errorf("the new key gives %q with the hints %q", p.Export, p.Hints)
	}
	_, err := Parse("both.yaml", []byte("version: 1\nexport: a.json\njson: b.json\n"))
	if want := "both.yaml:3:1: json is the old name of export, which is there too; leave json out"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
