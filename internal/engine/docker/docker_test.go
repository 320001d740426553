package docker_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// targets go through the whole conformance suite; see enginetest.MustRun. The further ones go through the brief one.
var (
	targets = []string{"docker/runc", "docker/crun", "docker/runsc"}
	further = []string{"docker/youki", "docker/runsc@platform=systrap", "docker/runsc@platform=kvm", "docker/kata"}
)

// cellOf has the cells of the targets that run the whole suite only in some changes.
var cellOf = map[string]string{"docker/crun": "docker/crun"}

// remains lists the traces of the session's containers at the daemon behind a socket and on the host.
func remains(t *testing.T, s engine.Session, socket string) []string {
	t.Helper()
	left := enginetest.Leftovers(s)
	if s.Cgroups != nil {
		for _, m := range s.Cgroups.Mounts {
			// Docker names a container's cgroup by its own ID, and Kata puts kata_ before it.
			for _, prefix := range []string{"", "kata_"} {
				dirs, _ := filepath.Glob(filepath.Join(m.Dir, s.Cgroups.Base(), engine.Prefix+s.RunID, prefix+strings.Repeat("[0-9a-f]", 64)))
				for _, d := range dirs {
					left = append(left, "cgroup "+d)
				}
			}
		}
	}
	if _, err := os.Stat(socket); err != nil {
		return left // the daemon has stopped, and its objects with it
	}
	for _, name := range containers(t, socket) {
		if strings.Contains(name, s.RunID) {
			left = append(left, "container "+name)
		}
	}
	return left
}

// containers lists the containers of the daemon at a socket.
func containers(t *testing.T, socket string) []string {
	t.Helper()
	c := connect(t, socket)
	list, err := c.ContainerList(context.Background(), client.ContainerListOptions{All: true})
	must.Do(t, err)
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Names...)
	}
	slices.Sort(names)
	return names
}

func connect(t *testing.T, socket string) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost("unix://" + socket))
	must.Do(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// private returns a session with a private Docker daemon.
func private(t *testing.T) (engine.Session, string) {
	t.Helper()
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Managed = true
	return s, filepath.Join(s.State, "docker", "sock")
}

func TestConformance(t *testing.T) {
	names := slices.Concat(targets, further)
	enginetest.CheckMustRun(t, "docker", names...)
	s, socket := private(t)
	for _, name := range names {
		s.Targets = append(s.Targets, enginetest.Parse(t, name))
	}
	d := docker.NewDriver()
	enginetest.Hold(t, d, names[0], s) // the targets share the daemon, like in a run
	for n, name := range names {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			var gaps map[string]string
			if name == "docker/kata" {
				gaps = enginetest.GuestGaps()
				gaps["Limits"] = "Docker sets no limits on the host: Kata applies them in the guest"
			}
			enginetest.Conform(t, d, name, s, enginetest.Options{
				Host: enginetest.Open(t, native.Driver{}, target.Native, s),
				Limits: func(t *testing.T, parent, _ string) string { // of the only container
					return enginetest.Limits(t, s, parent+"/"+strings.Repeat("[0-9a-f]", 64))
				},
				Leftovers: func() []string { return remains(t, s, socket) }, Brief: n >= len(targets) || !cells.Whole(t, cellOf[name]),
				LateEvents: true, Gaps: gaps,
			})
		})
	}
}
