package k8s

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// missing lists the capabilities of no pod.
func missing() engine.Missing {
	const role = "the role of the agent does not have it"
	return engine.Missing{
		engine.CanExec:       "it needs the right pods/exec, and " + role,
		engine.CanPause:      "the API of pods cannot freeze a container",
		engine.CanUpdate:     "it needs the right to resize pods, and " + role,
		engine.NetworkHost:   "the restricted level of Pod Security forbids the network of the node",
		engine.NetworkBridge: "no process of the agent is at the other end of the pod's network, on the node itself",
		engine.CanPull:       "the kubelet pulls images, and the API of pods does not remove them",
		engine.CanStats:      "it needs the API of metrics, whose values are up to 15 s old",
		engine.CanWrite:      "the pod's user is not root under the restricted level of Pod Security, and may not write to the image's files",
		engine.CanBind:       "the restricted level of Pod Security forbids directories of the node",
		engine.CanBindMemory: "the restricted level of Pod Security forbids directories of the node",
		engine.OnHost:        "the agent has a PID namespace of its own, as an ordinary pod",
		engine.DirectCalls:   "the kubelet makes a pod in one go, after a request to the API server; pods.start and pods.delete measure the stages",
	}
}

// Engine makes pods of one RuntimeClass.
type Engine struct {
	engine.Missing
	driver  *Driver
	config  Config
	target  target.Target
	watcher *watcher
	close   sync.Once
}

var (
	_ engine.Engine = (*Engine)(nil)
	_ engine.Stager = (*Engine)(nil)
)

// Info implements engine.Engine.
func (e *Engine) Info() engine.Info {
	class, handler := e.target.Runtime, e.config.Handlers[e.target.Runtime]
	version := "the cluster's default class"
	switch {
	case class != "" && handler != "":
		version = fmt.Sprintf("handler %s", handler)
	case class != "":
		version = "RuntimeClass " + class
	}
	info := engine.Info{
		Target: e.target, Version: fmt.Sprintf("%s, kubelet %s", version, e.config.KubeletVersion), Isolation: engine.Unknown, Cgroup: "the kubelet's",
		Notes: []string{
			"a pod of one container on the agent's node, at the restricted level of Pod Security: not root, no privileges, a read-only root",
			"no token of a service account, and no volume that the benchmark does not need: a volume delays a pod by up to 300 ms",
			"standard error is part of the output, because the log of a pod has both",
		},
	}
	if !isPrompt(e.config.KubeletVersion) {
		info.Caveat = fmt.Sprintf("the kubelet %s reports the states of pods up to 1 s late, so no stage ends at such a state; Kubernetes 1.%d and later report them at once",
			e.config.KubeletVersion, promptKubelet)
	}
	source := "the condition PodReadyToStartContainers"
	if e.config.Events {
		source = "the event Pulled"
	}
	info.Conditions = map[string]string{"sandbox known by": source}
	return info
}

// Stages implements engine.Stager.
func (e *Engine) Stages() []engine.Stage {
	stages := []engine.Stage{
		engine.StageAccepted, engine.StageScheduled, engine.StageFirstLine, engine.StageRunning, engine.StageReady, engine.StageLastLine, engine.StageDeleted,
	}
	if isPrompt(e.config.KubeletVersion) {
		stages = append(stages, engine.StageTerminated)
	}
	switch {
	case e.watcher.config.Events:
		stages = append(stages, engine.StageSandboxed, engine.StagePrepared, engine.StageStopping)
	case isPrompt(e.config.KubeletVersion):
		stages = append(stages, engine.StageSandboxed)
	}
	return stages
}

// Ping implements engine.Stager. The API server authenticates and authorizes the request like the creation of a pod, and answers it from memory.
func (e *Engine) Ping(ctx context.Context) error {
	_, err := e.watcher.pods().List(ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0", LabelSelector: e.watcher.selector})
	return explain(err)
}

// Close ends the watch with the last target.
func (e *Engine) Close() error {
	e.close.Do(e.driver.release)
	return nil
}

// Create checks the spec. The pod exists from Start on.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	manifest, err := e.pod(spec)
	if err != nil {
		return nil, fmt.Errorf("create pod %q: %w", spec.ID, err)
	}
	return newPod(ctx, e.watcher, manifest, spec.Process), nil
}

// user is the user and the group of all programs.
const user = 65532

// graceSeconds is the time from SIGTERM to SIGKILL at the deletion of a pod.
const graceSeconds = 5

// pod is the manifest of a container.
func (e *Engine) pod(spec engine.Spec) (*corev1.Pod, error) {
	if prefix := engine.Prefix + e.config.Fleet + "-"; !strings.HasPrefix(spec.ID, prefix) {
		return nil, fmt.Errorf("the name does not begin with %q, the mark of this cluster run", prefix)
	}
	if problems := validation.IsDNS1123Label(spec.ID); len(problems) > 0 {
		return nil, fmt.Errorf("a pod cannot have the name: %s", strings.Join(problems, "; "))
	}
	if len(spec.Process.Args) == 0 {
		return nil, fmt.Errorf("the program is not given")
	}
	volumes, mounts, err := e.volumes(spec)
	if err != nil {
		return nil, err
	}
	limits, err := limitsOf(spec.Resources)
	if err != nil {
		return nil, err
	}
	labels := maps.Clone(e.config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[engine.Label], labels[NodeLabel] = e.config.Fleet, labelOf(e.config.Node)
	var class *string
	if e.target.Runtime != "" {
		class, labels[ClassLabel] = &e.target.Runtime, labelOf(e.target.Runtime)
	}
	var secrets []corev1.LocalObjectReference
	for _, name := range e.config.PullSecrets {
		secrets = append(secrets, corev1.LocalObjectReference{Name: name})
	}
	no, yes := false, true
	uid, grace := int64(user), int64(graceSeconds)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: spec.ID, Namespace: e.config.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{e.config.Owner},
		},
		Spec: corev1.PodSpec{
			RuntimeClassName: class, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no, ImagePullSecrets: secrets, Tolerations: e.config.Tolerations,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &uid, RunAsGroup: &uid, FSGroup: fsGroup(volumes, uid),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Affinity: onNode(e.config.Node), Volumes: volumes,
			Containers: []corev1.Container{{
				Name: containerName, Image: spec.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: literals(spec.Process.Args), Env: environment(spec.Process.Env), VolumeMounts: mounts,
				Resources: corev1.ResourceRequirements{Limits: limits, Requests: nothing(limits)},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}, nil
}

const containerName = "program"

// onNode pins a pod to a node by its name. The scheduler still places it, and reports why it cannot.
func onNode(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
}

// labelOf is a name as the value of a label, which has at most 63 characters.
func labelOf(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-_.")
}

// volumes are the file systems in memory of a spec. Other mounts need directories of the node.
func (e *Engine) volumes(spec engine.Spec) (volumes []corev1.Volume, mounts []corev1.VolumeMount, err error) {
	lack := func(c engine.Capability) error { return e.Supports(c) }
	switch {
	case spec.Writable:
		return nil, nil, lack(engine.CanWrite)
	case spec.Network == engine.HostNet:
		return nil, nil, lack(engine.NetworkHost)
	case spec.Network == engine.Bridged, spec.Join != "":
		return nil, nil, lack(engine.NetworkBridge)
	}
	for i, m := range spec.Mounts {
		if m.Source != "" {
			return nil, nil, lack(engine.CanBind)
		}
		name := fmt.Sprintf("memory-%d", i)
		volumes = append(volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: m.Target, ReadOnly: m.ReadOnly})
	}
	return volumes, mounts, nil
}

// fsGroup lets the program write to its volumes.
func fsGroup(volumes []corev1.Volume, gid int64) *int64 {
	if len(volumes) == 0 {
		return nil
	}
	return &gid
}

// limitsOf are the limits of a container; nil without limits.
func limitsOf(r engine.Resources) (corev1.ResourceList, error) {
	switch {
	case r.PIDs > 0:
		return nil, &engine.UnsupportedError{What: "a process limit", Reason: "the kubelet sets it for all pods of the node, and a pod cannot"}
	case r.CPUSet != "":
		return nil, &engine.UnsupportedError{What: "a CPU set", Reason: "the kubelet chooses the CPUs of a pod", Advice: "leave out cpuset and pinning in the plan"}
	}
	limits := corev1.ResourceList{}
	if r.CPU > 0 {
		limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(r.CPU*1000), resource.DecimalSI)
	}
	if r.Memory > 0 {
		limits[corev1.ResourceMemory] = *resource.NewQuantity(r.Memory, resource.BinarySI)
	}
	if len(limits) == 0 {
		return nil, nil
	}
	return limits, nil
}

// nothing requests none of the limited resources. A pod without a request would request its limit, and a full node would refuse it.
func nothing(limits corev1.ResourceList) corev1.ResourceList {
	if limits == nil {
		return nil
	}
	requests := corev1.ResourceList{}
	for name := range limits {
		requests[name] = resource.Quantity{}
	}
	return requests
}

// environment is the environment of a program. The API has names and values apart.
func environment(variables []string) []corev1.EnvVar {
	var list []corev1.EnvVar
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		list = append(list, corev1.EnvVar{Name: name, Value: literal(value)})
	}
	return list
}

func literals(texts []string) []string {
	var list []string
	for _, text := range texts {
		list = append(list, literal(text))
	}
	return list
}

// literal protects a text from the kubelet, which replaces $(NAME) by a variable.
func literal(text string) string { return strings.ReplaceAll(text, "$(", "$$(") }
