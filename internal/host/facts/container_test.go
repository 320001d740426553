package facts

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// A virtual machine whose disk was made from an image of Docker has its mark, and the initial namespaces.
func TestMarkOfAnImage(t *testing.T) {
	for name, tt := range map[string]struct {
		change map[string]string
		want   string
	}{
		"initial namespaces":               {nil, ""},
		"PIDs of its own":                  {map[string]string{"proc/self/ns/pid": "pid:[4026532201]"}, "docker"},
		"a name of its own, with host PID": {map[string]string{"proc/self/ns/uts": "uts:[4026532200]"}, "docker"},
		"another link":                     {map[string]string{"proc/self/ns/uts": "mnt:[4026531838]"}, "docker"},
	} {
		root := t.TempDir()
		hosttest.Write(t, root, hosttest.Files{".dockerenv": "", "proc/self/ns/": ""})
		links := maps.Clone(initial)
		maps.Copy(links, tt.change)
		for link, number := range links {
			must.Do(t, os.Symlink(number, filepath.Join(root, link)))
		}
		if got := Container(root); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
