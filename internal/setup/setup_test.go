package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
)

// script is a program that prints a version.
func script(name, version string) string {
	return "#!/bin/sh\necho " + name + " version " + version + "\n"
}

// write is a build that writes a program.
func produce(name, version string) *Builder {
	return &Builder{Source: "example.com/" + name + "@v" + version, Digest: "h1:x=", Minutes: 1, Run: func(_ context.Context, w *work) error {
		return os.WriteFile(filepath.Join(w.bin, name), []byte(script(name, version)), 0o600)
	}}
}

func recipe(name, version string) Recipe {
	return Recipe{Name: name, Version: version, Least: version, Licence: "MIT", Programs: []string{name}, Build: produce(name, version)}
}

// newSetup returns a set-up with a store of its own and an empty PATH.
func newSetup(t *testing.T, recipes ...Recipe) *Setup {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	root := filepath.Join(dir, "runtimes")
	t.Setenv(parts.Variable, root)
	t.Setenv("PATH", filepath.Join(dir, "path"))
	must.Do(t, os.Mkdir(filepath.Join(dir, "path"), 0o755))
	return &Setup{
		Root: root, Recipes: recipes, Arch: runtime.GOARCH, Touchstone: "0.1.0", Client: http.DefaultClient, Step: func(string) {}, Wait: func() {},
		Try: func(context.Context, parts.Part) error { return nil },
		System: func(program string, dirs []string) (string, bool) {
			for _, dir := range append(parts.SystemPath(), dirs...) {
				if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
					return filepath.Join(dir, program), true
				}
			}
			return "", false
		},
	}
}

// addProgram puts a shell script on PATH.
func addProgram(t *testing.T, s *Setup, name, text string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(s.Root), "path", name)
	must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
	return path
}

// withShell lets the scripts on PATH find the system's programs.
func withShell(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/bin:/bin")
}

func install(t *testing.T, s *Setup, names ...string) error {
	t.Helper()
	items, err := s.Plan(t.Context(), names)
	must.Do(t, err)
	return s.Install(t.Context(), items)
}

// content lists the entries of a store, without the lock.
func content(t *testing.T, root string) (names []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil || name == "." || name == lockName:
			return err
		case e.Type() == fs.ModeSymlink:
			destination, _ := os.Readlink(path)
			name += " -> " + destination
		}
		names = append(names, name)
		return nil
	}))
	return names
}

func want(t *testing.T, root string, names ...string) {
	t.Helper()
	if diff := cmp.Diff(names, content(t, root)); diff != "" {
		t.Errorf("the store (-want +got):\n%s", diff)
	}
}

// TestInstall: a part is installed with its record, a second version replaces it in use, and the removal of that one brings it back.
func TestInstall(t *testing.T) {
	s := newSetup(t, recipe("runc", "1.5.2"), recipe("runc", "1.6.0"), recipe("crun", "1.21"))
	var trials []string
	s.Try = func(_ context.Context, part parts.Part) error {
		_, err := os.Stat(filepath.Join(part.Bin(), part.Name))
		trials = append(trials, part.String())
		return err
	}
	must.Do(t, install(t, s, "runc", "crun"))
	want(t, s.Root, "crun", "crun/1.21", "crun/1.21/bin", "crun/1.21/bin/crun", "crun/1.21/part.json", "crun/current -> 1.21",
		"runc", "runc/1.5.2", "runc/1.5.2/bin", "runc/1.5.2/bin/runc", "runc/1.5.2/part.json", "runc/current -> 1.5.2")
	part, err := parts.Read(filepath.Join(s.Root, "runc/1.5.2"))
	must.Do(t, err)
	sum, err := parts.Digest(filepath.Join(part.Bin(), "runc"))
	must.Do(t, err)
	if diff := cmp.Diff(parts.Part{
		Name: "runc", Version: "1.5.2", Licence: "MIT", Origin: parts.Origin{Kind: parts.Build, Source: "example.com/runc@v1.5.2", Digest: "h1:x="},
		Programs: []parts.Program{{Name: "runc", SHA256: sum}}, Touchstone: "0.1.0", Dir: part.Dir,
	}, part); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	for path, mode := range map[string]fs.FileMode{"runc": 0o755, "runc/1.5.2": 0o755, "runc/1.5.2/bin": 0o755, "runc/1.5.2/bin/runc": 0o755, "runc/1.5.2/part.json": 0o644} {
		if info, err := os.Stat(filepath.Join(s.Root, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
		}
	}
	must.Do(t, install(t, s, "runc@1.6.0"))
	must.Do(t, install(t, s, "crun"))
	if diff := cmp.Diff([]string{"runc@1.5.2", "crun@1.21", "runc@1.6.0"}, trials); diff != "" {
		t.Errorf("the trials (-want +got):\n%s", diff)
	}
	if link, _ := os.Readlink(filepath.Join(s.Root, "runc/current")); link != "1.6.0" {
		t.Errorf("in use is %s", link)
	}
	for _, c := range []struct {
		names    []string
		removals string
		current  string
	}{
		{[]string{"runc@1.6.0"}, "runc@1.6.0", "1.5.2"},
		{[]string{"runc"}, "runc@1.5.2", ""},
		{nil, "crun@1.21", ""},
		{nil, "", ""},
	} {
		removals, err := s.Remove(t.Context(), c.names)
		link, _ := os.Readlink(filepath.Join(s.Root, "runc/current"))
		if err != nil || strings.Join(removals, " ") != c.removals || link != c.current {
			t.Errorf("Remove(%q) = %q, %v, and in use is %q", c.names, removals, err, link)
		}
	}
	if _, err := os.Stat(s.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty store is left: %v", err)
	}
	if _, err := s.Remove(t.Context(), []string{"runc"}); err == nil || !strings.Contains(err.Error(), "runc is not installed; installed are: none") {
		t.Errorf("the removal of a missing part: %v", err)
	}
}

// TestRemoveKeepsStrangers: the directory of a user may have other files.
func TestRemoveKeepsStrangers(t *testing.T) {
	s := newSetup(t, recipe("runc", "1.5.2"))
	must.Do(t, install(t, s, "runc"), os.MkdirAll(filepath.Join(s.Root, "photos", "2026"), 0o755), os.MkdirAll(filepath.Join(s.Root, ".arm64", "runc"), 0o755))
	// A damaged part can be removed too.
	must.Do(t, os.Remove(filepath.Join(s.Root, "runc/1.5.2", parts.Record)))
	removals, err := s.Remove(t.Context(), nil)
	if err != nil || !slices.Equal(removals, []string{"runc@1.5.2"}) {
		t.Errorf("Remove = %q, %v", removals, err)
	}
	want(t, s.Root, "photos", "photos/2026")
}

// TestInterruptions: an interrupted or failed set-up leaves no part of its work, also if it ends at an unfavourable step.
//
// Invariant half-installed: A part is installed whole or not at all, however the set-up ends.
func TestInterruptions(t *testing.T) {
	errFault := errors.New("a fault")
	recipeOf := func(run func(ctx context.Context, w *work) error) Recipe {
		r := recipe("crun", "1.21")
		r.Build.Run = run
		return r
	}
	for name, c := range map[string]struct {
		recipe Recipe
		try    error
		want   string
	}{
		"a failed build":     {recipeOf(func(context.Context, *work) error { return errFault }), nil, "install crun@1.21: a fault"},
		"no program":         {recipeOf(func(context.Context, *work) error { return nil }), nil, "the program crun of example.com"},
		"another machine":    {recipeOf(func(_ context.Context, w *work) error { return foreignProgram(w) }), nil, "not for " + runtime.GOARCH},
		"a failed container": {recipe("crun", "1.21"), errFault, "no container runs with it, so it is not installed: a fault"},
		"a full disk": {recipeOf(func(context.Context, *work) error {
			return &fs.PathError{Op: "write", Path: "x", Err: os.NewSyscallError("", errNoSpace)}
		}), nil, "free some space of"},
		"a disk that is full": {func() Recipe { r := recipe("crun", "1.21"); r.Bytes = 1 << 60; return r }(), nil, "MB of free space, and it takes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, recipe("runc", "1.5.2"), c.recipe)
			must.Do(t, install(t, s, "runc"))
			files := content(t, s.Root)
			s.Try = func(context.Context, parts.Part) error { return c.try }
			if err := install(t, s, "crun"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			want(t, s.Root, files...)
		})
	}
	for _, place := range []string{"building crun@1.21", "run", "running a container with crun@1.21", "try"} {
		t.Run("^C at "+place, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := func(position string) error {
				if position == place {
					cancel(errFault)
				}
				return context.Cause(ctx)
			}
			r := recipe("crun", "1.21")
			run := r.Build.Run
			r.Build.Run = func(ctx context.Context, w *work) error { return errors.Join(run(ctx, w), stop("run")) }
			s := newSetup(t, r)
			s.Step = func(step string) { _ = stop(step) }
			s.Try = func(context.Context, parts.Part) error { return stop("try") }
			items, err := s.Plan(t.Context(), []string{"crun"})
			must.Do(t, err)
			if err := s.Install(ctx, items); !errors.Is(err, errFault) {
				t.Errorf("the error is %v", err)
			}
			want(t, s.Root)
		})
	}
}

// foreignProgram writes the header of a program for another machine.
func foreignProgram(w *work) error {
	header := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x16\x00\x01\x00\x00\x00") // IBM S/390
	return os.WriteFile(filepath.Join(w.bin, "crun"), append(header, make([]byte, 64)...), 0o600)
}

// TestTwoSetups: the second set-up waits for the first one, and then finds its part.
func TestTwoSetups(t *testing.T) {
	builds := 0
	r := recipe("crun", "1.21")
	run := r.Build.Run
	r.Build.Run = func(ctx context.Context, w *work) error { builds++; return run(ctx, w) }
	first := newSetup(t, r)
	second := *first
	isTrying, isWaiting, end := make(chan struct{}), make(chan struct{}), make(chan error)
	first.Try = func(context.Context, parts.Part) error {
		close(isTrying)
		<-isWaiting
		return nil
	}
	second.Wait = func() { close(isWaiting) }
	items, err := first.Plan(t.Context(), []string{"crun"})
	must.Do(t, err)
	go func() { end <- first.Install(t.Context(), items) }()
	<-isTrying
	must.Do(t, second.Install(t.Context(), items), <-end)
	if builds != 1 {
		t.Errorf("%d builds, want one", builds)
	}
	// A set-up that waits can be interrupted.
	l, err := first.lock(t.Context())
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	second.Wait = cancel
	if err := second.Install(ctx, items); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted wait: %v", err)
	}
	// The store may vanish meanwhile, with its lock.
	second.Wait = func() { must.Do(t, os.RemoveAll(first.Root)); l.Release() }
	must.Do(t, second.Install(t.Context(), items))
	if builds != 2 {
		t.Errorf("%d builds, want two", builds)
	}
}

// TestDamagedVersion: a damaged version is replaced.
func TestDamagedVersion(t *testing.T) {
	s := newSetup(t, recipe("crun", "1.21"))
	must.Do(t, install(t, s, "crun"))
	sound := content(t, s.Root)
	must.Do(t, os.Remove(filepath.Join(s.Root, "crun/1.21/bin/crun")))
	must.Do(t, install(t, s, "crun"))
	want(t, s.Root, sound...)
}

func TestNames(t *testing.T) {
	s := newSetup(t, Lock()...)
	for name, want := range map[string]string{
		"runcc":           `no part is named "runcc", did you mean runc?; the parts are runc, crun, youki, runsc, containerd, crio, kata`,
		"Youki":           "did you mean youki?",
		"cri-o":           "did you mean crio?",
		"contanierd":      "did you mean containerd?",
		"gvisor":          `no part is named "gvisor", did you mean runsc?`,
		"postgres":        `no part is named "postgres"; the parts are`,
		"":                `no part is named ""; the parts`,
		"containerd@1.0":  `no version "1.0" of containerd is known; known is 2.4.2, 1.7.35`,
		"runsc@../../etc": "no version",
	} {
		_, err := s.Plan(t.Context(), []string{name})
		if _, isUsage := errors.AsType[*UsageError](err); !isUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %q", name, err, want)
		}
	}
}

// TestSystemCopy: a recent copy of the system is enough, unless the user wants another one.
func TestSystemCopy(t *testing.T) {
	for version, c := range map[string]struct{ system, installs string }{
		"1.5.2":  {"yes", "1.5.2"},
		"1.10.0": {"yes", "1.5.2"},
		"1.5.1":  {"", "1.5.2"},
		"":       {"", "1.5.2"},
	} {
		s := newSetup(t, recipe("runc", "1.5.2"))
		path := addProgram(t, s, "runc", "[ -n '"+version+"' ] && echo runc version "+version+"\n")
		withShell(t)
		items, err := s.Plan(t.Context(), []string{"runc", "runc@1.5.2"})
		must.Do(t, err)
		if (items[0].System == path) != (c.system == "yes") || items[0].Err != nil || items[1].System != "" || items[1].Version != c.installs {
			t.Errorf("with runc %q: %+v", version, items)
		}
		gaps, err := s.Gaps(t.Context())
		must.Do(t, err)
		if (len(gaps) == 0) != (c.system == "yes") {
			t.Errorf("with runc %q the gaps are %+v", version, gaps)
		}
		s.Source = parts.Build
		if items, err = s.Plan(t.Context(), []string{"runc"}); err != nil || items[0].System != "" {
			t.Errorf("with --source: %+v, %v", items, err)
		}
		must.Do(t, s.Install(t.Context(), items))
		if gaps, err = s.Gaps(t.Context()); err != nil || len(gaps) > 0 {
			t.Errorf("after the installation: %+v, %v", gaps, err)
		}
	}
}

// TestNoSource: the error has the reason of each source, and an architecture without a build is one of them.
func TestNoSource(t *testing.T) {
	r := recipe("runc", "1.5.2")
	r.Build.Needs = []Need{needGo("1.25.0")}
	r.Package = "runc"
	s := newSetup(t, r, Lock()[len(Lock())-1])
	items, err := s.Plan(t.Context(), []string{"runc"})
	must.Do(t, err)
	const reasons = "runc@1.5.2 has no source here: this system has no APT; the lock has no release for %s; its build needs Go 1.25.0 or later, and go is not on PATH: install"
	if err := s.Install(t.Context(), items); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf(reasons, runtime.GOARCH)) {
		t.Errorf("the error is %v", err)
	}
	want(t, s.Root)
	if os.Geteuid() == 0 {
		if items, err = s.Plan(t.Context(), []string{"kata"}); err != nil || items[0].Err == nil || !strings.Contains(items[0].Err.Error(), "unpack kata-static") {
			t.Errorf("kata: %+v, %v", items, err)
		}
	}
	for arch, want := range map[string]string{"riscv64": "no build of it for riscv64", "arm64": "no build of it for arm64"} {
		s.Arch = arch
		if items, err = s.Plan(t.Context(), []string{"runc"}); err != nil || items[0].Err == nil || runtime.GOARCH != arch && !strings.Contains(items[0].Err.Error(), want) {
			t.Errorf("%s: %+v, %v", arch, items, err)
		}
	}
}

// TestForeign: programs for another architecture are not tried.
func TestForeign(t *testing.T) {
	r := recipe("runc", "1.5.2")
	r.Build.Crosses = true
	s := newSetup(t, r)
	s.Root, s.Arch = Store(s.Root, "riscv64", "amd64"), "riscv64"
	s.Try = func(context.Context, parts.Part) error { return errors.New("it was tried") }
	if runtime.GOARCH != s.Arch {
		must.Do(t, install(t, s, "runc"))
		want(t, filepath.Dir(s.Root), ".riscv64", ".riscv64/.lock", ".riscv64/runc", ".riscv64/runc/1.5.2", ".riscv64/runc/1.5.2/bin", ".riscv64/runc/1.5.2/bin/runc",
			".riscv64/runc/1.5.2/part.json", ".riscv64/runc/current -> 1.5.2")
	}
}
