package footprint_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/linker/linkertest"
)

const x86 = elf.EM_X86_64

// tools is a host with programs outside of packages, in the directories of a user.
func tools(t *testing.T) string {
	root := unpack(t, debian, map[string]string{
		"etc/ld.so.conf": "# ours\ninclude ld.so.conf.d/*.conf\n", "etc/ld.so.conf.d/local.conf": "/opt/lib:/opt/more\n",
		"cache/crun":                           linkertest.File(x86, "/lib64/ld.so", "$ORIGIN/../own", "libown.so", "libyajl.so", "libc.so.6"),
		"own/libown.so":                        linkertest.File(x86, "", "", "libmore.so", "libown.so"), // it needs itself
		"opt/lib/libmore.so":                   linkertest.File(elf.EM_AARCH64, "", ""),                 // for another machine
		"opt/more/libmore.so.1":                linkertest.File(x86, "", "", "libc.so.6"),
		"usr/lib/libc.so.6":                    linkertest.File(x86, "", ""),
		"usr/lib/libyajl.so":                   linkertest.File(x86, "", ""),
		"usr/lib64/ld.so":                      linkertest.File(x86, "", ""),
		"cache/debian":                         linkertest.File(x86, "", "", "libmulti.so"),
		"usr/lib/x86_64-linux-gnu/libmulti.so": linkertest.File(x86, "", "", "libc.so.6"),
		"cache/broken":                         linkertest.File(x86, "/lib64/ld.so", "", "libnone.so"),
		"cache/no-interpreter":                 linkertest.File(x86, "/lib64/none.so", ""),
		"cache/cut-off":                        linkertest.File(x86, "/lib64/ld.so", "", "libc.so.6")[:100],
		"cache/other-machine":                  linkertest.File(elf.EM_AARCH64, "", "", "libc.so.6"),
		"cache/absolute":                       linkertest.File(x86, "", "", "/opt/more/libmore.so.1"),
		"cache/empty-directory":                linkertest.File(x86, "", ":", "libc.so.6"),
		"cache/script-of-nobody":               "#!   \n",
	})
	for name, to := range map[string]string{
		"lib64": "/usr/lib64", "opt/more/libmore.so": "libmore.so.1", "bin/tool": "/etc/alternatives/tool", "etc/alternatives/tool": "/cache/crun", "loop": "/loop",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, file); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLibraries(t *testing.T) {
	host := footprint.NewHost(tools(t), t.TempDir())
	for _, tt := range []struct {
		program              string
		unpackaged, packages []string
	}{
		{"/cache/crun", []string{"/cache/crun", "/opt/more/libmore.so.1", "/own/libown.so", "/usr/lib64/ld.so"}, []string{"gcc-base", "libc", "libgcc", "yajl"}},
		{"/usr/bin/tool", []string{"/cache/crun", "/opt/more/libmore.so.1", "/own/libown.so", "/usr/lib64/ld.so"}, []string{"gcc-base", "libc", "libgcc", "yajl"}},
		{"/cache/absolute", []string{"/cache/absolute", "/opt/more/libmore.so.1"}, []string{"gcc-base", "libc", "libgcc"}},
		{"/cache/debian", []string{"/cache/debian", "/usr/lib/x86_64-linux-gnu/libmulti.so"}, []string{"gcc-base", "libc", "libgcc"}},
		{"/cache/empty-directory", []string{"/cache/empty-directory"}, []string{"gcc-base", "libc", "libgcc"}},
	} {
		f, err := host.Of([]string{tt.program})
		if err != nil {
			t.Fatalf("%s: %v", tt.program, err)
		}
		if !slices.Equal(f.Unpackaged, tt.unpackaged) || !slices.Equal(names(f.Packages, all), tt.packages) {
			t.Errorf("%s has the files %q and the packages %q; want %q and %q", tt.program, f.Unpackaged, names(f.Packages, all), tt.unpackaged, tt.packages)
		}
		// runtime needs yajl, too.
		if added := names(f.Packages, added); len(added) > 0 {
			t.Errorf("%s adds the packages %q", tt.program, added)
		}
	}
}

func TestUnknownLibraries(t *testing.T) {
	host := footprint.NewHost(tools(t), t.TempDir())
	for program, want := range map[string]string{
		"/cache/broken":           "/cache/broken needs the library libnone.so, which is in none of /opt/lib, /opt/more, /lib/x86_64-linux-gnu, /usr/lib/x86_64-linux-gnu, /lib,",
		"/cache/no-interpreter":   "the interpreter of /cache/no-interpreter",
		"/cache/cut-off":          "/cache/cut-off",
		"/cache/other-machine":    "needs the library libc.so.6",
		"/cache/script-of-nobody": "the name of the interpreter is missing",
		"/loop":                   "too many levels of symbolic links",
	} {
		if _, err := host.Of([]string{program}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of %s is %v, want one with %q", program, err, want)
		}
	}
}
