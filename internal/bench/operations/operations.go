// Package operations is the suite of the operations of engines on containers and images: the latency of each operation,
// and its cost to the host.
package operations

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	all := []bench.Benchmark{lifecycle(), exec(), pause(), update(), stats(), pull(), service()}
	for i := range all {
		all[i].Phases = true
	}
	return all
}

// criSteps are the metrics of the steps of CRI, which only targets over CRI have. The trial records a step that has the
// name of a metric. Steps of other engines are only phases of the trial.
func criSteps() []result.Metric {
	steps := []result.Metric{
		layered(result.LayerSandbox, bench.Seconds("RunPodSandbox", "CRI step of Create: the pod's sandbox with its network")),
		bench.Seconds("CreateContainer", "CRI step of Create: the container in the sandbox"),
		bench.Seconds("StartContainer", "CRI step of Run: all of it"),
		bench.Seconds("StopContainer", "CRI step of Destroy: kill at once, and wait for the exit"),
		bench.Seconds("RemoveContainer", "CRI step of Destroy"),
		bench.Seconds("StopPodSandbox", "CRI step of Destroy: the end of the sandbox and of its network"),
		bench.Seconds("RemovePodSandbox", "CRI step of Destroy"),
	}
	for i := range steps {
		steps[i].Optional = true
	}
	return steps
}

func phrased(phrase string, m result.Metric) result.Metric {
	m.Phrase = phrase
	return m
}

func layered(role result.Layer, m result.Metric) result.Metric {
	m.Layer = role
	return m
}

// layeredCost returns the cost metrics, with the CPU time as a metric that reports split into layers.
func layeredCost() []result.Metric {
	cost := bench.CostMetrics()
	cost[0] = layered(result.LayerTotal, cost[0])
	return cost
}

func lifecycle() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.container.lifecycle",
		Summary: "create, start, kill and delete one container",
		Source:  "espe table 1 and figure 5; nishimura tables 3 and 4; wang section 5.6",
		Metrics: slices.Concat([]result.Metric{
			bench.Seconds("Create", "the container exists, its process does not run yet (espe: OpCreate)"),
			bench.Seconds("Run", "from created to running (espe: OpRun)"),
			layered(result.LayerTotal, phrased("creates and starts a container in", bench.Scored(result.DimensionStartUp, bench.Seconds("CreateAndRun", "Create and Run together (espe: OpCreateAndRun)")))),
			phrased("destroys a container in", bench.Seconds("Destroy", "the sum of kill, wait for the exit and delete (espe: OpDestroy)")),
			phrased("brings a container to its first instruction in", bench.Seconds("FirstInstruction", "from just before create to the first byte that the container's first process writes, by the host's clock")),
		}, criSteps(), layeredCost(), bench.ComponentMetrics()),
		Steps:      true,
		Components: true,
		Run: func(ctx context.Context, t bench.Trial) error {
			c, err := bench.Launch(ctx, t, t.Spec(workload.Ready()...))
			if err != nil {
				return err
			}
			first, err := c.Ready(ctx)
			if err != nil {
				return err
			}
			if err := bench.RecordMemory(t); err != nil {
				return err
			}
			destroy, _, err := c.Destroy(ctx, t)
			if err != nil {
				return err
			}
			t.Record("Create", c.CreateSpan.Seconds())
			t.Record("Run", c.StartSpan.Seconds())
			t.Record("CreateAndRun", c.CreateSpan.Seconds()+c.StartSpan.Seconds())
			t.Record("Destroy", destroy.Seconds())
			t.Record("FirstInstruction", (first - c.CreateSpan.Start).Seconds())
			return bench.RecordCostByComponent(t)
		},
	}
}

// repeated completes a benchmark that repeats operations on one running container. The container implements T, which the
// capability promises. Operate receives the number of the repetition.
func repeated[T any](b bench.Benchmark, capability engine.Capability, operate func(ctx context.Context, t bench.Trial, c T, n int) error) bench.Benchmark {
	for i := range b.Metrics {
		b.Metrics[i].Series = true
	}
	b.Params = []bench.Param{{
		Name: "repeats", Help: "operations in a row in the same container", Quick: "5", Paper: "20", Check: bench.IntRange(1, 1000),
	}}
	b.Needs = bench.Always(capability)
	b.Run = func(ctx context.Context, t bench.Trial) error {
		running, err := bench.Start(ctx, t)
		if err != nil {
			return err
		}
		c, err := bench.Optional[T](running.Container, capability)
		for n := 0; err == nil && n < t.Int("repeats"); n++ {
			err = operate(ctx, t, c, n)
		}
		return err
	}
	return b
}

// timed makes a call as a phase named after the metric, and records its time.
func timed(ctx context.Context, t bench.Trial, metric string, call func(context.Context) error) error {
	span, err := t.Time(ctx, strings.ToLower(metric), call)
	if err == nil {
		t.Record(metric, span.Seconds())
	}
	return err
}

func exec() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.exec",
		Summary: "run a further process in a running container until it exits",
		Source:  "peers (bucketbench, critest)",
		Metrics: []result.Metric{phrased("runs a further process in a container in", bench.Seconds("Exec", "from the call to the exit of a process that does nothing"))},
	}, engine.CanExec, func(ctx context.Context, t bench.Trial, c engine.Execer, _ int) error {
		return timed(ctx, t, "Exec", func(ctx context.Context) error {
			exit, err := c.Exec(ctx, engine.Process{Args: workload.Exit(0)})
			if err == nil && !exit.OK() {
				err = fmt.Errorf("the process ended: %v", exit)
			}
			return err
		})
	})
}

func pause() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.pause",
		Summary: "freeze and thaw a running container",
		Source:  "peers (bucketbench)",
		Metrics: []result.Metric{
			phrased("pauses a container in", bench.Seconds("Pause", "from the call to its answer; with a bare runtime a check of the freezer follows")), bench.Seconds("Resume", "from paused to running"),
		},
	}, engine.CanPause, func(ctx context.Context, t bench.Trial, c engine.Pauser, _ int) error {
		if err := timed(ctx, t, "Pause", c.Pause); err != nil {
			return err
		}
		return timed(ctx, t, "Resume", c.Resume)
	})
}

func update() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:      "operations.container.update",
		Summary:   "change the CPU limit of a running container",
		Source:    "peers (docker update, the kubelet's resize of a pod)",
		Metrics:   []result.Metric{bench.Seconds("Update", "from the call to its return; it does not check that the limit then holds")},
		OwnLimits: []bench.Limit{bench.CPULimit},
	}, engine.CanUpdate, func(ctx context.Context, t bench.Trial, c engine.Updater, n int) error {
		return timed(ctx, t, "Update", func(ctx context.Context) error {
			// The limit differs each time, so that each call changes it.
			return c.Update(ctx, engine.Resources{CPU: 0.5 + float64(n%2)/2})
		})
	})
}

func stats() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.stats",
		Summary: "query the engine for the resource usage of a running container",
		Source:  "peers (the kubelet, docker stats)",
		Metrics: []result.Metric{bench.Seconds("Stats", "from the call to its return")},
	}, engine.CanStats, func(ctx context.Context, t bench.Trial, c engine.Meter, _ int) error {
		return timed(ctx, t, "Stats", func(ctx context.Context) error {
			used, err := c.Stats(ctx)
			if err == nil && used.Memory <= 0 {
				err = fmt.Errorf("the engine reports that a running container uses %d bytes of memory", used.Memory)
			}
			return err
		})
	})
}

func pull() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.image.pull",
		Summary: "pull and unpack an image that the engine has not seen, from a registry on this host, and remove it",
		Source:  "peers (critest)",
		Metrics: []result.Metric{
			bench.Seconds("Pull", "from the call until the image is unpacked and ready to use"),
			bench.Seconds("Remove", "time to remove the image and its unpacked files"),
		},
		Params: []bench.Param{{
			Name: "size", Help: "size of the one new layer in MiB; its bytes do not compress",
			Quick: "8", Paper: "64", Check: bench.IntRange(1, 1024),
		}},
		Waits: []bench.Medium{bench.Disk},
		Needs: func(p bench.Params) bench.Needs {
			size := int64(p.Int("size")) << 20
			// The registry keeps the layer in memory, and perhaps still the layer of the trial before. The engine keeps it packed and unpacked.
			return bench.Needs{Capabilities: []engine.Capability{engine.CanPull}, Memory: 2 * size, Space: bench.Space{Disk: 2 * size}}
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			ref, err := t.Images.Fresh(ctx, int64(t.Int("size"))<<20)
			if err != nil {
				return err
			}
			pulled, err := t.Images.Pull(ctx, ref)
			if err != nil {
				return err
			}
			removed, err := t.Images.Remove(ctx, ref)
			if err != nil {
				return err
			}
			t.Record("Pull", pulled.Seconds())
			t.Record("Remove", removed.Seconds())
			return nil
		},
	}
}

func service() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.service.ready",
		Summary: "from create to the first HTTP response, over the host's network",
		Source:  "peers (cold-start benchmarks)",
		Metrics: []result.Metric{
			bench.Seconds("Listening", "from just before create until the server reports that it listens"),
			phrased("answers the first request after", bench.Seconds("Ready", "from just before create to the end of the first response")),
		},
		Needs: bench.Always(engine.NetworkHost),
		Run: func(ctx context.Context, t bench.Trial) error {
			spec := t.Spec(workload.Serve(0)...)
			spec.Network = engine.HostNet
			c, err := bench.Launch(ctx, t, spec)
			if err != nil {
				return err
			}
			line, listening, err := c.Output.FirstLine(ctx)
			if err != nil {
				return err
			}
			port, err := workload.ParseServing(line)
			if err != nil {
				return err
			}
			request, err := t.Time(ctx, "request", func(ctx context.Context) error { return get(ctx, t, port) })
			if err != nil {
				return err
			}
			t.Record("Listening", (listening - c.CreateSpan.Start).Seconds())
			t.Record("Ready", (request.End - c.CreateSpan.Start).Seconds())
			return nil
		},
	}
}

// get sends one request to the server, over a connection of its own.
func get(ctx context.Context, t bench.Trial, port int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{Proxy: nil, DialContext: t.Network.Dial, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("send a request to the server in the container: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(len(workload.ServeBody))+1))
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("close the response of the server in the container: %w", err)
	}
	if err != nil {
		return fmt.Errorf("read the response of the server in the container: %w", err)
	}
	if response.StatusCode != http.StatusOK || string(body) != workload.ServeBody {
		return fmt.Errorf("the server in the container responded with %s %q instead of 200 %q", response.Status, body, workload.ServeBody)
	}
	return nil
}
