package advise_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/answer/advise"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/text"
	"github.com/touchstone-bench/touchstone/internal/report/advice"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is an answer with a decision, a pair without a shown difference, a gap, and a bound of the memory of a pod.
func sample(t *testing.T) *advice.Advice {
	t.Helper()
	target := func(name string) result.Target {
		return result.Target{Name: name, Runtime: strings.TrimPrefix(name, "oci/"), Binary: "/usr/bin/" + strings.TrimPrefix(name, "oci/")}
	}
	p, err := advice.Find("faas")
	must.Do(t, err)
	return &advice.Advice{
		Profile: p, Runs: []string{"20261129-010000-aaaa"}, Seed: 7, Reference: "native", Blocks: []int{14},
		Counted: []advice.Counted{
			{Dimension: result.DimensionStartUp, Share: 4.0 / 7, Sources: []advice.Source{{Run: "20261129-010000-aaaa", Metric: result.Metric{Name: "CreateAndRun"}}}},
			{Dimension: result.DimensionMemoryOverhead, Share: 3.0 / 7, Sources: []advice.Source{{Run: "20261129-010000-aaaa", Metric: result.Metric{Name: "MemoryPerContainer"}}}},
		},
		Ranked: []advice.Ranked{
			{Target: target("oci/crun"), Place: 1, Cost: 2.06, CI: &stats.Interval{Lo: 1.9, Hi: 2.3}, Costs: []float64{2.1, 2}, First: 1},
			{Target: target("oci/runc"), Place: 2, Cost: 5.08, CI: &stats.Interval{Lo: 4.9, Hi: 5.3}, Costs: []float64{5, 5.2}},
			{Target: target("oci/youki"), Place: 2, Cost: 5.1, CI: &stats.Interval{Lo: 4.8, Hi: 5.4}, Costs: []float64{5.1, 5.1}},
		},
		Orders: []advice.Order{
			{Better: "oci/crun", Worse: "oci/runc", Ratio: 2.47, CI: &stats.Interval{Lo: 2.3, Hi: 2.6}, Share: 1, P: 0.0004, Shown: true},
			{Better: "oci/crun", Worse: "oci/youki", Ratio: 2.48, CI: &stats.Interval{Lo: 2.3, Hi: 2.7}, Share: 1, P: 0.0004, Shown: true},
			{Better: "oci/runc", Worse: "oci/youki", Ratio: 1.004, CI: &stats.Interval{Lo: 0.98, Hi: 1.03}, Share: 0.61, P: 0.4, More: 90},
		},
		Unranked: []advice.Unranked{
			{Target: "podman/runc", Reason: "memory overhead: not measured"}, {Target: "oci/runsc", Reason: "not available"}, {Target: "podman/crun", Reason: "memory overhead: not measured"},
		},
		Missing:  []advice.Missing{{Weight: advice.Weight{Dimension: result.DimensionDensity, Weight: 1}, Reason: "not measured"}},
		Commands: []string{"touchstone benchmark -t native,oci/crun --filter density.max -n 14", "touchstone advise --profile faas 20261129-010000-aaaa latest"},
		Class: &advice.Class{
			Target: target("oci/crun"), Measured: "containerd/crun", Handler: "crun", Memory: 14.2 * (1 << 20), Trials: 59, Pods: 10, IsWhole: true,
			Parts: []advice.Part{{Component: "shim", Bytes: 8 << 20}, {Component: "pause", Bytes: 1 << 17}},
		},
	}
}

func TestGolden(t *testing.T) {
	file := filepath.Join("testdata", "faas.golden")
	var b strings.Builder
	must.Do(t, text.Write(&b, advise.Document(sample(t)), text.Options{Width: 100}))
	if *update {
		must.Do(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	must.Do(t, err)
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the text differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
	}
}

// kubernetes returns the class and the settings of an answer.
func kubernetes(t *testing.T, a *advice.Advice) (class string, settings map[string]string) {
	t.Helper()
	encoded, err := json.Marshal(advise.Document(a).Data())
	must.Do(t, err)
	var data struct {
		Kubernetes struct {
			Class    string `json:"runtime_class"`
			Settings []struct{ Title, Text string }
		}
	}
	must.Do(t, json.Unmarshal(encoded, &data))
	settings = map[string]string{}
	for _, s := range data.Kubernetes.Settings {
		settings[s.Title] = s.Text
	}
	return data.Kubernetes.Class, settings
}

// TestRuntimeClass: the class parses, and has the bound in whole MiB, rounded up. Text of a run stays in its comment.
func TestRuntimeClass(t *testing.T) {
	a := sample(t)
	a.Class.Measured = "containerd/crun\nhandler: evil"
	text, _ := kubernetes(t, a)
	var got map[string]any
	must.Do(t, yaml.UnmarshalWithOptions([]byte(text), &got, yaml.Strict()))
	want := map[string]any{
		"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": "crun"}, "handler": "crun",
		"overhead": map[string]any{"podFixed": map[string]any{"memory": "15Mi"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the class differs (-want +got):\n%s\n%s", diff, text)
	}
	a.Class.Memory, a.Class.Reason = 0, "no pods were measured"
	text, _ = kubernetes(t, a)
	if strings.Contains(text, "podFixed") || !strings.Contains(text, "# No overhead: no pods were measured.") {
		t.Errorf("without a bound the class is:\n%s", text)
	}
}

// TestSettings: the settings are TOML with the keys of the engines, for each family of runtimes, and text of a run is a string.
func TestSettings(t *testing.T) {
	const (
		newContainerd = "containerd 2, in config.toml with version = 3"
		oldContainerd = "containerd 1.6 and 1.7, in config.toml with version = 2"
	)
	for _, c := range []struct {
		target, runtime, version, binary string
		title, key                       string
		want                             any
		count                            int
	}{
		{"oci/crun", "crun", "", "/usr/bin/crun", newContainerd, "plugins|io.containerd.cri.v1.runtime|containerd|runtimes|h|options|BinaryName", "/usr/bin/crun", 3},
		{"oci/crun", "crun", "", "/x\"\n[evil]", oldContainerd, "plugins|io.containerd.grpc.v1.cri|containerd|runtimes|h|options|BinaryName", "/x\"\n[evil]", 3},
		{"containerd/runc", "runc", "containerd v2.1.0, runc version 1.3.0", "/usr/bin/runc", newContainerd, "plugins|io.containerd.cri.v1.runtime|containerd|runtimes|h|runtime_type", "io.containerd.runc.v2", 1},
		{"containerd/runc", "runc", "containerd v1.7.1, runc version 1.3.0", "/usr/bin/runc", oldContainerd, "plugins|io.containerd.grpc.v1.cri|containerd|runtimes|h|runtime_type", "io.containerd.runc.v2", 1},
		{"crio/runc", "runc", "cri-o 1.34.0", "/usr/bin/runc", "CRI-O, in /etc/crio/crio.conf.d/h.conf", "crio|runtime|runtimes|h|runtime_type", "oci", 1},
		{"oci/runsc@platform=kvm", "runsc@platform=kvm", "", "/usr/bin/runsc", newContainerd, "plugins|io.containerd.cri.v1.runtime|containerd|runtimes|h|options|TypeUrl", "io.containerd.runsc.v1.options", 4},
		{"oci/runsc@platform=kvm", "runsc@platform=kvm", "", "/usr/bin/runsc", "gVisor's flags, in /etc/containerd/h.toml", "runsc_config|platform", "kvm", 4},
		{"containerd/kata", "kata", "containerd v2.1.0", "/opt/kata/bin/shim", newContainerd, "plugins|io.containerd.cri.v1.runtime|containerd|runtimes|h|runtime_type", "io.containerd.kata.v2", 1},
		{"crio/kata", "kata", "cri-o 1.34.0", "/opt/kata/bin/shim", "CRI-O, in /etc/crio/crio.conf.d/h.conf", "crio|runtime|runtimes|h|runtime_type", "vm", 1},
	} {
		a := sample(t)
		a.Class.Handler, a.Class.Target = "h", result.Target{Name: c.target, Runtime: c.runtime, Version: c.version, Binary: c.binary}
		_, settings := kubernetes(t, a)
		if len(settings) != c.count {
			t.Errorf("%s: %d settings, want %d: %v", c.target, len(settings), c.count, settings)
		}
		var value any
		var table map[string]any
		if err := toml.Unmarshal([]byte(settings[c.title]), &table); err != nil {
			t.Errorf("%s: %v in\n%s", c.target, err, settings[c.title])
			continue
		}
		value = table
		for key := range strings.SplitSeq(c.key, "|") {
			inner, _ := value.(map[string]any)
			value = inner[key]
		}
		if value != c.want {
			t.Errorf("%s: %s is %v, want %v in\n%s", c.target, c.key, value, c.want, settings[c.title])
		}
	}
}

// TestAnswer: only a target that is shown to cost less than every other one is recommended.
func TestAnswer(t *testing.T) {
	for want, change := range map[string]func(*advice.Advice){
		"Recommended for the profile faas: oci/crun. It costs less than every other ranked target.": func(*advice.Advice) {},
		"No single recommendation for the profile faas: no target is shown to cost less than oci/crun, and not every other target is shown to cost more.": func(a *advice.Advice) {
			a.Orders[1].Shown = false
		},
		"No single recommendation for the profile faas: no difference is shown between oci/crun and oci/runc, and no target is shown to cost less.": func(a *advice.Advice) {
			a.Orders[0].Shown, a.Ranked[1].Place = false, 1
		},
		"No recommendation: only oci/crun can be ranked, so nothing is compared.": func(a *advice.Advice) { a.Ranked, a.Orders = a.Ranked[:1], nil },
		"No recommendation: no target has a usable value of start-up.": func(a *advice.Advice) {
			a.Ranked, a.Orders, a.Class, a.Reason = nil, nil, nil, "no target has a usable value of start-up"
		},
	} {
		a := sample(t)
		change(a)
		if got := advise.Document(a).Answer[0].Text; got != want {
			t.Errorf("the answer is %q, want %q", got, want)
		}
	}
}

// TestFleetClass: a class of a cluster exists, so the answer has a patch with its overhead, and no settings of engines.
func TestFleetClass(t *testing.T) {
	a := sample(t)
	a.Class = &advice.Class{Target: result.Target{Name: "k8s/gvisor\nhandler: evil"}, Measured: "k8s/gvisor\nhandler: evil", Handler: "gvisor", Memory: 28.2 * (1 << 20), Nodes: 7}
	text, list := kubernetes(t, a)
	var got map[string]any
	must.Do(t, yaml.UnmarshalWithOptions([]byte(text), &got, yaml.Strict()))
	want := map[string]any{"overhead": map[string]any{"podFixed": map[string]any{"memory": "29Mi"}}}
	if diff := cmp.Diff(want, got); diff != "" || len(list) != 0 {
		t.Errorf("the patch differs (-want +got), and the settings are %v:\n%s\n%s", list, diff, text)
	}
	a.Class.Memory, a.Class.Reason = 0, "4 nodes have the memory of a pod"
	if text, _ = kubernetes(t, a); text != "# No overhead: 4 nodes have the memory of a pod." {
		t.Errorf("without a bound the patch is:\n%s", text)
	}
}
