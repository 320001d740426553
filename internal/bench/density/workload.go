package density

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// The workloads.
const (
	nginx = "nginx"
	redis = "redis"
)

func withWorkload() bench.Benchmark {
	return bench.Benchmark{
		Name:       "density.workload",
		Summary:    "memory of containers with an idle nginx or a Redis that holds data, as density.memory measures it",
		Source:     "wang section 5.7, with a workload in place of an idle container",
		Metrics:    memoryMetrics("needs for one more container with its workload"),
		Place:      "number of containers",
		Components: true,
		Image:      bench.WorkloadImage,
		Params: []bench.Param{
			containersParam("5", "50"),
			{Name: "workload", Help: "the program in each container: nginx without requests, or Redis with data", Quick: nginx, Paper: redis, Check: bench.OneOf(nginx, redis)},
			{Name: "keys", Help: "keys in each Redis, with values of 100 bytes", Quick: "10000", Paper: "100000", Check: bench.IntRange(1, 10_000_000)},
		},
		Needs: func(p bench.Params) bench.Needs {
			n := p.Int("containers")
			needs := bench.Needs{Containers: n, Memory: int64(n) * nginxBytes}
			if p.Param("workload") == nginx {
				needs.Capabilities = []engine.Capability{engine.CanBind} // of its configuration
			} else {
				needs.Capabilities = []engine.Capability{engine.CanExec}
				needs.Memory = int64(n) * (redisBytes + int64(p.Int("keys"))*keyBytes)
			}
			return needs
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			if t.Param("workload") == redis {
				port := firstPort
				return measure(ctx, t, func(ctx context.Context, t bench.Trial) (*bench.Running, error) {
					port++
					return loadedRedis(ctx, t, port)
				})
			}
			dir, err := t.Storage.Scratch(bench.Disk)
			if err != nil {
				return err
			}
			config := filepath.Join(dir, programs.NginxConfig)
			if err := os.WriteFile(config, []byte(programs.IdleNginxConfiguration(bench.DataDir)), 0o600); err != nil {
				return fmt.Errorf("write the web server's configuration: %w", err)
			}
			return measure(ctx, t, func(ctx context.Context, t bench.Trial) (*bench.Running, error) { return idleNginx(ctx, t, dir) })
		},
	}
}

// Upper bounds of the memory of the programs, for the guard of the host. A key takes its name, a value of 100 bytes and Redis's objects.
const (
	nginxBytes = 8 << 20
	redisBytes = 12 << 20
	keyBytes   = 300
)

// idleNginx starts nginx and waits until it listens.
func idleNginx(ctx context.Context, t bench.Trial, dir string) (*bench.Running, error) {
	spec := t.Spec(programs.NginxServer(bench.DataDir)...)
	spec.Mounts = []engine.Mount{{Source: dir, Target: bench.DataDir, ReadOnly: true}}
	log := t.Watch()
	spec.Process.Stderr = log
	c, err := bench.Launch(ctx, t, spec)
	if err != nil {
		return nil, err
	}
	line, _, err := log.FirstLine(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for the web server: %w", err)
	}
	if !strings.Contains(line, programs.NginxListening) {
		return nil, fmt.Errorf("the web server's first line is %.200q instead of %q", line, programs.NginxListening)
	}
	return c, nil
}

// firstPort precedes the ports of Redis, which are below the kernel's ports for clients.
const firstPort = 16379

// loadedRedis starts Redis on a port and fills it.
func loadedRedis(ctx context.Context, t bench.Trial, port int) (*bench.Running, error) {
	listening := make(chan struct{})
	notify := sync.OnceFunc(func() { close(listening) })
	spec := t.Spec(programs.LocalRedis(port)...)
	spec.Process.Stderr = t.Watch()
	log := bench.Lines(t, func(line string, _ time.Duration) {
		if ready, err := programs.RedisListens(line); err == nil && ready {
			notify()
		}
	})
	spec.Process.Stdout = log
	c, err := bench.Launch(ctx, t, spec)
	if err != nil {
		return nil, err
	}
	if err := await(ctx, log, listening); err != nil {
		return nil, fmt.Errorf("wait for Redis: %w", err)
	}
	_, err = bench.Measure(ctx, t, bench.Within(c.Container), programs.LocalRedisFill(port, t.Int("keys")))
	return c, err
}

// await waits for an event that the output of a program causes.
func await(ctx context.Context, output bench.Watch, event <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := make(chan error, 1)
	go func() { end <- output.Ended(ctx) }()
	select {
	case <-event:
		return nil
	case err := <-end:
		select {
		case <-event: // both have happened
			return nil
		default:
			return errors.Join(err, fmt.Errorf("its output ended early: %.200q", output.Bytes()))
		}
	}
}
