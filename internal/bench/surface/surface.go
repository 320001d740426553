// Package surface is the suite of the rights and the view that a program in a container has. Nothing in it is rated: a small surface is no proof of
// safety, and no exploit is tried.
//
// The program is the first process of a container with the configuration that containers of the target have in all benchmarks. For bare runtimes
// Touchstone writes it (package oci), and other engines bring their own defaults.
package surface

import (
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{rights(), filters(), calls(), functions(), drills()}
}

// unrated is the reason why no comparison of the suite has a verdict.
const unrated = "a count of rights is no measure of safety"

// count is a metric of the suite.
func count(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Count, Better: result.Lower, NoVerdict: unrated, Help: help}
}

// optional is the metric for targets that may lack it.
func optional(m result.Metric) result.Metric {
	m.Optional = true
	return m
}

// sized is the metric as the size of a surface.
func sized(s result.Surface, m result.Metric) result.Metric {
	m.Surface = s
	return m
}

// ask runs a program of the probe in a container, and returns its facts.
func ask(ctx context.Context, t bench.Trial, spec engine.Spec) (probe.Output, error) {
	text, err := bench.InContainer(ctx, t, spec)
	if err != nil {
		return probe.Output{}, err
	}
	out, err := probe.Parse(text)
	if err != nil {
		return probe.Output{}, fmt.Errorf("read the output of %q: %w", spec.Process.Args, err)
	}
	return out, nil
}

// single returns the one text of a fact.
func single(out probe.Output, name string) (string, error) {
	texts := out.Texts(name)
	if len(texts) != 1 {
		return "", fmt.Errorf("the program's output has %d facts %q instead of one", len(texts), name)
	}
	return texts[0], nil
}
