package outage

import (
	"fmt"
	"slices"
	"strings"
)

// foreignRun has the form of a run's ID, and is older than all runs.
const foreignRun = "20200101-000000-abcd"

// bystanders are objects of others: with the prefix of a run in their names, with the labels of a run, and beside these. Each node has a pod.
const bystanders = `
apiVersion: v1
kind: Namespace
metadata: {name: neighbour}
---
apiVersion: v1
kind: Namespace
metadata: {name: touchstone-20200101-000000-abcd}
---
apiVersion: v1
kind: Namespace
metadata: {name: touchstone-by-hand, labels: {touchstone.run: 20200101-000000-abcd}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: touchstone-20200101-000000-abcd-fleet, namespace: touchstone-by-hand, labels: {touchstone.run: 20200101-000000-abcd}}
data: {fleet.json: '{"id": "20200101-000000-abcd", "namespace": "neighbour", "own_namespace": true}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: touchstone-20200101-000000-abcd, namespace: neighbour, labels: {touchstone.run: 20200101-000000-abcd}}
`

// bystander is a pod of others, with the label of the agents of a run.
const bystander = `---
apiVersion: v1
kind: Pod
metadata: {name: touchstone-20200101-000000-abcd-NODE-agent, namespace: neighbour, labels: {touchstone.run: RUN, touchstone.role: by-hand}}
spec:
  nodeSelector: {kubernetes.io/hostname: NODE}
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers: [{name: c, image: localhost/probe:1, imagePullPolicy: Never, args: [ready]}]
`

// plant makes the bystanders, and waits until their pods run.
func (s *site) plant() {
	s.Helper()
	text := bystanders
	for n := 1; n <= s.nodes; n++ {
		text += strings.NewReplacer("NODE", nodeName(n), "RUN", foreignRun).Replace(bystander)
	}
	s.Apply(s, text)
	s.Kubectl(s, "wait", "--for=condition=Ready", "pods", "--all", "--namespace", "neighbour", "--timeout=180s")
}

// claim gives the bystanders in the neighbour's namespace the label of a run, and plants another config map with its name.
func (f *fleet) claim() {
	f.Helper()
	f.Kubectl(f, "label", "--overwrite", "--namespace", "neighbour", "pods,configmaps", "--all", "touchstone.run="+f.id)
}

// objects lists the objects of the cluster that a run may make or remove.
func (s *site) objects() ([]string, error) {
	text, err := s.kubectl("get", "namespaces,pods,configmaps,secrets,serviceaccounts,roles,rolebindings", "--all-namespaces", "--no-headers",
		"--output", "custom-columns=:kind,:metadata.namespace,:metadata.name,:metadata.uid")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines, nil
}

// remains lists in a node the programs that run, the volumes of pods and the mounts in them. The programs of the command itself do not count.
const remains = `ps -eo args= | awk '{ n = split($1, part, "/"); print "process", part[n] }' | grep -vE ' (ps|awk|sh|grep|sort|bash|sleep)$' | sort
ls /var/lib/kubelet/pods | sed 's/^/pod /' | sort
awk '$2 ~ "/var/lib/kubelet/pods/|/run/containerd/io.containerd" { n = split($2, part, "/"); print "mount", part[n] }' /proc/mounts | grep -vE ' (rootfs|shm)$' | sort
awk '$2 ~ "/var/lib/kubelet/pods/|/run/containerd/io.containerd" { n++ } END { print "mounts", n + 0 }' /proc/mounts
ls /run/netns 2>/dev/null | wc -l | sed 's/^/networks /'`

// state lists the objects of the cluster, and the remains on its nodes.
func (s *site) state() ([]string, error) {
	lines, err := s.objects()
	for n := 1; n <= s.nodes && err == nil; n++ {
		for line := range strings.SplitSeq(strings.TrimSpace(s.Node(s, n, "sh", "-c", remains)), "\n") {
			lines = append(lines, fmt.Sprintf("node%d: %s", n, line))
		}
	}
	return lines, err
}

// difference lists the lines that only one of two lists has.
func difference(baseline, state []string) (absences, additions []string) {
	count := map[string]int{}
	for _, line := range baseline {
		count[line]--
	}
	for _, line := range state {
		count[line]++
	}
	for line, n := range count {
		for ; n < 0; n++ {
			absences = append(absences, line)
		}
		for ; n > 0; n-- {
			additions = append(additions, line)
		}
	}
	slices.Sort(absences)
	slices.Sort(additions)
	return absences, additions
}
