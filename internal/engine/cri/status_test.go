package cri

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// answers restores an engine's responses from a capture: the conditions and handlers, and the verbose part as text.
func answers(t testing.TB, data []byte) *api.StatusResponse {
	t.Helper()
	var captured struct {
		Conditions []struct {
			Type, Reason, Message string
			Status                bool
		}
		RuntimeHandlers []struct{ Name string }
		Config          json.RawMessage
	}
	must.Do(t, json.Unmarshal(data, &captured))
	answer := &api.StatusResponse{Status: &api.RuntimeStatus{}, Info: map[string]string{"config": string(captured.Config)}}
	for _, c := range captured.Conditions {
		answer.Status.Conditions = append(answer.Status.Conditions, &api.RuntimeCondition{Type: c.Type, Reason: c.Reason, Message: c.Message, Status: c.Status})
	}
	for _, h := range captured.RuntimeHandlers {
		answer.RuntimeHandlers = append(answer.RuntimeHandlers, &api.RuntimeHandler{Name: h.Name})
	}
	return answer
}

func TestReadStatus(t *testing.T) {
	version := &api.VersionResponse{RuntimeName: "containerd", RuntimeVersion: "1.6.20~ds1"}
	shims := []configured{
		{name: "crun", shim: shimRunc, binary: "/usr/local/bin/crun"},
		{name: "runc", shim: shimRunc, binary: "/usr/sbin/runc"},
		{name: "runsc", shim: shimRunsc, config: "/srv/lab/runsc-shim.toml"},
	}
	for file, want := range map[string][]configured{
		"containerd-1.6": shims, "containerd-1.7": shims, "containerd-2.4": shims,
		"crio-1.34": {{name: "crun", binary: "/usr/local/bin/crun"}, {name: "runc", binary: "/usr/sbin/runc"}},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", "status-"+file+".json"))
		must.Do(t, err)
		got, err := readStatus(version, answers(t, data))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if got.engine != "containerd" || got.version != "1.6.20~ds1" || got.ready != nil || got.systemd || !got.complete {
			t.Errorf("%s: %+v", file, got)
		}
		if diff := cmp.Diff(want, got.handlers, cmp.AllowUnexported(configured{})); diff != "" {
			t.Errorf("%s: handlers (-want +got):\n%s", file, diff)
		}
	}
}

func TestReadStatusOfOthers(t *testing.T) {
	version := &api.VersionResponse{RuntimeName: "my\nengine\xff", RuntimeVersion: strings.Repeat("1", 1000)}
	for name, tt := range map[string]struct {
		answer *api.StatusResponse
		check  func(about) bool
	}{
		"nothing": {&api.StatusResponse{}, func(a about) bool {
			return !a.complete && a.ready == nil && a.engine == "my engine" && len(a.version) == maxWordLength
		}},
		"nonsense": {&api.StatusResponse{Info: map[string]string{"config": `{"containerd":{"runtimes":[1,2]}}`}}, func(a about) bool { return !a.complete }},
		"handlers": {
			&api.StatusResponse{RuntimeHandlers: []*api.RuntimeHandler{{Name: ""}, {Name: "b"}, {Name: "a"}}},
			func(a about) bool { return a.names() == "a, b" && a.complete },
		},
		"systemd, by handler": {
			&api.StatusResponse{Info: map[string]string{"config": `{"containerd":{"runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}}`}},
			func(a about) bool { return len(a.handlers) == 1 && a.handlers[0].systemd },
		},
		"systemd, for all": {
			&api.StatusResponse{Info: map[string]string{"config": `{"crio":{"CgroupManagerName":"systemd"}}`}},
			func(a about) bool { return a.systemd },
		},
		"no network": {
			&api.StatusResponse{Status: &api.RuntimeStatus{Conditions: []*api.RuntimeCondition{{Type: "NetworkReady", Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized"}, {Type: "Other"}}}},
			func(a about) bool {
				return a.ready != nil && a.ready.Error() == "NetworkReady is false: NetworkPluginNotReady cni plugin not initialized"
			},
		},
	} {
		if got, err := readStatus(version, tt.answer); err != nil || !tt.check(got) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := readStatus(&api.VersionResponse{}, &api.StatusResponse{}); err == nil {
		t.Errorf("an engine without a name or version: %+v", got)
	}
}

func TestHandlers(t *testing.T) {
	facts := about{handlers: []configured{{name: "runc", binary: "/runc"}}, complete: true}
	if h, ok := facts.handler("runc"); !ok || h.binary != "/runc" {
		t.Errorf("handler(runc) = %+v, %t", h, ok)
	}
	if _, ok := facts.handler("crun"); ok {
		t.Error("an engine that lists its handlers has one that is not among them")
	}
	if h, ok := (about{}).handler("crun"); !ok || h.name != "crun" {
		t.Errorf("handler(crun) of an engine that lists none = %+v, %t; want it tried", h, ok)
	}
}

// Any response of an engine is read within bounds, and its words fit on a line.
func FuzzReadStatus(f *testing.F) {
	files, err := filepath.Glob("testdata/status-*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Do(f, err)
		f.Add("containerd", "1.6.20", answers(f, data).GetInfo()["config"])
	}
	f.Fuzz(func(t *testing.T, name, version, config string) {
		a, err := readStatus(&api.VersionResponse{RuntimeName: name, RuntimeVersion: version}, &api.StatusResponse{Info: map[string]string{"config": config}})
		if err != nil {
			return
		}
		if strings.ContainsAny(a.engine+a.version, "\n\r") || len(a.engine) > maxWordLength || len(a.version) > maxWordLength {
			t.Errorf("name %q, version %q", a.engine, a.version)
		}
		if !slices.IsSortedFunc(a.handlers, func(x, y configured) int { return strings.Compare(x.name, y.name) }) {
			t.Errorf("handlers are not in order: %v", a.handlers)
		}
	})
}
