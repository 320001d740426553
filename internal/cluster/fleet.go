// Package cluster executes a plan on the nodes of a Kubernetes cluster, one run a node.
//
// The coordinator creates the objects of a [Fleet]: a namespace, a service account with a role, the plan, and one pod with an agent for each chosen
// node. An agent executes the plan by the engine k8s and writes each record of its run to its log ([record]). The coordinator reads the logs and
// writes the same runs into its own results file. It needs no connection to the agents but the API server, no storage in the cluster, and no
// right of cluster administration but a namespace.
//
// Agents are pods, and not the indexed Job that could also hold them. The pods of a Job share one template, so the scheduler would choose the node of
// each index, and the coordinator would know it only afterwards; K nodes at once in the user's order is not possible; and a Job replaces a lost pod
// without the records of the earlier one. A DaemonSet would also run on other nodes.
//
// The package refuses nodes that cannot take a pod, a plan with targets of other engines, and does not touch objects without the name and
// the label of the fleet.
package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Fleet describes a cluster run. Its objects follow from it alone, so that a manifest is exactly what a run creates.
type Fleet struct {
	// ID names the run. All names of its objects begin with engine.Prefix and the ID, and all objects have it as their label.
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	// OwnNamespace is set if the run makes the namespace, and removes it at the end.
	OwnNamespace bool `json:"own_namespace"`
	// Name is the name of the plan, and Plan the plan itself, as YAML with all targets named.
	Name string `json:"name"`
	Plan string `json:"plan"`
	// Seed determines the seeds of all nodes; see NodeSeed.
	Seed uint64 `json:"seed,string"`
	// Image holds the agent and all programs. PullSecrets are the names of secrets for it in the namespace.
	Image       string   `json:"image"`
	PullSecrets []string `json:"pull_secrets,omitempty"`
	// Parallel is the number of nodes that measure at once; 0 is all of them.
	Parallel int `json:"parallel,omitempty"`
	// Lease is the longest time without a coordinator. An agent then ends its run.
	Lease time.Duration `json:"lease_ns"`
	// Events is set if the agents may read the events of the namespace.
	Events bool `json:"events"`
	// Privileged is set if the agents are root on their nodes and measure them like machines, without pods.
	Privileged bool `json:"privileged,omitempty"`
	// Targets are the targets that the plan names. If one of them works on no node, the run has failed.
	Targets []string `json:"targets,omitempty"`
	// Handlers are the handlers of the RuntimeClasses of the plan.
	Handlers map[string]string `json:"handlers,omitempty"`
	// Caveats are facts about the run that the reports of all nodes mention.
	Caveats []string `json:"caveats,omitempty"`
	Nodes   []Node   `json:"nodes"`
}

// Node is a node of a fleet.
type Node struct {
	result.Node
	// Arch is the architecture in Go's spelling.
	Arch string `json:"arch"`
}

// DefaultLease is the lease of a run. A coordinator that is killed has this time to come back by touchstone cluster collect, and the agents go on
// meanwhile.
const DefaultLease = time.Hour

// The longest name of a node in the ID of its run, in characters. The names of measured pods contain the ID and have at most 63 characters: the prefix
// has 11, the ID of the fleet 20, and 15 remain for the trial.
const maxNodePart = 16

// notLabel matches the characters that a name of a pod cannot have.
var notLabel = regexp.MustCompile(`[^a-z0-9]+`)

// RunID is the ID of the run of a node.
func (f *Fleet) RunID(node string) string { return f.ID + "-" + nodePart(node) }

// nodePart is the name of a node as a part of other names.
func nodePart(node string) string {
	part := strings.Trim(notLabel.ReplaceAllString(node, "-"), "-")
	if part != node || len(part) > maxNodePart {
		// Two nodes may have the same part.
		sum := sha256.Sum256([]byte(node))
		const digits = 6
		part = strings.Trim(part[:min(len(part), maxNodePart-digits-1)], "-") + "-" + hex.EncodeToString(sum[:])[:digits]
	}
	return strings.TrimPrefix(part, "-")
}

// AgentName is the name of a node's agent.
func (f *Fleet) AgentName(node string) string { return engine.Prefix + f.RunID(node) + "-agent" }

// NodeSeed is the seed of the order of trials on a node. Each node has an order of its own: an effect of the order does not appear on all of them.
func (f *Fleet) NodeSeed(node string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", f.Seed, node))
	return binary.LittleEndian.Uint64(sum[:])
}

// Facts returns what an agent knows of its fleet: all but the other nodes.
func (f *Fleet) Facts() string {
	facts := *f
	facts.Nodes, facts.Plan = nil, ""
	return marshal(facts)
}

// marshal spells plain data as JSON.
func marshal(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("plain data cannot be written as JSON: %v", err))
	}
	return string(data)
}
