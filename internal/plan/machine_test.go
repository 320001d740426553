package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// four has two cores of two threads each.
var four = Machine{Online: cpuset.Set{0, 1, 2, 3}, Cores: []cpuset.Set{{0, 2}, {1, 3}}, Root: true}

func TestCheckPinning(t *testing.T) {
	for _, c := range []struct {
		name, text string
		flags      []string
		notes      []string
		errs       []string
	}{
		{name: "nothing", text: ""},
		{name: "each on its own core", text: "pinning: {workload: '1,3', engines: 0, touchstone: 2}"},
		{
			name: "one CPU for both", text: "pinning: {workload: 1-3, engines: 0-1, touchstone: 3}",
			notes: []string{
				"pinning: engines and workload share CPU 1, so engines takes CPU time from the workload",
				"pinning: touchstone and workload share CPU 3, so touchstone takes CPU time from the workload",
			},
		},
		{
			name: "one core for both", text: "pinning: {workload: '1', touchstone: '3'}",
			notes: []string{"pinning: CPU 3 of touchstone and CPU 1 of workload are threads of one core and slow each other down"},
		},
		{name: "what measures may share", text: "pinning: {engines: 0, touchstone: 0}"},
		{
			name: "CPUs that are not there", text: "pinning: {workload: 2-5, touchstone: 8191}",
			errs: []string{
				"p:2:21: pinning: workload has CPU 4-5, which this machine does not have; the CPUs are 0-3",
				"p:2:38: pinning: touchstone has CPU 8191, which this machine does not have; the CPUs are 0-3",
			},
		},
		{
			name: "a flag over the plan", text: "pinning: {workload: 7, touchstone: 9}", flags: []string{"workload=0,2,touchstone=1", "engines=3"},
		},
		{
			name: "a flag that is wrong", text: "pinning: {workload: 7}", flags: []string{"workload=4"},
			errs: []string{"--pin: pinning: workload has CPU 4, which this machine does not have; the CPUs are 0-3"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			original := mustParse(t, "p", "version: 1\n"+c.text+"\n")
			p, err := original.Apply(Overrides{Pin: c.flags})
			must.Do(t, err)
			notes, err := p.Check(four)
			checkLines(t, err, c.errs)
			if diff := cmp.Diff(c.notes, notes); diff != "" && c.errs == nil {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			expect.Equal(t, "Apply has changed the plan", mustParse(t, "p", "version: 1\n"+c.text+"\n"), original, same)
		})
	}
}

func TestPinFlag(t *testing.T) {
	p, err := Quick().Apply(Overrides{Pin: []string{"workload=2,3,7-9,engines=1", "touchstone=0,4"}})
	if want := (Pinning{Workload: "2,3,7-9", Engines: "1", Touchstone: "0,4"}); err != nil || p.Pinning != want {
		t.Errorf("got %+v, %v; want %+v", p.Pinning, err, want)
	}
	_, err = Quick().Apply(Overrides{Pin: []string{"2-3", "workloads=1", "engines=", "touchstone=a,b=c", ""}})
	checkLines(t, err, []string{
		`--pin: "2-3" is not part=CPUs; write it like workload=2-3,engines=1,touchstone=0`,
		`--pin: "workloads" is not a part of a run; did you mean workload?`,
		`--pin: "" is not a list of CPUs; write it like 0-3,8`,
		`--pin: "a" is not a list of CPUs; write it like 0-3,8`,
		`--pin: "b" is not a part of a run; the parts are workload, engines, touchstone`,
		`--pin: "" is not part=CPUs; write it like workload=2-3,engines=1,touchstone=0`,
	})
}

func TestDropsCaches(t *testing.T) {
	for _, c := range []struct {
		keys             string
		flag, root, want bool
		warm             bool // nothing reads cold files
		errs             []string
	}{
		{keys: "", root: true, want: false},
		{keys: "parameters: paper", root: true, want: true},
		{keys: "parameters: paper", root: false, want: false},
		{keys: "parameters: paper\ndrop-caches: false", root: true, want: false},
		{keys: "drop-caches: true", root: true, want: true},
		{keys: "drop-caches: true", root: false, want: true, errs: []string{"p:2:14: drop-caches: only root can drop the host's page cache; run as root, or leave the key out"}},
		{keys: "drop-caches: false", flag: true, root: false, want: true, errs: []string{"--drop-caches: drop-caches: only root can drop the host's page cache; run as root, or leave the key out"}},
		{keys: "drop-caches: false", flag: true, root: true, want: true},
		{keys: "parameters: paper", warm: true, root: true, want: false},
		{keys: "drop-caches: true", warm: true, root: true, want: false},
	} {
		p := mustParse(t, "p", "version: 1\n"+c.keys+"\n")
		if c.flag {
			var err error
			p, err = p.Apply(Overrides{DropCaches: &c.flag})
			must.Do(t, err)
		}
		work := []Work{{}, {Params: bench.Params{"cache": "cold"}}}
		if c.warm {
			work = []Work{{}, {Params: bench.Params{"cache": "warm"}}}
		}
		if got := p.DropsCaches(c.root, work); got != c.want {
			t.Errorf("%q, root: %t: drops caches: %t, want %t", c.keys, c.root, got, c.want)
		}
		_, err := p.Check(Machine{Online: cpuset.Set{0}, Root: c.root})
		checkLines(t, err, c.errs)
	}
}

// TestCheckImages checks that the path of a workload's image is relative to the plan.
func TestCheckImages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("app.tar", "x")
	write("empty.tar", "")
	write("layout/index.json", "{}")
	write("folder/x", "x")
	for image, want := range map[string]string{
		"workload":                      "",
		"probe":                         "",
		"app.tar":                       "",
		"layout":                        "",
		filepath.Join(dir, "app.tar"):   "",
		"./none.tar":                    `workloads.image: "DIR/none.tar" does not exist; give the path of an OCI layout (a folder) or of an OCI or Docker archive (a file), relative to the plan`,
		"worklaod":                      `workloads.image: "DIR/worklaod" does not exist; did you mean workload?`,
		"empty.tar":                     `workloads.image: "DIR/empty.tar" is empty or not a file; give the path`,
		"folder":                        `workloads.image: the folder "DIR/folder" has no index.json, so it is not an OCI layout; give the path`,
		"app.tar/x":                     `not a directory; give the path`,
		"docker.io/library/redis:7":     `workloads.image: "DIR/docker.io/library/redis:7" does not exist; give the path`,
		"../" + filepath.Base(dir) + "": `has no index.json`,
	} {
		text := workload("name: a.b.c", "image: "+image, "argv: [/a]", parseRate)
		p := mustParse(t, filepath.Join(dir, "plan.yaml"), text)
		for range 2 { // the stored plan says the same wherever it is read
			_, err := p.Check(four)
			message := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR")
			if want == "" && err != nil || want != "" && !strings.Contains(message, want) {
				t.Errorf("image %s: %s, want %s", image, message, want)
			}
			p = mustParse(t, "elsewhere/p", string(p.YAML()))
		}
	}
}

func TestCheckHasLocations(t *testing.T) {
	p := mustParse(t, "/none/p.yaml", workload("name: a.b.c", "argv: [/a]", "image: app.tar", parseRate))
	_, err := p.Check(four)
	checkLines(t, err, []string{`/none/p.yaml:5:12: workloads.image: "/none/app.tar" does not exist; give the path of an OCI layout (a folder) or of an OCI or Docker archive (a file), relative to the plan`})
}

// A part of a run cannot leave the cpuset or the mask of this process.
//
// Invariant usable-cpus.
func TestCheckUsableCPUs(t *testing.T) {
	subset := four
	subset.Usable = cpuset.Set{0, 1}
	isolated := four
	isolated.Usable, isolated.Isolated = four.Online, cpuset.Set{1, 2, 3}
	for _, c := range []struct {
		name, text string
		machine    Machine
		note, want string
	}{
		{name: "within", text: "pinning: {workload: 0-1}", machine: subset},
		{
			name: "workload outside", text: "pinning: {workload: 1-2}", machine: subset,
			want: "pinning: workload has CPU 2, which the cpuset or the mask of this process excludes; the CPUs that may be used are 0-1",
		},
		{name: "engines outside", text: "pinning: {workload: 0, engines: 3}", machine: subset, want: "pinning: engines has CPU 3, which"},
		{name: "touchstone outside", text: "pinning: {touchstone: 3}", machine: subset, want: "pinning: touchstone has CPU 3, which"},
		{name: "a limit outside", text: "limits: {cpuset: 2-3}", machine: subset, want: "limits.cpuset has CPU 2-3, which the cpuset or the mask"},
		{name: "no such CPU", text: "pinning: {workload: 9}", machine: subset, want: "which this machine does not have"},
		{name: "nothing pinned", text: "", machine: subset, note: "this process may use CPU 0-1 of 0-3"},
		{name: "nothing narrowed", text: "", machine: four},
		{name: "several isolated", text: "pinning: {workload: 1-2}", machine: isolated, note: "CPUs 1-2 of workload are isolated"},
		{name: "one isolated", text: "pinning: {workload: 2}", machine: isolated},
	} {
		t.Run(c.name, func(t *testing.T) {
			notes, err := mustParse(t, "p", "version: 1\n"+c.text+"\n").Check(c.machine)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if text := strings.Join(notes, "\n"); c.want == "" && (c.note == "" && strings.Contains(text, "may use") || !strings.Contains(text, c.note)) {
				t.Errorf("the notes are %q, want %q", notes, c.note)
			}
		})
	}
}
