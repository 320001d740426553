package cluster

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The labels of all objects, apart from engine.Label, whose value is the ID of the fleet.
const (
	// NodeLabel is the name of the node, shortened to the length of a label.
	NodeLabel = "touchstone.node"
	// RoleLabel is the purpose of an object, RoleAgent for an agent's pod.
	RoleLabel = "touchstone.role"
	RoleAgent = "agent"
)

// The annotations of an agent's pod. Only the coordinator writes them.
const (
	// FactsAnnotation is the Node as JSON.
	FactsAnnotation = "touchstone.facts"
	// LeaseAnnotation changes each time that the coordinator renews the lease. The agent compares no clocks: it measures the time since a change.
	LeaseAnnotation = "touchstone.lease"
	// ReplayAnnotation is a number of a record and a counter: the agent writes all records from the number on again.
	ReplayAnnotation = "touchstone.replay"
	// EndAnnotation ends the agent: EndStop with the trial under way, EndCollected if its records are collected.
	EndAnnotation = "touchstone.end"
	EndStop       = "stop"
	EndCollected  = "collected"
)

// The files and variables of an agent.
const (
	PlanDir      = "/etc/touchstone"
	PlanFile     = "plan.yaml"
	FleetFile    = "fleet.json"
	DataDir      = "/data"
	NodeVariable = "TOUCHSTONE_NODE"
	PodVariable  = "TOUCHSTONE_POD"
	UIDVariable  = "TOUCHSTONE_POD_UID"
	FactVariable = "TOUCHSTONE_NODE_FACTS"
	// ImageVariable is the image of a privileged agent as JSON, for its program on the node. It is in no pod.
	ImageVariable = "TOUCHSTONE_AGENT_IMAGE"
	// EarlierFile is the part of the run that an earlier agent of the node has measured, gzipped; it exists only for the successor of a lost agent.
	EarlierDir  = "/etc/touchstone-earlier"
	EarlierFile = "run.json.gz"
)

// Program is the path of the agent in its image.
const Program = "/touchstone"

// user is the user and the group of the agent, as of the measured pods.
const user = 65532

// Names of containers and volumes.
const agentContainer = "agent"

// name is the name of the objects of a fleet that exist once.
func (f *Fleet) name() string { return engine.Prefix + f.ID }

// coordinatorName is the name of the config map with the whole fleet. touchstone cluster collect, status and stop read it.
func (f *Fleet) coordinatorName() string { return f.name() + "-fleet" }

// earlierName is the name of the config map with the earlier part of a node's run.
func (f *Fleet) earlierName(node string) string { return engine.Prefix + f.RunID(node) + "-earlier" }

func (f *Fleet) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: f.Namespace, Labels: map[string]string{engine.Label: f.ID, "app.kubernetes.io/managed-by": "touchstone"}}
}

// NamespaceObject is the namespace of a fleet. It admits only pods of the restricted level, unless the agents are privileged.
func (f *Fleet) NamespaceObject() *corev1.Namespace {
	meta := f.meta(f.Namespace)
	meta.Namespace = ""
	level := "restricted"
	if f.Privileged {
		level = "privileged"
	}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		meta.Labels["pod-security.kubernetes.io/"+mode] = level
	}
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: meta}
}

// ServiceAccount is the account of all agents.
func (f *Fleet) ServiceAccount() *corev1.ServiceAccount {
	no := false
	return &corev1.ServiceAccount{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: f.meta(f.name()), AutomountServiceAccountToken: &no,
	}
}

// Role has all rights of an agent. A privileged agent makes no pods, and follows only its own.
func (f *Fleet) Role() *rbacv1.Role {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}},
	}
	switch {
	case f.Privileged:
		rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}}
	case f.Events:
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list", "watch"}})
	}
	return &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: f.meta(f.name()), Rules: rules,
	}
}

// RoleBinding gives the role to the account.
func (f *Fleet) RoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: f.meta(f.name()),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: f.name()},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: f.name(), Namespace: f.Namespace}},
	}
}

// ConfigMaps are the config map of the coordinator, and the config map of the agents.
func (f *Fleet) ConfigMaps() []*corev1.ConfigMap {
	types := metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	fleet := *f
	fleet.Plan = "" // the other map has it
	return []*corev1.ConfigMap{
		{TypeMeta: types, ObjectMeta: f.meta(f.coordinatorName()), Data: map[string]string{FleetFile: marshal(fleet)}},
		{TypeMeta: types, ObjectMeta: f.meta(f.name()), Data: map[string]string{PlanFile: f.Plan, FleetFile: f.Facts()}},
	}
}

// Agent is the pod of a node's agent.
func (f *Fleet) Agent(node Node) *corev1.Pod {
	pod := f.restricted(node)
	if f.Privileged {
		privilege(pod)
	}
	return pod
}

// restricted is the pod of an agent without privileges.
func (f *Fleet) restricted(node Node) *corev1.Pod {
	meta := f.meta(f.AgentName(node.Name))
	meta.Labels[NodeLabel], meta.Labels[RoleLabel] = labelOf(node.Name), RoleAgent
	meta.Annotations = map[string]string{FactsAnnotation: marshal(node)}
	yes, no := true, false
	uid, grace := int64(user), int64(30)
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	var secrets []corev1.LocalObjectReference
	for _, name := range f.PullSecrets {
		secrets = append(secrets, corev1.LocalObjectReference{Name: name})
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta,
		Spec: corev1.PodSpec{
			ServiceAccountName: f.name(), AutomountServiceAccountToken: &yes, EnableServiceLinks: &no, ImagePullSecrets: secrets,
			// A killed agent starts again on its node and goes on from its results file.
			RestartPolicy: corev1.RestartPolicyOnFailure, TerminationGracePeriodSeconds: &grace,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &uid, RunAsGroup: &uid, FSGroup: &uid,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Affinity: onNode(node.Name),
			// A lost node may come back. Its agent waits, and the cluster must not evict it after the usual five minutes.
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
			Containers: []corev1.Container{{
				Name: agentContainer, Image: f.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{Program, "agent"},
				Env: []corev1.EnvVar{
					field(NodeVariable, "spec.nodeName"), field(PodVariable, "metadata.name"), field(UIDVariable, "metadata.uid"),
					field(FactVariable, "metadata.annotations['"+FactsAnnotation+"']"),
					{Name: "HOME", Value: DataDir},
					{Name: "TMPDIR", Value: DataDir},
				},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "plan", MountPath: PlanDir, ReadOnly: true}, {Name: "earlier", MountPath: EarlierDir, ReadOnly: true}, {Name: "data", MountPath: DataDir},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "plan", VolumeSource: configMap(f.name(), false)},
				{Name: "earlier", VolumeSource: configMap(f.earlierName(node.Name), true)},
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}

// Sample is a pod for a node that does nothing and ends at once.
func (f *Fleet) Sample(node Node, owner metav1.OwnerReference) *corev1.Pod {
	pod := f.plain(node, engine.Prefix+f.RunID(node.Name)+"-sample", probe.Exit(0))
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	return pod
}

// plain is a pod for a node that needs neither rights nor files.
func (f *Fleet) plain(node Node, name string, program []string) *corev1.Pod {
	pod := f.restricted(node)
	no := false
	pod.Name, pod.Labels[RoleLabel], pod.Annotations = name, "sample", nil
	spec := &pod.Spec
	spec.ServiceAccountName, spec.AutomountServiceAccountToken, spec.RestartPolicy, spec.Tolerations = "", &no, corev1.RestartPolicyNever, nil
	spec.Containers[0].Resources = corev1.ResourceRequirements{}
	spec.Volumes, spec.Containers[0].VolumeMounts, spec.Containers[0].Env, spec.Containers[0].Command = nil, nil, nil, program
	return pod
}

// configMap is the volume of a config map, which may be absent if it is optional.
func configMap(name string, optional bool) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional}}
}

// onNode pins a pod to a node by its name. The scheduler still places the pod, and reports why it cannot; nodeName would bypass it.
func onNode(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
}

// labelOf is a name as the value of a label.
func labelOf(name string) string {
	name = name[:min(len(name), validation.LabelValueMaxLength)]
	return string(bytes.TrimRight([]byte(name), "-_."))
}

// Base returns the objects that exist before the first agent, in the order of their creation.
func (f *Fleet) Base() []runtime.Object {
	var objects []runtime.Object
	if f.OwnNamespace {
		objects = append(objects, f.NamespaceObject())
	}
	// The config map of the coordinator is the first one: with it, another program finds what a killed coordinator has made.
	for _, m := range f.ConfigMaps() {
		objects = append(objects, m)
	}
	return append(objects, f.ServiceAccount(), f.Role(), f.RoleBinding())
}

// Manifest spells the objects of a fleet. It has the agents of all nodes, unless nodes wait for their turn: touchstone cluster collect then creates each
// agent in its turn.
func (f *Fleet) Manifest() ([]byte, error) {
	objects := f.Base()
	if f.AtOnce() == len(f.Nodes) {
		for _, n := range f.Nodes {
			objects = append(objects, f.Agent(n))
		}
	}
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write the manifest: %w", err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}
