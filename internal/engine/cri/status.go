package cri

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
)

// about is an engine's description of itself.
type about struct {
	engine   string // its own name: containerd, cri-o
	version  string
	handlers []configured
	complete bool   // handlers is the complete list
	systemd  bool   // systemd makes the cgroups
	plugins  string // of the network, may be empty
	ready    error
}

// configured is a runtime handler of an engine.
type configured struct {
	name    string
	shim    string // containerd's runtime type
	binary  string // of an OCI runtime
	config  string // path of the shim's configuration
	systemd bool
}

// maxWordLength bounds an engine's name and version, in bytes.
const maxWordLength = 100

// readStatus reads an engine's responses. The content of the verbose part is not in CRI: an engine with nothing or
// something else there can be used too.
func readStatus(version *api.VersionResponse, answer *api.StatusResponse) (about, error) {
	a := about{engine: word(version.GetRuntimeName()), version: word(version.GetRuntimeVersion())}
	if a.engine == "" || a.version == "" {
		return about{}, errors.New("it does not report its name and version")
	}
	for _, condition := range answer.GetStatus().GetConditions() {
		required := condition.GetType() == api.RuntimeReady || condition.GetType() == api.NetworkReady
		if required && !condition.GetStatus() {
			a.ready = errors.Join(a.ready, fmt.Errorf("%s is false: %s", condition.GetType(), strings.TrimSpace(condition.GetReason()+" "+condition.GetMessage())))
		}
	}
	var info struct {
		Containerd struct {
			Runtimes map[string]struct {
				RuntimeType string
				Options     struct {
					BinaryName, ConfigPath string
					SystemdCgroup          bool
				}
			}
		}
		Crio struct {
			CgroupManagerName string
			Runtimes          map[string]struct{ RuntimePath, RuntimeType, RuntimeConfigPath string }
		}
	}
	// Other engines have nothing readable here.
	_ = json.Unmarshal([]byte(answer.GetInfo()["config"]), &info)
	for name, r := range info.Containerd.Runtimes {
		a.handlers = append(a.handlers, configured{name, r.RuntimeType, r.Options.BinaryName, r.Options.ConfigPath, r.Options.SystemdCgroup})
	}
	for name, r := range info.Crio.Runtimes {
		h := configured{name: name, binary: r.RuntimePath}
		if r.RuntimeType == "vm" && strings.Contains(filepath.Base(r.RuntimePath), kata.Name) {
			h = configured{name: name, shim: kata.Type, config: r.RuntimeConfigPath}
		}
		a.handlers = append(a.handlers, h)
	}
	a.plugins = plugins(answer.GetInfo()["cniconfig"])
	a.systemd = info.Crio.CgroupManagerName == "systemd"
	for _, h := range answer.GetRuntimeHandlers() {
		if isListed := slices.ContainsFunc(a.handlers, func(c configured) bool { return c.name == h.GetName() }); !isListed && h.GetName() != "" {
			a.handlers = append(a.handlers, configured{name: h.GetName()})
		}
	}
	a.complete = len(a.handlers) > 0
	slices.SortFunc(a.handlers, func(x, y configured) int { return strings.Compare(x.name, y.name) })
	return a, nil
}

// handler finds a handler by its name. Unless the list is complete, an unknown handler may exist.
func (a about) handler(name string) (configured, bool) {
	for _, h := range a.handlers {
		if h.name == name {
			return h, true
		}
	}
	return configured{name: name}, !a.complete
}

// names lists the handlers for a message.
func (a about) names() string {
	var names []string
	for _, h := range a.handlers {
		names = append(names, h.name)
	}
	return strings.Join(names, ", ")
}

// isContainerd reports whether the engine is containerd, which has services of its own at the same socket.
func (a about) isContainerd() bool { return a.engine == "containerd" }

// word turns text of an engine into one short line.
func word(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	return strings.ToValidUTF8(s[:min(len(s), maxWordLength)], "")
}
