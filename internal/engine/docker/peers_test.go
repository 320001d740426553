package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// peerRounds is the environment variable with the number of rounds of the comparison. The comparison takes minutes and is
// meaningless on a busy machine, so it is skipped without the variable.
const peerRounds = "TOUCHSTONE_PEER_ROUNDS"

const (
	peerLives     = 8           // in a batch
	peerLimit     = time.Minute // for one life
	peerMostApart = 0.10        // the largest relative difference of the lives
)

// TestLifeBesideDockerRun compares the whole life of a container, whose program exits at once, with docker run --rm. Both use
// the same private daemon, in alternating batches. The command line is a process of its own, which first queries the
// daemon's version. docker version does only that, so its time is subtracted.
func TestLifeBesideDockerRun(t *testing.T) {
	rounds := peerRoundsOf(t)
	cli, err := exec.LookPath("docker")
	if err != nil {
		t.Skipf("the peer is missing: %v", err)
	}
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Managed = true
	runc := target.Target{Engine: name, Runtime: "runc"}
	s.Targets = []target.Target{runc}
	opened, err := NewDriver().Open(t.Context(), runc, s)
	enginetest.Require(t, runc.String(), err)
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	e, ok := opened.(placer)
	if !ok {
		t.Skip("the daemon accepts no cgroup parent")
	}
	p := &peers{T: t, e: e.Engine, cli: cli, env: append(os.Environ(), "DOCKER_HOST="+e.host, "DOCKER_CONFIG="+t.TempDir())}

	var life, run, version, difference []stats.Sample
	sides := []func(round int){
		func(round int) { life = append(life, batch(round, p.life)...) },
		func(round int) { run = append(run, batch(round, func() { p.docker(p.run()...) })...) },
		func(round int) { version = append(version, batch(round, func() { p.docker("version") })...) },
	}
	for round := range rounds + 1 {
		for i := range sides {
			sides[(i+round)%len(sides)](round)
		}
		if round == 0 { // to warm up
			life, run, version = nil, nil, nil
			continue
		}
		difference = append(difference, stats.Sample{Block: round, Value: medianOf(run, round) - medianOf(version, round)})
	}
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %d rounds of %d lives\tms\ttouchstone's ratio to it\n", e.Info().Version, rounds, peerLives)
	fmt.Fprintf(w, "touchstone, a whole life\t%.1f\t\n", 1e3*medianOf(life))
	fmt.Fprintf(w, "docker run --rm\t%.1f\t%s\n", 1e3*medianOf(run), spell(stats.Compare(run, life, stats.Lower, 1)))
	fmt.Fprintf(w, "docker version\t%.1f\t\n", 1e3*medianOf(version))
	c := stats.Compare(difference, life, stats.Lower, 1)
	fmt.Fprintf(w, "docker run --rm without docker version\t%.1f\t%s\n", 1e3*medianOf(difference), spell(c))
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	if c.Ratio < 1-peerMostApart || c.Ratio > 1+peerMostApart {
		t.Errorf("a life takes %s times as long as docker run without its own start; the limit is %.0f %%", spell(c), 100*peerMostApart)
	}
}

func peerRoundsOf(t *testing.T) int {
	t.Helper()
	text := os.Getenv(peerRounds)
	if text == "" {
		t.Skipf("takes minutes on a quiet machine: set %s to the number of rounds", peerRounds)
	}
	rounds, err := strconv.Atoi(text)
	if err != nil || rounds < 1 {
		t.Fatalf("%s=%s is not a number of rounds", peerRounds, text)
	}
	return rounds
}

// batch measures consecutive lives.
func batch(round int, life func()) []stats.Sample {
	var all []stats.Sample
	for range peerLives {
		began := time.Now()
		life()
		all = append(all, stats.Sample{Block: round, Value: time.Since(began).Seconds()})
	}
	return all
}

// medianOf is the median of all samples, or of the samples of some rounds.
func medianOf(samples []stats.Sample, rounds ...int) float64 {
	var values []float64
	for _, s := range samples {
		if len(rounds) == 0 || s.Block == rounds[0] {
			values = append(values, s.Value)
		}
	}
	return stats.Summarize(values, 1).Median
}

// spell formats a ratio, with its interval if there are enough rounds.
func spell(c stats.Comparison) string {
	if c.CI == nil {
		return fmt.Sprintf("%.2f", c.Ratio)
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", c.Ratio, c.CI.Lo, c.CI.Hi)
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
		Process: engine.Process{Args: workload.Exit(0), Stdout: io.Discard},
	}
}

// life runs one container through the engine.
func (p *peers) life() {
	ctx, cancel := context.WithTimeout(p.Context(), peerLimit)
	defer cancel()
	c, err := p.e.Create(ctx, p.spec())
	if err != nil {
		p.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		p.Fatal(err)
	}
	if exit, err := c.Wait(ctx); err != nil || !exit.OK() {
		p.Fatalf("Wait = %v, %v", exit, err)
	}
	if err := c.Delete(ctx); err != nil {
		p.Fatal(err)
	}
}

// run returns the arguments of docker run for the same container.
func (p *peers) run() []string {
	spec := p.spec()
	asked := p.e.options(spec, p.e.group)
	args := []string{
		"run", "--rm", "--name", spec.ID, "--network", string(asked.HostConfig.NetworkMode), "--runtime", asked.HostConfig.Runtime,
		"--cgroup-parent", asked.HostConfig.CgroupParent, "--workdir", asked.Config.WorkingDir, "--read-only",
	}
	for dir, options := range asked.HostConfig.Tmpfs {
		args = append(args, "--tmpfs", dir+":"+options)
	}
	for _, option := range asked.HostConfig.SecurityOpt {
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
