package k8s

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestLinesOfALog(t *testing.T) {
	first, last := time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC), time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	begin, end := first.Format(time.RFC3339Nano)+" ", last.Format(time.RFC3339Nano)+" "
	text := strings.Repeat("x", 200_000)
	for _, tt := range []struct {
		name, log, text string
		first, last     time.Time
		fails           bool
	}{
		{"two lines", begin + "a b\n" + end + "c\n", "a b\nc\n", first, last, false},
		{"empty lines", begin + "\n" + end + "\n", "\n\n", first, last, false},
		{"no output", "", "", time.Time{}, time.Time{}, false},
		{"no line end", begin + "a", "a", first, first, false},
		{"a long line", begin + text + "\n" + end + "b\n", text + "\nb\n", first, last, false},
		{"no time", begin + "a\nb\n", "a\n", first, first, true},
		{"no text", "2026-01-01T00:00:00Z\n", "", time.Time{}, time.Time{}, true},
	} {
		var output strings.Builder
		var begin time.Time
		last, err := copyLines(&output, iotest.HalfReader(strings.NewReader(tt.log)), false, func(m time.Time) { begin = m })
		if output.String() != tt.text || !begin.Equal(tt.first) || !last.Equal(tt.last) || errors.Is(err, errNoTime) != tt.fails {
			t.Errorf("%s: %.50q, first %v, last %v, %v", tt.name, output.String(), begin, last, err)
		}
	}
	if _, err := copyLines(io.Discard, io.MultiReader(strings.NewReader(begin+"a\n"), iotest.ErrReader(io.ErrUnexpectedEOF)), false, func(time.Time) {}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a log that is cut off: %v", err)
	}
}

func TestFirstLineOfALog(t *testing.T) {
	var output strings.Builder
	log := strings.NewReader("2026-01-01T00:00:00.5Z a\n2026-01-01T00:00:01Z b\n")
	if _, err := copyLines(&output, log, true, func(time.Time) {}); err != nil || output.String() != "a\n" {
		t.Errorf("the first line is %q, %v", output.String(), err)
	}
}

// A node without a free watch of files shows it in the log of a pod only.
func TestNodeWithoutWatches(t *testing.T) {
	_, err := copyLines(io.Discard, strings.NewReader("failed to create fsnotify watcher: too many open files"), false, func(time.Time) {})
	if err == nil || !strings.Contains(err.Error(), "raise fs.inotify.max_user_instances") {
		t.Errorf("the error is %v", err)
	}
}

func TestKubeletsThatReportAtOnce(t *testing.T) {
	for version, want := range map[string]bool{"v1.37.2": true, "v1.36.0-gke.1": true, "v1.35.9": false, "v2.0.0": true, "": false, "1.36": true, "latest": false} {
		if got := isPrompt(version); got != want {
			t.Errorf("isPrompt(%q) = %t", version, got)
		}
	}
}

func TestTimesInNamesOfEvents(t *testing.T) {
	for name, want := range map[string]int64{"pod.189c3a7f00000000": 0x189c3a7f00000000, "pod": 0, "pod.": 0, "pod.-1": 0, "pod.xyz": 0, "pod.fffffffffffffffff": 0} {
		got, ok := timeOf(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if ok != (want != 0) || ok && got.UnixNano() != want {
			t.Errorf("timeOf(%q) = %v, %t", name, got, ok)
		}
	}
}

// A pod without events that show the reason is an error that names the causes, after a limit.
func TestPodThatStays(t *testing.T) {
	for what, tt := range map[string]struct {
		status corev1.Pod
		want   string
	}{
		"without a node":    {corev1.Pod{}, "the scheduler has not placed the pod after 30s"},
		"without a sandbox": {corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}, "no handler for the class, or the kubelet does not answer"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPod(t.Context(), &watcher{}, &corev1.Pod{}, engine.Process{})
			p.status = &tt.status
			begin := time.Now()
			if err := p.awaitRun(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", what, err, tt.want)
			}
			if took := time.Since(begin); took != 30*time.Second {
				t.Errorf("%s: the wait took %v", what, took)
			}
		})
	}
}

func TestManifest(t *testing.T) {
	e := &Engine{Missing: missing(), target: target.Target{Engine: "k8s", Runtime: "gvisor"}, config: Config{
		Namespace: "ns", Node: "node1", Fleet: "f", Owner: metav1.OwnerReference{UID: "u"}, Labels: map[string]string{"team": "a"}, PullSecrets: []string{"s"},
	}}
	p, err := e.pod(engine.Spec{
		ID: "touchstone-f-n-t1-00001", Image: "i", Process: engine.Process{Args: []string{"/p", "$(A)"}, Env: []string{"B=$(C)=d"}},
		Mounts: []engine.Mount{{Target: "/m"}}, Resources: engine.Resources{CPU: 0.5, Memory: 64 << 20},
	})
	must.Do(t, err)
	c := p.Spec.Containers[0]
	if *p.Spec.RuntimeClassName != "gvisor" || p.Labels[engine.Label] != "f" || p.Labels["team"] != "a" || p.OwnerReferences[0].UID != "u" || *p.Spec.AutomountServiceAccountToken {
		t.Errorf("the pod is %+v", p)
	}
	if c.Command[1] != "$$(A)" || c.Env[0].Name != "B" || c.Env[0].Value != "$$(C)=d" {
		t.Errorf("the program is %q with %v", c.Command, c.Env)
	}
	if c.Resources.Limits.Cpu().MilliValue() != 500 || c.Resources.Limits.Memory().Value() != 64<<20 || !c.Resources.Requests.Cpu().IsZero() || len(c.Resources.Requests) != 2 {
		t.Errorf("the limits are %+v", c.Resources)
	}
	if p.Spec.Volumes[0].EmptyDir.Medium != corev1.StorageMediumMemory || c.VolumeMounts[0].MountPath != "/m" || *p.Spec.SecurityContext.FSGroup != user {
		t.Errorf("the volumes are %+v", p.Spec.Volumes)
	}
	if len(e.config.Labels) != 1 {
		t.Errorf("the labels of the configuration have changed to %v", e.config.Labels)
	}
}

func TestSpecsThatNoPodCanHave(t *testing.T) {
	e := &Engine{Missing: missing(), config: Config{Fleet: "f"}}
	args := engine.Process{Args: []string{"/p"}}
	const id = "touchstone-f-x"
	for want, spec := range map[string]engine.Spec{
		"mark of this cluster run":   {ID: "touchstone-g-x", Process: args},
		"a pod cannot have the name": {ID: "touchstone-f-X_y", Process: args},
		"the program is not given":   {ID: id},
		"writable root":              {ID: id, Process: args, Writable: true},
		"host network":               {ID: id, Process: args, Network: engine.HostNet},
		"bridged network":            {ID: id, Process: args, Network: engine.Bridged},
		"bind mount":                 {ID: id, Process: args, Mounts: []engine.Mount{{Source: "/a", Target: "/b"}}},
		"a process limit":            {ID: id, Process: args, Resources: engine.Resources{PIDs: 5}},
		"leave out cpuset":           {ID: id, Process: args, Resources: engine.Resources{CPUSet: "0"}},
	} {
		if _, err := e.pod(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pod(%+v) = %v, want %q", spec, err, want)
		}
	}
}
