package cri

import (
	"os"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestPlugins(t *testing.T) {
	captured, err := os.ReadFile("testdata/cniconfig-containerd-2.4.json")
	must.Do(t, err)
	for config, want := range map[string]string{
		string(captured):       "bridge",
		"":                     "",
		"[1]":                  "",
		`{"Networks": null}`:   "",
		`{"Networks": [{}]}`:   "",
		`{"Networks": {"a":1}`: "",
		`{"Networks": [{"Config": {"Plugins": [{"Network": {"type": "calico"}}, {"Network": {"type": "a\n b"}}]}}]}`: "calico, a b",
	} {
		if got := plugins(config); got != want {
			t.Errorf("the plug-ins in %.100s are %q, want %q", config, got, want)
		}
	}
}

func FuzzPlugins(f *testing.F) {
	captured, err := os.ReadFile("testdata/cniconfig-containerd-2.4.json")
	must.Do(f, err)
	f.Add(string(captured))
	f.Fuzz(func(_ *testing.T, config string) { plugins(config) })
}

func TestStorage(t *testing.T) {
	for dir, want := range map[string]string{
		"/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs": "the snapshotter overlayfs",
		"/var/lib/containerd/io.containerd.snapshotter.v1.native":    "the snapshotter native",
		"/var/lib/containers/storage/overlay-images":                 "the storage driver overlay",
		"/var/lib/other": "", "": "", "/": "",
	} {
		if got := storage(dir); got != want {
			t.Errorf("file systems in %q are of %q, want %q", dir, got, want)
		}
	}
}
