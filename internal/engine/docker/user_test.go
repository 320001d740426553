package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	api "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// user returns a session and the socket of a daemon that Touchstone did not start. The daemon is on the host's network, and has an image and
// a running container.
func user(t *testing.T) (engine.Session, string) {
	t.Helper()
	return userOf(t, enginetest.Session(t, oci.LauncherOptions), nil)
}

// userOf is user for a session, with changes to the configuration of the daemon.
func userOf(t *testing.T, s engine.Session, changes map[string]any) (engine.Session, string) {
	t.Helper()
	dockerd, err := exec.LookPath("dockerd")
	if err != nil {
		t.Skip("needs dockerd: ", err)
	}
	crun, err := exec.LookPath("crun")
	if err != nil {
		t.Skip("needs crun: ", err)
	}
	dir, data := filepath.Join(s.State, "user"), t.TempDir()
	must.Do(t, os.Mkdir(dir, 0o700))
	for _, parent := range []string{s.State, data, filepath.Dir(data)} { // for a daemon that maps users
		must.Do(t, os.Chmod(parent, 0o711))
	}
	socket := filepath.Join(dir, "sock")
	settings := map[string]any{
		"data-root": filepath.Join(data, "root"), "exec-root": filepath.Join(dir, "exec"), "pidfile": filepath.Join(dir, "pid"),
		"hosts": []string{"unix://" + socket}, "exec-opts": []string{"native.cgroupdriver=cgroupfs"},
		"bridge": "none", "iptables": false, "ip-forward": false, "cgroup-parent": "/touchstone-" + s.RunID + "/user",
		"deprecated-key-path": filepath.Join(data, "key.json"),
		"runtimes":            map[string]any{"slim": map[string]any{"path": crun, "runtimeArgs": []string{"--log-level=error"}}},
	}
	maps.Copy(settings, changes)
	config, err := json.Marshal(settings)
	must.Do(t, err)
	file := filepath.Join(dir, "daemon.json")
	must.Do(t, os.WriteFile(file, config, 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	must.Do(t, err)
	must.Do(t, s.RecordForeignDirs(docker.OptDirs...))
	cmd := exec.Command(dockerd, "--config-file", file)
	cmd.Stdout, cmd.Stderr = log, log
	done, err := s.Launcher.Start(cmd)
	_ = log.Close()
	must.Do(t, err)
	exitSignal := make(chan struct{})
	go func() {
		<-done
		close(exitSignal)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-exitSignal
		if _, err := engine.RemoveForeign(s.State); err != nil {
			t.Error(err)
		}
	})
	ready, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-exitSignal
		cancel()
	}()
	if err := docker.Listening(ready, socket); err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("%v: %s", err, text)
	}
	addUserContainer(t, s, connect(t, socket))
	s.Sockets = map[string]string{"docker": socket}
	return s, socket
}

// userContainer is the name of the user's own container, and of its image.
const userContainer = "user-container:latest"

// addUserContainer adds an image and a container to the user's daemon.
func addUserContainer(t *testing.T, s engine.Session, c *client.Client) {
	t.Helper()
	must.Do(t, s.Registry.ServeHost())
	response, err := c.ImagePull(t.Context(), s.Registry.Probe(), client.ImagePullOptions{})
	if err == nil {
		err = response.Wait(t.Context())
	}
	if err == nil {
		_, err = c.ImageTag(t.Context(), client.ImageTagOptions{Source: s.Registry.Probe(), Target: userContainer})
	}
	if err == nil {
		_, err = c.ImageRemove(t.Context(), s.Registry.Probe(), client.ImageRemoveOptions{})
	}
	must.Do(t, err)
	answer, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Name: "user-container", Config: &api.Config{Image: userContainer, Entrypoint: probe.Ready()},
		HostConfig: &api.HostConfig{NetworkMode: "none"},
	})
	if err == nil {
		_, err = c.ContainerStart(t.Context(), answer.ID, client.ContainerStartOptions{})
	}
	must.Do(t, err)
	t.Cleanup(func() {
		if _, err := c.ContainerRemove(context.WithoutCancel(t.Context()), answer.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
}

// inventory lists a daemon's objects, with the states of containers.
func inventory(t *testing.T, c *client.Client) (items []string) {
	t.Helper()
	ctx := t.Context()
	containers, err1 := c.ContainerList(ctx, client.ContainerListOptions{All: true})
	images, err2 := c.ImageList(ctx, client.ImageListOptions{All: true})
	networks, err3 := c.NetworkList(ctx, client.NetworkListOptions{})
	volumes, err4 := c.VolumeList(ctx, client.VolumeListOptions{})
	must.Do(t, errors.Join(err1, err2, err3, err4))
	for _, i := range containers.Items {
		items = append(items, fmt.Sprint("container ", i.ID, i.Names, i.State))
	}
	for _, i := range images.Items {
		items = append(items, fmt.Sprint("image ", i.ID, i.RepoTags))
	}
	for _, i := range networks.Items {
		items = append(items, fmt.Sprint("network ", i.ID, i.Name))
	}
	for _, i := range volumes.Items {
		items = append(items, fmt.Sprint("volume ", i.Name))
	}
	slices.Sort(items)
	return items
}

// A run changes only its own containers and images.
//
// Invariant foreign-objects.
func TestUsersDaemon(t *testing.T) {
	s, socket := user(t)
	c := connect(t, socket)
	baseline := inventory(t, c)
	driver := docker.NewDriver()

	var names []string
	for _, candidate := range driver.Candidates(t.Context(), s) {
		if candidate.Err == nil {
			names = append(names, candidate.Target.String())
		} else if candidate.Target.String() == "docker/crun" && !strings.Contains(candidate.Err.Error(), `it has `) {
			t.Errorf("the daemon does not know crun, but the candidate's error is %v", candidate.Err)
		}
	}
	if !slices.Contains(names, "docker/runc") || !slices.Contains(names, "docker/slim") || slices.Contains(names, "docker/crun") {
		t.Errorf("candidates are %q; want docker/runc and docker/slim among them, and not docker/crun", names)
	}

	_, err := driver.Open(t.Context(), enginetest.Parse(t, "docker/crun"), s)
	for _, want := range []string{"does not know the runtime crun", "slim", "daemon.json", `{"crun": {"path": "/`} {
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("open docker/crun: %v; want a refusal with %q", err, want)
		}
	}
	_, err = driver.Open(t.Context(), enginetest.Parse(t, "docker/slim@log-level=debug"), s)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), `"runtimeArgs": ["--log-level=debug"]`) {
		t.Errorf("open docker/slim@log-level=debug: %v; want a refusal with the configuration to add", err)
	}

	for _, name := range []string{"docker/runc", "docker/slim", "docker/slim@log-level=error"} {
		e := enginetest.Open(t, driver, name, s)
		if p, ok := e.(engine.CgroupPlacer); !ok {
			t.Errorf("%s is no CgroupPlacer although the daemon's cgroup driver is cgroupfs", name)
		} else if err := p.SetCgroupParent("/" + engine.Prefix + s.RunID + "/trial"); err != nil {
			t.Error(err)
		}
		if !strings.Contains(e.Info().Version, "Docker ") || !strings.Contains(e.Info().Version, "run version ") && !strings.Contains(e.Info().Version, "runc version ") {
			t.Errorf("the version of %s is %q", name, e.Info().Version)
		}
		if err := e.Supports(engine.NetworkBridge); !engine.Unsupported(err) || !strings.Contains(err.Error(), "the daemon's network bridge") {
			t.Errorf("%s, whose daemon has no bridge: Supports(%s) = %v", name, engine.NetworkBridge, err)
		}
		sp := enginetest.Spec(s, "beside")
		sp.Network = engine.HostNet
		one := enginetest.Running(t, e, sp)
		if got := inventory(t, c); len(got) <= len(baseline) {
			t.Errorf("with the run's container the daemon has %q", got)
		}
		sp.ID = "user-container"
		if _, err := e.Create(t.Context(), sp); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("Create with the name of the user's container: %v", err)
		}
		enginetest.Check(t, errors.Join(one.Delete(t.Context()), e.Close()))
		if state := inventory(t, c); !slices.Equal(state, baseline) {
			t.Errorf("after %s the daemon has %q, and had %q", name, state, baseline)
		}
	}
}
