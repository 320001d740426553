// Package dist builds the files of a release twice, checks their contents, and installs the package in fresh root file systems of Debian. The package
// has only tests.
package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/record"
)

// tag is the version of the test's release. No real one has it.
const tag = "v999.0.0"

// run runs a program in a folder and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output), err
}

// mustRun is run for a program that must not fail.
func mustRun(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	output, err := run(t, dir, env, name, args...)
	must.Do(t, err)
	return output
}

// commit commits all changes of a clone, and moves the tag.
func commit(t *testing.T, dir string) {
	t.Helper()
	mustRun(t, dir, nil, "git", "add", "-A")
	mustRun(t, dir, nil, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "test")
	mustRun(t, dir, nil, "git", "tag", "-f", tag)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	must.Do(t, err)
	return text
}

// A release by hand refuses an incomplete one, and its files are those that another clone of the commit gives, elsewhere and with other settings.
//
// Invariant same-release: The same commit gives the same bytes of archives, packages, the container image and bills of materials.
func TestRelease(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("builds the files of a release twice, and a root file system; needs root")
	}
	base := t.TempDir()
	first, second := filepath.Join(base, "first"), filepath.Join(base, "elsewhere", "second")
	mustRun(t, ".", nil, "git", "-c", "safe.directory=*", "clone", "-q", "--no-tags", "../..", first)
	key := filepath.Join(base, "key")
	mustRun(t, base, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	architectures := []string{runtime.GOARCH}
	if cells.Runs(t, "dist/architectures") {
		architectures = []string{"amd64", "arm64", "riscv64"}
	}
	args := "ARGS=" + strings.Join(architectures, " ")
	refuse := func(reason string, env ...string) {
		t.Helper()
		if output, err := run(t, first, env, "scripts/release.sh"); err == nil || !strings.Contains(output, reason) {
			t.Errorf("the release was not refused with %q: %v\n%s", reason, err, output)
		}
	}
	refuse("exactly one tag")
	must.Do(t, os.WriteFile(filepath.Join(first, ".github/allowed_signers"), append([]byte(`release namespaces="touchstone" `), read(t, key+".pub")...), 0o644))
	refuse("the tree has changes")
	commit(t, first)
	refuse("RELEASE_KEY", "RELEASE_KEY=")
	refuse("no section ## [999.0.0]", "RELEASE_KEY="+key)
	changelog := filepath.Join(first, "CHANGELOG.md")
	must.Do(t, os.WriteFile(changelog, bytes.Replace(read(t, changelog), []byte("## ["), []byte("## [999.0.0] - 2026-01-01\n\nThe notes.\n\n## ["), 1), 0o644))
	commit(t, first)
	for _, name := range []string{"scripts/ci.sh", "templates/touchstone.yml"} {
		refuse(name+" has another version", "RELEASE_KEY="+key)
		file := filepath.Join(first, name)
		must.Do(t, os.WriteFile(file, regexp.MustCompile(`INPUT_VERSION:-[^}]*`).ReplaceAll(read(t, file), []byte("INPUT_VERSION:-v999.0.0")), 0o755))
		commit(t, first)
	}
	refuse("templates/touchstone.yml lacks a key", "RELEASE_KEY="+key)
	component := filepath.Join(first, "templates/touchstone.yml")
	must.Do(t, os.WriteFile(component, slices.Concat(read(t, component), []byte("# "), read(t, filepath.Join(first, ".github/allowed_signers"))), 0o644))
	commit(t, first)

	refuse("RELEASE_REPOSITORY", "RELEASE_KEY="+key, "PUBLISH=1", "RELEASE_REPOSITORY=")

	registries := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(registries.Close)
	repository := strings.TrimPrefix(registries.URL, "http://") + "/someone/touchstone"
	// The stand-in for GitHub's program records its arguments, one a line.
	bin := filepath.Join(base, "bin")
	must.Do(t, os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >'"+base+"/published'\n"), 0o755))
	output := mustRun(t, first, []string{"RELEASE_KEY=" + key, "PUBLISH=1", "RELEASE_REPOSITORY=" + repository, "PATH=" + bin + ":" + os.Getenv("PATH")}, "make", "release", args)
	if !strings.Contains(output, "The notes.") || strings.Contains(output, "Keep a Changelog") {
		t.Errorf("the release does not end with the notes of its version:\n%s", output)
	}
	mustRun(t, base, []string{"RELEASE_KEY=", "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "GOAMD64=v3", "GOFLAGS="},
		"bash", "-c", `umask 077; git clone -q "$1" "$2" && make -C "$2" dist "$3"`, "bash", first, second, args)
	files := filepath.Join(first, "dist")
	sums := read(t, filepath.Join(files, "SHA256SUMS"))
	if twin := read(t, filepath.Join(second, "dist/SHA256SUMS")); !bytes.Equal(sums, twin) {
		t.Errorf("another clone of the commit gives other files:\n%s\n%s", sums, twin)
	}
	if got, want := bytes.Count(sums, []byte("\n")), 4*len(architectures)+1; got != want {
		t.Errorf("SHA256SUMS has %d files, want %d:\n%s", got, want, sums)
	}
	t.Run("signature", func(t *testing.T) { testSignature(t, first) })
	for _, arch := range architectures {
		t.Run("files/"+arch, func(t *testing.T) { testFiles(t, files, arch) })
	}
	t.Run("published", func(t *testing.T) {
		testPublished(t, repository, string(read(t, filepath.Join(base, "published"))), output, architectures)
	})
	t.Run("container", func(t *testing.T) { testContainer(t, files) })
	t.Run("load", func(t *testing.T) { testLoad(t, files, architectures) })
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run("debian/"+suite, func(t *testing.T) { testDebian(t, files, suite) })
	}
}

// A changed list of digests, and a key of another, have no valid signature.
func testSignature(t *testing.T, clone string) {
	sums := read(t, filepath.Join(clone, "dist/SHA256SUMS"))
	verify := func(content []byte, signers string) error {
		cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-f", signers, "-I", "release", "-n", "touchstone", "-s",
			filepath.Join(clone, "dist/SHA256SUMS.sig"))
		cmd.Stdin = bytes.NewReader(content)
		return cmd.Run()
	}
	signers := filepath.Join(clone, ".github/allowed_signers")
	must.Do(t, verify(sums, signers))
	forgery := bytes.Clone(sums)
	forgery[0] ^= 1
	if err := verify(forgery, signers); err == nil {
		t.Error("a list with a changed byte has a valid signature")
	}
	dir := t.TempDir()
	stranger := filepath.Join(dir, "key")
	mustRun(t, dir, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger)
	must.Do(t, os.WriteFile(filepath.Join(dir, "signers"), append([]byte("release "), read(t, stranger+".pub")...), 0o644))
	if err := verify(sums, filepath.Join(dir, "signers")); err == nil {
		t.Error("the signature is valid for another key")
	}
}

// testFiles checks the archive, the packages and the bill of an architecture.
func testFiles(t *testing.T, dir, arch string) {
	name := "touchstone-" + tag + "-linux-" + arch
	contents := archive(t, filepath.Join(dir, name+".tar.gz"))
	for _, want := range []string{"touchstone", "LICENSE", "README.md", "CHANGELOG.md", "touchstone.spdx.json", "man/touchstone-benchmark.1.gz"} {
		if len(contents[name+"/"+want]) == 0 {
			t.Errorf("the archive has no %s", want)
		}
	}
	licences := contents[name+"/THIRD-PARTY-LICENSES"]
	for _, want := range []string{"==== Go ====\n\nCopyright 2009 The Go Authors", "==== github.com/spf13/cobra ====", "==== modernc.org/sqlite ===="} {
		if !bytes.Contains(licences, []byte(want)) {
			t.Errorf("the licences of others lack %q", want)
		}
	}
	for shell, want := range map[string]string{"bash": "bash completion V2 for touchstone", "zsh": "#compdef touchstone", "fish": "fish completion for touchstone"} {
		if !bytes.Contains(contents[name+"/completions/"+shell], []byte(want)) {
			t.Errorf("the completion of %s lacks %q", shell, want)
		}
	}
	testManual(t, contents[name+"/man/touchstone-compare.1.gz"])
	if arch == runtime.GOARCH {
		program := filepath.Join(t.TempDir(), "touchstone")
		must.Do(t, os.WriteFile(program, contents[name+"/touchstone"], 0o755))
		if output := mustRun(t, ".", nil, program, "version"); !strings.Contains(output, tag) {
			t.Errorf("the version is not %s:\n%s", tag, output)
		}
	}

	bill, err := json.Read(bytes.NewReader(read(t, filepath.Join(dir, name+".spdx.json"))))
	must.Do(t, err)
	must.Do(t, spdxlib.ValidateDocument(bill))
	if !slices.ContainsFunc(bill.Packages, func(p *spdx.Package) bool { return p.PackageName == "github.com/spf13/cobra" && p.PackageVersion != "" }) {
		t.Error("the bill lacks the module of the command line")
	}

	deb := filepath.Join(dir, "touchstone_999.0.0-1_"+arch+".deb")
	for field, want := range map[string]string{"Package": "touchstone", "Version": "999.0.0-1", "Architecture": arch, "Recommends": "runc", "License": "Apache-2.0"} {
		if got := strings.TrimSpace(mustRun(t, dir, nil, "dpkg-deb", "--field", deb, field)); got != want {
			t.Errorf("the field %s of the deb is %q, want %q", field, got, want)
		}
	}
	paths := mustRun(t, dir, nil, "dpkg-deb", "--contents", deb)
	for _, want := range []string{
		"./usr/bin/touchstone", "./usr/share/man/man1/touchstone.1.gz", "./usr/share/bash-completion/completions/touchstone",
		"./usr/share/zsh/vendor-completions/_touchstone", "./usr/share/fish/vendor_completions.d/touchstone.fish", "./usr/share/doc/touchstone/copyright",
	} {
		if !strings.Contains(paths, " "+want+"\n") {
			t.Errorf("the deb has no %s:\n%s", want, paths)
		}
	}

	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "riscv64": "riscv64"}[arch]
	header, err := rpmHeader(read(t, filepath.Join(dir, "touchstone-999.0.0-1."+machine+".rpm")))
	must.Do(t, err)
	date, err := time.Parse(time.RFC3339, bill.CreationInfo.Created)
	must.Do(t, err)
	for tag, want := range map[uint32]string{
		rpmName: "touchstone", rpmVersion: "999.0.0", rpmArch: machine, rpmBuildHost: "localhost", rpmBuildTime: strconv.FormatInt(date.Unix(), 10),
	} {
		if got := header[tag]; !slices.Equal(got, []string{want}) {
			t.Errorf("tag %d of the rpm is %q, want %q", tag, got, want)
		}
	}
	for _, want := range []string{"touchstone", "touchstone.1.gz", "_touchstone", "touchstone.fish"} {
		if !slices.Contains(header[rpmBaseNames], want) {
			t.Errorf("the rpm has no %s: %q", want, header[rpmBaseNames])
		}
	}
}

// archive returns the files of a compressed tar archive. Their owner is root, and no name leads out of the archive's folder.
func archive(t *testing.T, file string) map[string][]byte {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(read(t, file)))
	must.Do(t, err)
	contents := map[string][]byte{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return contents
		}
		must.Do(t, err)
		if header.Uid != 0 || header.Gid != 0 || !filepath.IsLocal(header.Name) {
			t.Errorf("the archive has %s of user %d and group %d", header.Name, header.Uid, header.Gid)
		}
		text, err := io.ReadAll(reader)
		must.Do(t, err)
		contents[header.Name] = text
	}
}

// testManual checks that a formatter has no warning about a manual page, and shows its parts. groff is in each Debian with man.
func testManual(t *testing.T, page []byte) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(page))
	must.Do(t, err)
	if _, err := exec.LookPath("groff"); err != nil {
		text, err := io.ReadAll(unzipped)
		must.Do(t, err)
		if !bytes.HasPrefix(text, []byte(".TH TOUCHSTONE")) {
			t.Errorf("the manual page begins with %q", text[:min(len(text), 40)])
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), "groff", "-man", "-Tutf8", "-ww", "-k")
	cmd.Stdin = unzipped
	var warnings bytes.Buffer
	cmd.Stderr = &warnings
	text, err := cmd.Output()
	must.Do(t, err)
	// A terminal prints a letter twice to make it bold.
	text = regexp.MustCompile(`.\x08`).ReplaceAll(text, nil)
	for _, part := range []string{"NAME", "USAGE", "EXAMPLES", "FLAGS", "EXIT CODES", "SEE ALSO"} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("the manual page shows no %s:\n%s", part, text)
		}
	}
	if warnings.Len() > 0 {
		t.Errorf("the manual page has warnings: %s", warnings.String())
	}
}

// testDebian installs the package in a fresh Debian, measures there with runc, and purges it, also after a killed run.
//
// Invariant purged-packages: A purge of the package removes all that the package and its killed runs left, and no other file.
func testDebian(t *testing.T, dir, suite string) {
	cells.Need(t, "dist/debian")
	need(t, "mmdebstrap")
	root := filepath.Join(t.TempDir(), "root")
	output := isolated(t, nil, "machine.sh", suite, root, filepath.Join(dir, "touchstone_999.0.0-1_"+runtime.GOARCH+".deb"))
	want := strings.Fields(string(read(t, root+".before")) + " /var/lib/touchstone /var/lib/touchstone/stranger")
	slices.Sort(want)
	if got := strings.Fields(string(read(t, root+".after"))); !slices.Equal(got, want) {
		t.Errorf("the paths after the purge are not those before the installation:\n%s\n%s", strings.Join(difference(got, want), "\n"), output)
	}
}

// need skips a test on a machine without a program.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			record.Skip(t, err.Error())
		}
	}
}

// isolated runs a script of testdata in new namespaces for mounts and processes, and in those that the options name. It returns the output.
func isolated(t *testing.T, options []string, script string, args ...string) string {
	t.Helper()
	need(t, "unshare")
	path, err := filepath.Abs(filepath.Join("testdata", script))
	must.Do(t, err)
	options = append([]string{"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"}, options...)
	return mustRun(t, t.TempDir(), nil, "unshare", slices.Concat(options, []string{path}, args)...)
}

// difference returns the paths that only one list has, with a sign.
func difference(got, want []string) (list []string) {
	for _, path := range got {
		if !slices.Contains(want, path) {
			list = append(list, "+ "+path)
		}
	}
	for _, path := range want {
		if !slices.Contains(got, path) {
			list = append(list, "- "+path)
		}
	}
	return list
}
