package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Selection chooses nodes. The zero value chooses all.
type Selection struct {
	// Selector is a selector of labels, as for kubectl.
	Selector string
	// Names are names of nodes.
	Names []string
	// PerKind is the largest number of nodes of each kind; 0 is no limit.
	PerKind int
}

// Excluded is a node that is not measured, with the reason and the remedy.
type Excluded struct {
	Name, Reason string
}

func (e Excluded) String() string {
	return fmt.Sprintf("node %s is not measured: %s", e.Name, e.Reason)
}

// mostAbsences is the greatest number of nodes that the caveats of a fleet name with their reasons, unless one more is the last.
const mostAbsences = 3

// Absences are the caveats about the nodes that are not measured. A report without them would speak of the whole cluster.
func Absences(exclusions []Excluded) []string {
	var caveats []string
	for i, e := range exclusions {
		if rest := len(exclusions) - i; i == mostAbsences && rest > 1 {
			return append(caveats, fmt.Sprintf("%d more nodes are not measured", rest))
		}
		caveats = append(caveats, e.String())
	}
	return caveats
}

// kindLabels are labels of the instance type. The first one takes precedence.
var kindLabels = []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType}

// factLabels are the labels of a node that may explain its speed.
var factLabels = []string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, "eks.amazonaws.com/nodegroup", "eks.amazonaws.com/capacityType",
	"cloud.google.com/gke-nodepool", "cloud.google.com/gke-spot", "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool", "karpenter.sh/capacity-type",
	"node.cluster.x-k8s.io/pool",
}

// Choose returns the chosen nodes in the order of their names, and the nodes that cannot be measured. A name that no node has is an error.
func Choose(ctx context.Context, client *kube.Client, fleet string, s Selection) (nodes []Node, exclusions []Excluded, err error) {
	list, err := client.Nodes().List(ctx, metav1.ListOptions{LabelSelector: s.Selector})
	if err != nil {
		return nil, nil, fmt.Errorf("list the nodes: %w", client.Explain(err))
	}
	names := map[string]bool{}
	for i := range list.Items {
		names[list.Items[i].Name] = true
	}
	for _, name := range s.Names {
		if !names[name] {
			return nil, nil, fmt.Errorf("no node is named %q%s; kubectl get nodes lists them", name, ofSelector(s.Selector))
		}
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	count := map[string]int{}
	for i := range list.Items {
		n := &list.Items[i]
		if len(s.Names) > 0 && !slices.Contains(s.Names, n.Name) {
			continue
		}
		if reason := obstacle(n); reason != "" {
			exclusions = append(exclusions, Excluded{n.Name, reason})
			continue
		}
		node := Node{facts(n), n.Status.NodeInfo.Architecture}
		node.Fleet = fleet
		if count[node.Kind]++; s.PerKind > 0 && count[node.Kind] > s.PerKind {
			continue
		}
		nodes = append(nodes, node)
	}
	return nodes, exclusions, nil
}

func ofSelector(selector string) string {
	if selector == "" {
		return ""
	}
	return fmt.Sprintf(" among the nodes with %s", selector)
}

// facts are the facts of a node as it reports them.
func facts(n *corev1.Node) result.Node {
	info := n.Status.NodeInfo
	node := result.Node{
		Name: n.Name, Kubelet: result.ConditionText(info.KubeletVersion), Engine: result.ConditionText(info.ContainerRuntimeVersion), Labels: map[string]string{},
	}
	for _, label := range factLabels {
		if value, ok := n.Labels[label]; ok {
			node.Labels[label] = value
		}
	}
	for _, label := range kindLabels {
		if kind := n.Labels[label]; kind != "" {
			node.Kind = kind
			return node
		}
	}
	const gib = 1 << 30
	node.Kind = fmt.Sprintf("%s, %s, %d GiB", info.Architecture, wording.Counted(int(n.Status.Capacity.Cpu().Value()), "CPU"), (n.Status.Capacity.Memory().Value()+gib/2)/gib)
	return node
}

// obstacle is the reason why a node takes no agent, with the remedy; empty if it takes one.
func obstacle(n *corev1.Node) string {
	if system := n.Status.NodeInfo.OperatingSystem; system != "" && system != "linux" {
		return fmt.Sprintf("it runs %s, and the image is for linux", system)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("it is not ready (%s); kubectl describe node %s shows the cause", cmp.Or(c.Message, c.Reason, string(c.Status)), n.Name)
		}
	}
	if n.Spec.Unschedulable {
		return fmt.Sprintf("it is cordoned; kubectl uncordon %s admits pods again", n.Name)
	}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taint := t.Key
			if t.Value != "" {
				taint += "=" + t.Value
			}
			if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
				return fmt.Sprintf("it has the taint %s:%s of the cluster itself, which goes when its cause has gone; kubectl describe node %s shows it", taint, t.Effect, n.Name)
			}
			return fmt.Sprintf("it has the taint %s:%s, which keeps pods away; kubectl taint node %s %s:%s- removes it", taint, t.Effect, n.Name, t.Key, t.Effect)
		}
	}
	return ""
}
