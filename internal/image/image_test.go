package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func TestProbe(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV}
	for _, arch := range architectures {
		binary, err := Probe(arch)
		must.Do(t, err)
		if len(binary) >= 100<<10 {
			t.Errorf("the probe for %s has %d bytes, want less than 100 KiB", arch, len(binary))
		}
		f, err := elf.NewFile(strings.NewReader(string(binary)))
		if err != nil {
			t.Fatalf("the probe for %s: %v", arch, err)
		}
		if want, ok := machines[arch]; !ok || f.Machine != want {
			t.Errorf("the probe for %s is for %v", arch, f.Machine)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("the probe for %s is not static: it has %v", arch, p.Type)
			}
		}
	}
}

func TestNoProbe(t *testing.T) {
	for _, arch := range []string{"m68k", "", "../image.go"} {
		_, err := Probe(arch)
		if !errors.Is(err, ErrNoProbe) || !strings.Contains(err.Error(), "architecture") {
			t.Errorf("Probe(%q): %v, want ErrNoProbe and the remedy", arch, err)
		}
		if _, err := Build(arch); !errors.Is(err, ErrNoProbe) {
			t.Errorf("Build(%q): %v, want ErrNoProbe", arch, err)
		}
	}
}

func TestWriteProbe(t *testing.T) {
	want, err := Probe(runtime.GOARCH)
	must.Do(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "probe")
	for range 2 {
		setUmask(t, 0o077)
		must.Do(t, WriteProbe(file))
		got, err := os.ReadFile(file)
		if err != nil || string(got) != string(want) {
			t.Errorf("the file has other content (%v)", err)
		}
		if info, err := os.Lstat(file); err != nil || info.Mode() != 0o755 {
			t.Errorf("mode %v, %v; want 0755", info.Mode(), err)
		}
	}
	// A running program cannot be overwritten, so WriteProbe must replace the file.
	cmd := exec.CommandContext(t.Context(), file, "ready")
	stdout, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	must.Do(t, err)
	if err := WriteProbe(file); err != nil {
		t.Errorf("while the probe runs: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory contains %v (%v), want only the probe", left, err)
	}
	if err := errors.Join(cmd.Process.Kill(), WriteProbe(filepath.Join(dir, "missing", "probe"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a missing directory: %v", err)
	}
	_ = cmd.Wait() // killed
}

func TestBuild(t *testing.T) {
	for _, arch := range architectures {
		t.Run(arch, func(t *testing.T) {
			image, err := Build(arch)
			must.Do(t, err)
			wantConsistent(t, image)
			second, err := Build(arch)
			must.Do(t, err)
			if one, two := digest(t, image), digest(t, second); one != two {
				t.Errorf("two builds have the digests %v and %v", one, two)
			}
			if media, err := image.MediaType(); err != nil || media != types.OCIManifestSchema1 {
				t.Errorf("media type %v, %v", media, err)
			}
			config, err := image.ConfigFile()
			must.Do(t, err)
			if config.OS != "linux" || config.Architecture != arch || len(config.History) != 1 {
				t.Errorf("config %+v", config)
			}
			if got := slices.Concat(config.Config.Entrypoint, config.Config.Cmd); !slices.Equal(got, probe.Pause()) {
				t.Errorf("without arguments the image runs %q, want pause", got)
			}
			if len(config.Config.Env) != 1 || !strings.HasPrefix(config.Config.Env[0], "PATH=/") {
				t.Errorf("environment %q, want a PATH", config.Config.Env)
			}
		})
	}
}

// wantConsistent follows the digests from the manifest to the layer's content.
func wantConsistent(t *testing.T, image v1.Image) {
	t.Helper()
	manifest, err := image.Manifest()
	must.Do(t, err)
	raw, err := image.RawConfigFile()
	must.Do(t, err)
	if hash, size, err := v1.SHA256(bytes.NewReader(raw)); err != nil || hash != manifest.Config.Digest || size != manifest.Config.Size {
		t.Errorf("the config has the digest %v and %d bytes (%v), want %+v", hash, size, err, manifest.Config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 || len(manifest.Layers) != 1 {
		t.Fatalf("%d layers (%v), %d in the manifest; want 1", len(layers), err, len(manifest.Layers))
	}
	must.Do(t, validate.Layer(layers[0]))
	if hash, err := layers[0].Digest(); err != nil || hash != manifest.Layers[0].Digest {
		t.Errorf("the layer has the digest %v (%v), want %v", hash, err, manifest.Layers[0].Digest)
	}
	config, err := image.ConfigFile()
	must.Do(t, err)
	if hash, err := layers[0].DiffID(); err != nil || len(config.RootFS.DiffIDs) != 1 || hash != config.RootFS.DiffIDs[0] {
		t.Errorf("the layer's content has the digest %v (%v), want %v", hash, err, config.RootFS.DiffIDs)
	}
}

func digest(t *testing.T, image v1.Image) v1.Hash {
	t.Helper()
	d, err := image.Digest()
	must.Do(t, err)
	return d
}

// WriteRootfs writes exactly the files of the image's layer.
func TestWriteRootfsIsTheLayer(t *testing.T) {
	image, err := Build(runtime.GOARCH)
	must.Do(t, err)
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v; want one", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	must.Do(t, err)
	want := map[string]file{}
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		b, err := io.ReadAll(r)
		must.Do(t, err)
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(Epoch()) {
			t.Errorf("%s has the owner %d:%d and the time %v", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		want[path.Clean(header.Name)] = file{header.FileInfo().Mode(), string(b)}
	}
	setUmask(t, 0o077)
	dir := filepath.Join(t.TempDir(), "rootfs")
	must.Do(t, WriteRootfs(t.Context(), dir))
	want["."] = file{mode: fs.ModeDir | 0o755}
	if got := filesIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
	for _, name := range []string{"probe", "proc", "dev", "sys", "tmp", "data", "etc/passwd", "etc/group"} {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is missing in the image", name)
		}
	}
}
