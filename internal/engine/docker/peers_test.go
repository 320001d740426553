package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

const (
	peerLives     = 8           // in a batch
	peerLimit     = time.Minute // for one life
	peerMostApart = 0.10        // the largest relative difference of the lives
)

// TestLifeBesideDockerRun compares the whole life of a container, whose program exits at once, with docker run --rm. Both use
// the same private daemon, in alternating batches. The command line is a process of its own, which first queries the
// daemon's version. docker version does only that, so its time is subtracted.
func TestLifeBesideDockerRun(t *testing.T) {
	rounds := enginetest.PeerRounds(t)
	cli, err := exec.LookPath("docker")
	if err != nil {
		t.Skipf("the peer is missing: %v", err)
	}
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Managed = true
	runc := target.Target{Engine: name, Runtime: "runc"}
	s.Targets = []target.Target{runc}
	base, err := NewDriver().Open(t.Context(), runc, s)
	enginetest.Require(t, runc.String(), err)
	t.Cleanup(func() { enginetest.Check(t, base.Close()) })
	e, ok := base.(placer)
	if !ok {
		t.Skip("the daemon accepts no cgroup parent")
	}
	p := &peers{T: t, e: e.Engine, cli: cli, env: append(os.Environ(), "DOCKER_HOST="+e.host, "DOCKER_CONFIG="+t.TempDir())}

	side := func(name string, one func()) enginetest.Side {
		return enginetest.Side{Name: name, Batch: func() map[string][]float64 { return map[string][]float64{"": batch(one)} }}
	}
	samples := enginetest.TakeTurns(rounds, side("life", p.life), side("run", func() { p.docker(p.run()...) }), side("version", func() { p.docker("version") }))
	life, run, version := samples["life"][""], samples["run"][""], samples["version"][""]
	runs, versions := enginetest.ByRound(run), enginetest.ByRound(version)
	var difference []stats.Sample
	for round := 1; round <= rounds; round++ {
		difference = append(difference, stats.Sample{Block: round, Value: enginetest.Middle(runs[round]) - enginetest.Middle(versions[round])})
	}
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %d rounds of %d lives\tms\ttouchstone's ratio to it\n", e.Info().Version, rounds, peerLives)
	fmt.Fprintf(w, "touchstone, a whole life\t%.1f\t\n", 1e3*enginetest.Middle(life))
	_, toRun := enginetest.Ratio(run, life)
	fmt.Fprintf(w, "docker run --rm\t%.1f\t%s\n", 1e3*enginetest.Middle(run), toRun)
	fmt.Fprintf(w, "docker version\t%.1f\t\n", 1e3*enginetest.Middle(version))
	ratio, text := enginetest.Ratio(difference, life)
	fmt.Fprintf(w, "docker run --rm without docker version\t%.1f\t%s\n", 1e3*enginetest.Middle(difference), text)
	enginetest.Check(t, w.Flush())
	if ratio < 1-peerMostApart || ratio > 1+peerMostApart {
		t.Errorf("a life takes %s times as long as docker run without its own start; the limit is %.0f %%", text, 100*peerMostApart)
	}
}

// batch measures consecutive lives.
func batch(life func()) (seconds []float64) {
	for range peerLives {
		start := time.Now()
		life()
		seconds = append(seconds, time.Since(start).Seconds())
	}
	return seconds
}

// peers are the two clients of one daemon.
type peers struct {
	*testing.T
	e     *Engine
	cli   string
	env   []string // of the command line
	lives int
}

func (p *peers) spec() engine.Spec {
	p.lives++
	return engine.Spec{
		ID: fmt.Sprintf("%s%s-%05d", engine.Prefix, p.e.session.RunID, p.lives), Image: p.e.session.Registry.Probe(),
		Process: engine.Process{Args: probe.Exit(0), Stdout: io.Discard},
	}
}

// life runs one container through the engine.
func (p *peers) life() {
	ctx, cancel := context.WithTimeout(p.Context(), peerLimit)
	defer cancel()
	c, err := p.e.Create(ctx, p.spec())
	must.Do(p, err)
	must.Do(p, c.Start(ctx))
	if exit, err := c.Wait(ctx); err != nil || !exit.OK() {
		p.Fatalf("Wait = %v, %v", exit, err)
	}
	must.Do(p, c.Delete(ctx))
}

// run returns the arguments of docker run for the same container.
func (p *peers) run() []string {
	spec := p.spec()
	request := p.e.options(spec, p.e.group)
	args := []string{
		"run", "--rm", "--name", spec.ID, "--network", string(request.HostConfig.NetworkMode), "--runtime", request.HostConfig.Runtime,
		"--cgroup-parent", request.HostConfig.CgroupParent, "--workdir", request.Config.WorkingDir, "--read-only",
	}
	for dir, options := range request.HostConfig.Tmpfs {
		args = append(args, "--tmpfs", dir+":"+options)
	}
	for _, option := range request.HostConfig.SecurityOpt {
		args = append(args, "--security-opt", option)
	}
	args = append(args, "--entrypoint", spec.Process.Args[0], spec.Image)
	return append(args, spec.Process.Args[1:]...)
}

// docker runs the command line.
func (p *peers) docker(args ...string) {
	ctx, cancel := context.WithTimeout(p.Context(), peerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.cli, args...)
	cmd.Env = p.env
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := p.e.session.Launcher.Run(ctx, cmd); err != nil {
		p.Fatalf("docker %s: %v: %s", args[0], err, complaints.Bytes())
	}
}
