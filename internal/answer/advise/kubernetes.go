package advise

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/report/advice"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// runtimeClass is a RuntimeClass of node.k8s.io/v1.
type runtimeClass struct {
	APIVersion string    `yaml:"apiVersion"`
	Kind       string    `yaml:"kind"`
	Metadata   metadata  `yaml:"metadata"`
	Handler    string    `yaml:"handler"`
	Overhead   *overhead `yaml:"overhead,omitempty"`
}

type metadata struct {
	Name string `yaml:"name"`
}

type overhead struct {
	PodFixed podFixed `yaml:"podFixed"`
}

type podFixed struct {
	Memory string `yaml:"memory"`
}

// patch is the part of a RuntimeClass that exists in a cluster.
type patch struct {
	Overhead *overhead `yaml:"overhead,omitempty"`
}

// patchOf is the overhead of an existing class as YAML, with its evidence as comments.
func patchOf(c *advice.Class) string {
	if c.Memory == 0 {
		return "# " + result.ConditionText("No overhead: "+c.Reason+".")
	}
	const mebibyte = 1 << 20
	text, err := yaml.Marshal(patch{&overhead{podFixed{fmt.Sprintf("%.0fMi", math.Ceil(c.Memory/mebibyte))}}})
	if err != nil {
		return "# " + result.ConditionText(err.Error())
	}
	lines := []string{
		fmt.Sprintf("memory: upper end of the interval for a pod on one more node, confidence 95 %%: %s.", memoryText(c.Memory)),
		fmt.Sprintf("Measured as %s on %d nodes by pods.density: the fall of the node's available memory by one more pod.", c.Measured, c.Nodes),
		"cpu: not set. No benchmark measures the CPU time of an idle pod.",
	}
	for i, line := range lines {
		lines[i] = "# " + result.ConditionText(line)
	}
	return strings.Join(lines, "\n") + "\n" + strings.TrimSuffix(string(text), "\n")
}

// class is the RuntimeClass as YAML, with the evidence of its overhead as comments. A class of a cluster exists, so it is a patch.
func class(c *advice.Class) string {
	if advice.EngineOf(c.Target.Name) == advice.ClusterEngine {
		return patchOf(c)
	}
	doc := runtimeClass{APIVersion: "node.k8s.io/v1", Kind: "RuntimeClass", Metadata: metadata{c.Handler}, Handler: c.Handler}
	var lines []string
	comment := func(format string, args ...any) {
		lines = append(lines, "# "+result.ConditionText(fmt.Sprintf(format, args...)))
	}
	if c.Memory > 0 {
		const mebibyte = 1 << 20
		doc.Overhead = &overhead{podFixed{fmt.Sprintf("%.0fMi", math.Ceil(c.Memory/mebibyte))}}
		comment("memory: upper bound for %.0f %% of the pods at a density of up to %d pods, confidence 95 %%: %s.", 100*advice.PodShare, c.Pods, memoryText(c.Memory))
		comment("Measured as %s in %d trials of density.memory, each by its most expensive pod with its idle container.", c.Measured, c.Trials)
		if !c.IsWhole {
			comment("It lacks the memory of the kernel, which this host does not report.")
		}
	} else {
		comment("No overhead: %s.", c.Reason)
	}
	for _, p := range c.Parts {
		comment("  %s: %s in the median", p.Component, memoryText(p.Bytes))
	}
	if c.Memory > 0 {
		comment("cpu: not set. No benchmark measures the CPU time of an idle pod.")
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return "# " + result.ConditionText(err.Error())
	}
	return strings.Join(lines, "\n") + "\n" + strings.TrimSuffix(string(text), "\n")
}

// settings are the settings of the engines for the handler. Their keys are those that Touchstone writes for its private daemons.
func settings(c *advice.Class) []setting {
	engine := advice.EngineOf(c.Target.Name)
	list := []setting{}
	if engine == advice.ClusterEngine {
		return list
	}
	if engine != advice.CRIO {
		old := engine == advice.Containerd && strings.HasPrefix(strings.TrimPrefix(c.Target.Version, "containerd v"), "1.")
		if !old {
			list = append(list, setting{"containerd 2, in config.toml with version = 3", containerd(c, `plugins."io.containerd.cri.v1.runtime"`)})
		}
		if old || engine != advice.Containerd {
			list = append(list, setting{"containerd 1.6 and 1.7, in config.toml with version = 2", containerd(c, `plugins."io.containerd.grpc.v1.cri"`)})
		}
		if c.Name() == gVisor {
			list = append(list, setting{"gVisor's flags, in " + runscFile(c), runsc(c)})
		}
	}
	if engine != advice.Containerd {
		list = append(list, crio(c))
	}
	if options := c.Options(); len(options) > 0 && c.Name() != gVisor {
		list = append(list, setting{Title: "The settings lack the options of the target: " + strings.Join(options, ", ")})
	}
	return list
}

// The runtimes with a shim of their own.
const (
	gVisor = "runsc"
	kata   = "kata"
)

func isKata(c *advice.Class) bool { return c.Name() == kata || strings.HasPrefix(c.Name(), kata+"-") }

// binary is the path of the runtime. A run without one has a name that the user replaces.
func binary(c *advice.Class) string {
	if c.Target.Binary == "" {
		return "/usr/local/bin/" + c.Handler
	}
	return c.Target.Binary
}

// quote makes a basic string of TOML. It has the escapes of JSON.
func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always has a JSON
	return strings.TrimSpace(b.String())
}

func runscFile(c *advice.Class) string { return "/etc/containerd/" + c.Handler + ".toml" }

// containerd is the table of the handler below the table of the CRI plug-in.
func containerd(c *advice.Class, plugin string) string {
	lines := []string{fmt.Sprintf("[%s.containerd.runtimes.%s]", plugin, quote(c.Handler))}
	switch {
	case c.Name() == gVisor:
		const shim = "io.containerd.runsc.v1"
		lines = append(lines, "  runtime_type = "+quote(shim), fmt.Sprintf("  options = { TypeUrl = %s, ConfigPath = %s }", quote(shim+".options"), quote(runscFile(c))))
	case isKata(c):
		lines = append(lines, "  runtime_type = "+quote("io.containerd."+c.Name()+".v2"))
	default:
		lines = append(lines, `  runtime_type = "io.containerd.runc.v2"`, fmt.Sprintf("  options = { BinaryName = %s }", quote(binary(c))))
	}
	return strings.Join(lines, "\n")
}

// runsc is the configuration of gVisor's shim: the path and the flags.
func runsc(c *advice.Class) string {
	lines := []string{"binary_name = " + quote(binary(c)), "[runsc_config]"}
	for _, o := range c.Options() {
		name, value, _ := strings.Cut(o, "=")
		lines = append(lines, "  "+quote(name)+" = "+quote(value))
	}
	return strings.Join(lines, "\n")
}

// crio is a file of /etc/crio/crio.conf.d.
func crio(c *advice.Class) setting {
	s := setting{Title: "CRI-O, in /etc/crio/crio.conf.d/" + c.Handler + ".conf"}
	lines := []string{fmt.Sprintf("[crio.runtime.runtimes.%s]", quote(c.Handler)), "runtime_path = " + quote(binary(c))}
	if isKata(c) {
		lines = append(lines, `runtime_type = "vm"`, "privileged_without_host_devices = true")
	} else {
		lines = append(lines, `runtime_type = "oci"`, "runtime_root = "+quote("/run/"+c.Handler))
	}
	if c.Name() == gVisor && len(c.Options()) > 0 {
		lines = append(lines, "# CRI-O passes no flags to a runtime: name a script in runtime_path that adds "+result.ConditionText(strings.Join(c.Options(), ", ")))
	}
	s.Text = strings.Join(lines, "\n")
	return s
}
