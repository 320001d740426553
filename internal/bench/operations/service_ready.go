package operations

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func service() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.service.ready",
		Summary: "from create to the first HTTP response, over the host's network",
		Source:  "peers (cold-start benchmarks)",
		Metrics: []result.Metric{
			bench.Seconds("Listening", "from just before create until the server reports that it listens"),
			bench.Headed(result.ColumnReady, phrased("answers the first request after", bench.Seconds("Ready", "from just before create to the end of the first response"))),
		},
		Needs: bench.Always(engine.NetworkHost),
		Run: func(ctx context.Context, t bench.Trial) error {
			spec := t.Spec(probe.Serve(0)...)
			spec.Network = engine.HostNet
			c, err := bench.Launch(ctx, t, spec)
			if err != nil {
				return err
			}
			line, listening, err := c.FirstLine(ctx)
			if err != nil {
				return err
			}
			port, err := probe.ParseServing(line)
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
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(len(probe.ServeBody))+1))
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("close the response of the server in the container: %w", err)
	}
	if err != nil {
		return fmt.Errorf("read the response of the server in the container: %w", err)
	}
	if response.StatusCode != http.StatusOK || string(body) != probe.ServeBody {
		return fmt.Errorf("the server in the container responded with %s %q instead of 200 %q", response.Status, body, probe.ServeBody)
	}
	return nil
}
