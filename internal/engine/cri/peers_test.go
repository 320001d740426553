package cri

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

const (
	peerLives     = 8               // in a batch of the lifecycle
	peerSpan      = 5 * time.Second // of a batch of the rate
	peerLimit     = time.Minute     // for a batch of anything
	peerMostApart = 0.10            // by which the lifecycle may differ
	peerLeastRate = 0.95            // of the rate of containerd-stress
)

// peerLab is a private containerd with a target of ours.
type peerLab struct {
	*testing.T
	session engine.Session
	opened  engine.Engine
	service *service
	handler string
	rounds  int
}

// newPeerLab starts containerd for a comparison with a program that is on PATH.
func newPeerLab(t *testing.T, program string) *peerLab {
	t.Helper()
	rounds := enginetest.PeerRounds(t)
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("there is nothing to compare with: %v", err)
	}
	l := &peerLab{T: t, session: enginetest.Session(t, oci.LauncherOptions), rounds: rounds}
	l.session.Managed = true
	runcTarget := target.Target{Engine: "containerd", Runtime: "runc"}
	l.session.Targets = []target.Target{runcTarget}
	baseline := peerCgroups()
	runcEngine, err := NewContainerd().Open(t.Context(), runcTarget, l.session)
	enginetest.Require(t, runcTarget.String(), err)
	t.Cleanup(func() {
		enginetest.Check(t, runcEngine.Close())
		// Peers leave the choice of the cgroup to containerd, which leaves the parent behind.
		for _, dir := range peerCgroups() {
			if !slices.Contains(baseline, dir) {
				enginetest.Check(t, os.Remove(dir))
			}
		}
	})
	l.opened = runcEngine
	e, ok := runcEngine.(withBoth)
	if !ok {
		t.Skip("containers cannot be given cgroups here")
	}
	l.service, l.handler = e.service, e.handler.name
	return l
}

// peerCgroups lists containerd's default cgroups.
func peerCgroups() []string {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/k8s.io")
	v2, _ := filepath.Glob("/sys/fs/cgroup/k8s.io")
	return append(v1, v2...)
}

// run runs a peer's program and returns its output.
func (l *peerLab) run(program string, args ...string) (out, complaints []byte) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), peerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := l.session.Launcher.Run(ctx, cmd); err != nil {
		l.Fatalf("%v: %s%s", err, stderr.Bytes(), stdout.Bytes())
	}
	return stdout.Bytes(), stderr.Bytes()
}

// measure runs trials of a benchmark, as in any run.
func (l *peerLab) measure(name string, overrides bench.Params, trials int) []result.Trial {
	l.Helper()
	b, _ := catalogue.Catalogue{}.Lookup(name)
	params, err := b.Resolve(overrides, false)
	must.Do(l, err)
	programs := runtimes.Programs()
	for _, d := range []engine.Driver{NewContainerd(), NewCRIO()} {
		programs.Add(d.Describe().Programs)
	}
	var results []result.Trial
	_, err = runner.Run(l.Context(), runner.Config{
		RunID: l.session.RunID, Seed: 1, Data: l.session.Data, Registry: l.session.Registry,
		Images: map[bench.Image]runner.Image{bench.ProbeImage: {Rootfs: l.session.Rootfs, Ref: l.session.Registry.Probe()}},
		Work:   []plan.Work{{Benchmark: b, Params: params}}, Targets: []runner.Target{{Name: l.opened.Info().Target.String(), Engine: l.opened}},
		Stop: stats.StopRule{Min: trials}, TrialLimit: peerLimit, CallLimit: peerLimit,
		Clock: meter.System{}, Cgroups: l.session.Cgroups, Programs: programs, Noise: unwatched{}, Observer: unwatched{},
		Record: func(t result.Trial) error {
			if t.Status != result.OK {
				return fmt.Errorf("%s: %s", t.Status, t.Reason)
			}
			results = append(results, t)
			return nil
		},
	})
	must.Do(l, err)
	return results
}

// unwatched is an observer that ignores a run's events.
type unwatched struct{}

func (unwatched) Started(result.Trial, runner.Progress) {}
func (unwatched) Ended(result.Trial)                    {}
func (unwatched) Begin() func([]bench.Medium) result.Disturbance {
	return func([]bench.Medium) result.Disturbance { return result.Disturbance{} }
}

// The names of the sides.
const (
	ours       = "touchstone"
	theirs     = "critest"
	likeTheirs = "touchstone, critest's requests"
	whole      = "all of them"
)

// criSteps are the steps of both sides, in their order.
var criSteps = []string{
	"RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox",
}

// TestLifecycleBesideCritest compares the steps of operations.container.lifecycle with the times of critest -benchmark for the
// same calls. The two make different pods. A third side makes critest's requests with our client, and so separates the
// effect of the requests from the effect of the measurement.
func TestLifecycleBesideCritest(t *testing.T) {
	l := newPeerLab(t, "critest")
	top := l.publishTop()
	samples := enginetest.TakeTurns(l.rounds,
		enginetest.Side{Name: ours, Batch: func() map[string][]float64 {
			steps := map[string][]float64{}
			for _, trial := range l.measure("operations.container.lifecycle", nil, peerLives) {
				for _, name := range criSteps {
					steps[name] = append(steps[name], trial.Values(name)...)
				}
			}
			return steps
		}},
		enginetest.Side{Name: theirs, Batch: func() map[string][]float64 { return l.critest(top) }},
		enginetest.Side{Name: likeTheirs, Batch: func() map[string][]float64 { return l.likeCritest(top) }},
	)
	for _, steps := range samples {
		steps[whole] = sums(steps)
	}
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %d rounds of %d lives\ttouchstone ms\tcritest ms\tratio\tratio with critest's requests\n",
		l.opened.Info().Version, l.rounds, peerLives)
	for _, name := range append(slices.Clone(criSteps), whole) {
		if len(samples[ours][name]) == 0 || len(samples[theirs][name]) == 0 {
			t.Fatalf("there is no %s", name)
		}
		_, asWeDo := enginetest.Ratio(samples[theirs][name], samples[ours][name])
		_, likeness := enginetest.Ratio(samples[theirs][name], samples[likeTheirs][name])
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%s\t%s\n", name, 1e3*enginetest.Middle(samples[ours][name]), 1e3*enginetest.Middle(samples[theirs][name]), asWeDo, likeness)
	}
	enginetest.Check(t, w.Flush())
	if got, text := enginetest.Ratio(samples[theirs][whole], samples[likeTheirs][whole]); got < 1-peerMostApart || got > 1+peerMostApart {
		t.Errorf("the same requests take us %s times as long as critest, more than %.0f %% apart", text, 100*peerMostApart)
	}
}

// sums adds up the medians of the steps in each round.
func sums(steps map[string][]stats.Sample) []stats.Sample {
	byRound := map[int]float64{}
	for _, samples := range steps {
		for round, values := range enginetest.ByRound(samples) {
			byRound[round] += enginetest.Middle(values)
		}
	}
	var samples []stats.Sample
	for _, round := range slices.Sorted(maps.Keys(byRound)) {
		samples = append(samples, stats.Sample{Block: round, Value: byRound[round]})
	}
	return samples
}

// topSource is critest's program. It waits for SIGTERM, also as the first process of a PID namespace.
const topSource = `#include <signal.h>
int main(void)
{
	sigset_t set;
	int number;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, 0);
	return sigwait(&set, &number);
}
`

// publishTop makes critest's image, with a program named top, and has containerd pull it.
func (l *peerLab) publishTop() string {
	l.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		l.Skipf("critest needs an image with a program, and the compiler for it is missing: %v", err)
	}
	dir := l.TempDir()
	source, binary := filepath.Join(dir, "top.c"), filepath.Join(dir, "top")
	must.Do(l, os.WriteFile(source, []byte(topSource), 0o600))
	l.run("gcc", "-static", "-Os", "-s", "-o", binary, source)
	program, err := os.ReadFile(binary)
	must.Do(l, err)
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/top", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	must.Do(l, errors.Join(err, w.Close()))
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
	must.Do(l, err)
	base, err := image.Build(runtime.GOARCH)
	if err == nil {
		base, err = mutate.AppendLayers(base, layer)
	}
	must.Do(l, err)
	ref, err := l.session.Registry.Publish(l.Context(), "top:latest", base)
	if err == nil {
		err = l.service.pull(l.Context(), ref)
	}
	must.Do(l, err)
	return ref
}

// critestSteps maps critest's files to our names of steps.
var critestSteps = map[string]map[string]string{
	"container_benchmark_data.json": {
		"CreateContainer": "CreateContainer", "StartContainer": "StartContainer", "StopContainer": "StopContainer", "RemoveContainer": "RemoveContainer",
	},
	"pod_benchmark_data.json": {"CreatePod": "RunPodSandbox", "StopPod": "StopPodSandbox", "RemovePod": "RemovePodSandbox"},
}

// critest runs critest for one batch.
func (l *peerLab) critest(top string) map[string][]float64 {
	l.Helper()
	dir := l.TempDir()
	files := map[string]string{
		"images.yaml": fmt.Sprintf("defaultTestContainerImage: %s\n", top),
		"params.yaml": fmt.Sprintf("containersNumber: %d\npodsNumber: %[1]d\n", peerLives),
	}
	must.Do(l, managed.WriteFiles(dir, files))
	l.run("critest", "-benchmark", "-ginkgo.skip", "benchmark about operations on Image|from scratch",
		"-config", filepath.Join(dir, "none"), "-runtime-endpoint", "unix://"+l.service.socket, "-runtime-handler", l.handler,
		"-test-images-file", filepath.Join(dir, "images.yaml"), "-benchmarking-params-file", filepath.Join(dir, "params.yaml"),
		"-benchmarking-output-dir", dir)
	steps := map[string][]float64{}
	for file, names := range critestSteps {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			l.Fatalf("critest wrote no result: %v", err)
		}
		var output struct {
			OperationsNames []string
			Datapoints      []struct{ OperationsDurationsNs []int64 }
		}
		if err := json.Unmarshal(text, &output); err != nil {
			l.Fatalf("read critest's result: %v", err)
		}
		if len(output.Datapoints) != peerLives {
			l.Fatalf("critest measured %d lives instead of %d", len(output.Datapoints), peerLives)
		}
		for _, point := range output.Datapoints {
			for i, ns := range point.OperationsDurationsNs {
				if name, ok := names[output.OperationsNames[i]]; ok {
					steps[name] = append(steps[name], time.Duration(ns).Seconds())
				}
			}
		}
	}
	return steps
}

// timed makes a request, and adds its duration to a step. A step without a name is not measured.
func timed[Q, A any](l *peerLab, steps map[string][]float64, name string, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) A {
	l.Helper()
	start := time.Now()
	answer, err := call(l.Context(), request)
	took := time.Since(start)
	if err != nil {
		l.Fatalf("%s: %v", name, err)
	}
	if name != "" {
		steps[name] = append(steps[name], took.Seconds())
	}
	return answer
}

// likeCritest measures one batch of critest's own requests: first containers, then pods without one.
func (l *peerLab) likeCritest(top string) map[string][]float64 {
	l.Helper()
	s := l.service
	steps := map[string][]float64{}
	runPod := func(name string, config *api.PodSandboxConfig) string {
		return timed(l, steps, name, s.RunPodSandbox, &api.RunPodSandboxRequest{Config: config, RuntimeHandler: l.handler}).GetPodSandboxId()
	}
	removePod := func(stop, remove, id string) {
		timed(l, steps, stop, s.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: id})
		timed(l, steps, remove, s.RemovePodSandbox, &api.RemovePodSandboxRequest{PodSandboxId: id})
	}
	// critest looks for the image within the step.
	create := func(ctx context.Context, request *api.CreateContainerRequest, _ ...grpc.CallOption) (*api.CreateContainerResponse, error) {
		if _, err := s.images.ImageStatus(ctx, &api.ImageStatusRequest{Image: &api.ImageSpec{Image: top}}); err != nil {
			return nil, err
		}
		return s.CreateContainer(ctx, request)
	}
	for n := range peerLives {
		config := peerPod("critest", n)
		pod := runPod("", config)
		id := timed(l, steps, "CreateContainer", create, &api.CreateContainerRequest{
			PodSandboxId: pod, SandboxConfig: config, Config: &api.ContainerConfig{
				Metadata: &api.ContainerMetadata{Name: "top", Attempt: 2},
				Image:    imageSpec(top), Command: []string{"top"}, Linux: &api.LinuxContainerConfig{},
			},
		}).GetContainerId()
		timed(l, steps, "StartContainer", s.StartContainer, &api.StartContainerRequest{ContainerId: id})
		timed(l, steps, "", s.ContainerStatus, &api.ContainerStatusRequest{ContainerId: id, Verbose: true})
		timed(l, steps, "StopContainer", s.StopContainer, &api.StopContainerRequest{ContainerId: id, Timeout: 60})
		timed(l, steps, "RemoveContainer", s.RemoveContainer, &api.RemoveContainerRequest{ContainerId: id})
		removePod("", "", pod)
	}
	for n := range peerLives {
		pod := runPod("RunPodSandbox", peerPod("critest", n))
		timed(l, steps, "", s.PodSandboxStatus, &api.PodSandboxStatusRequest{PodSandboxId: pod, Verbose: true})
		removePod("StopPodSandbox", "RemovePodSandbox", pod)
	}
	return steps
}

// peerPod is a pod as in the peers' requests, with a name of its own.
func peerPod(name string, n int) *api.PodSandboxConfig {
	id := fmt.Sprintf("%s-%d", name, n)
	return &api.PodSandboxConfig{
		Metadata: &api.PodSandboxMetadata{Name: id, Uid: id, Namespace: name}, Linux: &api.LinuxPodSandboxConfig{},
	}
}

// TestRateBesideStress compares the rate of pods by our client with the rate by containerd-stress, which makes the same
// calls. It also prints the rate of whole lives, as scalability.rate reports it.
func TestRateBesideStress(t *testing.T) {
	l := newPeerLab(t, "containerd-stress")
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %d rounds of %v\ttouchstone pods/s\tcontainerd-stress pods/s\tratio\twhole lives/s\n", l.opened.Info().Version, l.rounds, peerSpan)
	for _, workers := range []int{1, 4, 8} {
		one := func(rate float64) map[string][]float64 { return map[string][]float64{"rate": {rate}} }
		samples := enginetest.TakeTurns(l.rounds,
			enginetest.Side{Name: ours, Batch: func() map[string][]float64 { return one(l.podRate(workers)) }},
			enginetest.Side{Name: theirs, Batch: func() map[string][]float64 { return one(l.stressRate(workers)) }},
			enginetest.Side{Name: whole, Batch: func() map[string][]float64 {
				lives := bench.Params{"lives": strconv.Itoa(4 * workers)}
				return one(l.measure("scalability.rate."+strconv.Itoa(workers), lives, 1)[0].Values("Rate")[0])
			}},
		)
		got, text := enginetest.Ratio(samples[theirs]["rate"], samples[ours]["rate"])
		fmt.Fprintf(w, "%d workers\t%.2f\t%.2f\t%s\t%.2f\n", workers,
			enginetest.Middle(samples[ours]["rate"]), enginetest.Middle(samples[theirs]["rate"]), text, enginetest.Middle(samples[whole]["rate"]))
		if got < peerLeastRate {
			t.Errorf("with %d workers we reach %s of the rate of containerd-stress, less than %.2f", workers, text, peerLeastRate)
		}
	}
	enginetest.Check(t, w.Flush())
}

// podRate returns pods per second. As with containerd-stress, pods that are under way at the deadline count, and so does the
// time until the last one is removed.
func (l *peerLab) podRate(workers int) float64 {
	l.Helper()
	pods, errs := make([]int, workers), make([]error, workers)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for time.Since(start) < peerSpan && errs[i] == nil {
				errs[i] = l.pod(fmt.Sprintf("rate-%d", i), pods[i])
				pods[i]++
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	must.Do(l, errors.Join(errs...))
	total := 0
	for _, n := range pods {
		total += n
	}
	return float64(total) / took.Seconds()
}

// pod makes a pod and removes it.
func (l *peerLab) pod(name string, n int) error {
	answer, err := l.service.RunPodSandbox(l.Context(), &api.RunPodSandboxRequest{Config: peerPod(name, n), RuntimeHandler: l.handler})
	if err == nil {
		_, err = l.service.StopPodSandbox(l.Context(), &api.StopPodSandboxRequest{PodSandboxId: answer.GetPodSandboxId()})
	}
	if err == nil {
		_, err = l.service.RemovePodSandbox(l.Context(), &api.RemovePodSandboxRequest{PodSandboxId: answer.GetPodSandboxId()})
	}
	return err
}

// stressRate runs containerd-stress.
func (l *peerLab) stressRate(workers int) float64 {
	l.Helper()
	output, complaints := l.run("containerd-stress", "--address", "unix://"+l.service.socket, "--cri", "--runtime", l.handler,
		"--concurrent", strconv.Itoa(workers), "--duration", peerSpan.String(), "--json")
	var answer struct{ ContainersPerSecond float64 }
	// It counts failures, reports none, and logs them.
	if err := json.Unmarshal(output, &answer); err != nil || bytes.Contains(complaints, []byte("level=error")) {
		l.Fatalf("containerd-stress did not work (%v): %s%s", err, output, complaints)
	}
	return answer.ContainersPerSecond
}
