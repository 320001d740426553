package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Level is the weight of a finding.
type Level string

// The levels of findings. Only an obstacle prevents a run.
const (
	Fine     Level = "ok"
	Caution  Level = "note"
	Obstacle Level = "obstacle"
)

// Finding is the result of one check.
type Finding struct {
	Level Level `json:"level"`
	// The name of the checked object comes first, then the result.
	What   string `json:"what"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// String spells a finding in one line.
func (f Finding) String() string {
	text := f.What + ": " + f.Text
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text
}

// Checker checks whether a cluster run can work.
type Checker struct {
	Client   *kube.Client
	Fleet    Fleet
	Excluded []Excluded
	// Report receives the findings, Step the step under way.
	Report func(Finding)
	Step   func(string)

	hasQuota bool // a quota is an obstacle

	mu     sync.Mutex
	failed bool
}

func (c *Checker) report(level Level, what, text, remedy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = c.failed || level == Obstacle
	c.Report(Finding{level, what, text, remedy})
}

// Passed reports whether no obstacle was found.
func (c *Checker) Passed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failed
}

// Run makes all checks that create nothing.
func (c *Checker) Run(ctx context.Context) error {
	info, err := c.Client.Version(ctx)
	if err != nil {
		return c.Client.Explain(err)
	}
	c.report(Fine, "cluster", fmt.Sprintf("Kubernetes %s at %s", info.GitVersion, c.Client.Host), "")
	classes, err := Classes(ctx, c.Client)
	if err != nil {
		return err
	}
	if err := c.rights(ctx); err != nil {
		return err
	}
	if err := c.nodes(ctx, classes); err != nil {
		return err
	}
	if err := c.quotas(ctx); err != nil {
		return err
	}
	return c.admission(ctx)
}

// right is a request that a run makes.
type right struct {
	group, resource, sub string
	verbs                []string
	everywhere           bool // in no namespace
	optional             string
}

// rights asks for each right of the coordinator. The API server refuses a role whose maker lacks its rights.
func (c *Checker) rights(ctx context.Context) error {
	namespace := c.Fleet.Namespace
	rights := []right{
		{resource: "nodes", verbs: []string{"list"}, everywhere: true},
		{group: nodev1.GroupName, resource: "runtimeclasses", verbs: []string{"list"}, everywhere: true},
		{resource: "serviceaccounts", verbs: []string{"create", "list", "delete"}},
		{resource: "configmaps", verbs: []string{"create", "list", "update", "delete"}},
		{group: rbacv1.GroupName, resource: "roles", verbs: []string{"create", "list", "delete"}},
		{group: rbacv1.GroupName, resource: "rolebindings", verbs: []string{"create", "list", "delete"}},
		{resource: "pods", verbs: []string{"create", "get", "list", "watch", "patch", "delete"}},
		{resource: "pods", sub: "log", verbs: []string{"get"}},
	}
	if c.Fleet.Events {
		rights = append(rights, right{resource: "events", verbs: []string{"list", "watch"}, optional: "--no-events does without"})
	}
	if c.Fleet.OwnNamespace {
		rights = append(rights, right{resource: "namespaces", verbs: []string{"create", "get", "list", "delete"}, everywhere: true, optional: "--namespace names an existing namespace in place of a new one"})
	}
	count := 0
	var gaps []gap
	for _, r := range rights {
		name := r.resource
		if r.sub != "" {
			name += "/" + r.sub
		}
		place := fmt.Sprintf("in namespace %q", namespace)
		if r.everywhere {
			place = "in the whole cluster"
		}
		var verbs []string
		reason := ""
		for _, verb := range r.verbs {
			count++
			ask := authorizationv1.ResourceAttributes{Group: r.group, Resource: r.resource, Subresource: r.sub, Verb: verb, Namespace: namespace}
			if r.everywhere {
				ask.Namespace = ""
			}
			ok, cause, err := c.Client.Allowed(ctx, ask)
			if err != nil {
				return c.Client.Explain(err)
			}
			if !ok {
				verbs, reason = append(verbs, verb), cmp.Or(reason, cause)
			}
		}
		if verbs == nil {
			continue
		}
		remedy := cmp.Or(r.optional, "an administrator can grant it, or apply the objects of touchstone cluster run --manifest")
		i := slices.IndexFunc(gaps, func(g gap) bool { return g.place == place && g.reason == reason && g.remedy == remedy })
		if i < 0 {
			i = len(gaps)
			gaps = append(gaps, gap{place: place, reason: reason, remedy: remedy})
		}
		gaps[i].rights = append(gaps[i].rights, strings.Join(verbs, ", ")+" "+name)
	}
	for _, g := range gaps {
		text := fmt.Sprintf("no right %s to %s", g.place, strings.Join(g.rights, "; to "))
		if g.reason != "" {
			text += ": " + g.reason
		}
		c.report(Obstacle, "rights", text, g.remedy)
	}
	if gaps == nil {
		c.report(Fine, "rights", fmt.Sprintf("all %d that a run needs", count), "")
	}
	return nil
}

// gap is rights that are missing in one place for one reason, with one remedy.
type gap struct {
	place, reason, remedy string
	rights                []string
}

// nodes reports the chosen nodes, and the classes that they have.
func (c *Checker) nodes(ctx context.Context, classes []nodev1.RuntimeClass) error {
	for _, e := range c.Excluded {
		c.report(Caution, "node "+e.Name, "not measured: "+e.Reason, "")
	}
	kinds, archs, kubelets := map[string]int{}, map[string]int{}, map[string]int{}
	for _, n := range c.Fleet.Nodes {
		kinds[n.Kind]++
		archs[n.Arch]++
		kubelets[n.Kubelet+", "+n.Engine]++
	}
	if c.Fleet.Privileged {
		c.report(Caution, "agents", PrivilegedText, "without --privileged-agents all pods are restricted, and pods of RuntimeClasses are measured")
	}
	c.report(Fine, "nodes", fmt.Sprintf("%d chosen: %s; kubelet %s", len(c.Fleet.Nodes), counts(kinds), counts(kubelets)), "")
	if len(archs) > 1 {
		c.report(Caution, "architectures", counts(archs), "give touchstone for each of them to --program of touchstone cluster image push, so that one image serves all; or choose nodes of one with --selector kubernetes.io/arch=…")
	}
	list, err := c.Client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return c.Client.Explain(err)
	}
	handlers := map[string]map[string]bool{}
	for i := range list.Items {
		n := &list.Items[i]
		handlers[n.Name] = map[string]bool{}
		for _, h := range n.Status.RuntimeHandlers {
			handlers[n.Name][h.Name] = true
		}
	}
	for _, class := range classes {
		if _, isMeasured := c.Fleet.Handlers[class.Name]; !isMeasured {
			continue
		}
		var gaps []string
		for _, n := range c.Fleet.Nodes {
			// Older kubelets, and some engines, report no handlers.
			if names := handlers[n.Name]; len(names) > 0 && !names[class.Handler] {
				gaps = append(gaps, n.Name)
			}
		}
		what := "class " + class.Name
		switch {
		case len(gaps) == len(c.Fleet.Nodes):
			c.report(Obstacle, what, fmt.Sprintf("no chosen node has its handler %q", class.Handler), "leave it out of --targets, or configure the handler in the container engine of the nodes")
		case len(gaps) > 0:
			c.report(Caution, what, fmt.Sprintf("%d of %d nodes do not have its handler %q: %s", len(gaps), len(c.Fleet.Nodes), class.Handler, listed(gaps)),
				"on these nodes its trials are skipped; configure the handler there, or choose other nodes")
		default:
			c.report(Fine, what, "handler "+class.Handler, "")
		}
		if s := class.Scheduling; s != nil && (len(s.NodeSelector) > 0 || len(s.Tolerations) > 0) {
			c.report(Caution, what, "it admits its pods only to some nodes", "on the others its trials are skipped")
		}
	}
	return nil
}

// counts spells numbers by name.
func counts(numbers map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, fmt.Sprintf("%d × %s", numbers[name], name))
	}
	return strings.Join(parts, ", ")
}

// podsPerNode is the number of pods of a run on a node at once: the agent, and a measured pod.
const podsPerNode = 2

// AtOnce is the number of nodes that measure at once.
func (f *Fleet) AtOnce() int {
	if f.Parallel == 0 {
		return len(f.Nodes)
	}
	return min(f.Parallel, len(f.Nodes))
}

// quotas compares the quotas of an existing namespace with the needs of a run.
func (c *Checker) quotas(ctx context.Context) error {
	if c.Fleet.OwnNamespace {
		return nil
	}
	space, err := c.Client.Namespaces().Get(ctx, c.Fleet.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.report(Obstacle, "namespace "+c.Fleet.Namespace, "it does not exist", "create it, or leave out --namespace")
		return nil
	case apierrors.IsForbidden(err): // the other checks show more
	case err != nil:
		return c.Client.Explain(err)
	case space.DeletionTimestamp != nil:
		c.report(Obstacle, "namespace "+c.Fleet.Namespace, "it is being deleted: "+stuck(space), "wait, or name another one")
		return nil
	}
	list, err := c.Client.Quotas(c.Fleet.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		c.report(Caution, "quotas", "not readable", "a quota shows when a pod is created")
		return nil
	}
	if err != nil {
		return c.Client.Explain(err)
	}
	for i := range list.Items {
		q := &list.Items[i]
		for _, name := range []corev1.ResourceName{corev1.ResourcePods, "count/pods"} {
			hard, ok := q.Status.Hard[name]
			if !ok {
				continue
			}
			use := q.Status.Used[name]
			if free, need := hard.Value()-use.Value(), int64(podsPerNode*c.Fleet.AtOnce()); free < need {
				remedy := "raise it"
				if need > podsPerNode {
					remedy += ", choose fewer nodes, or set a smaller --parallel"
				}
				c.hasQuota = true
				c.report(Obstacle, "quota "+q.Name, fmt.Sprintf("it leaves room for pods: %d, and a run has %d at once", free, need), remedy)
			}
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory} {
			if _, ok := q.Status.Hard[name]; ok {
				c.hasQuota = true
				c.report(Obstacle, "quota "+q.Name, fmt.Sprintf("it needs %s for each pod, and measured pods have no limits unless the plan sets them", name), "add a LimitRange with defaults, or name another namespace")
			}
		}
	}
	return nil
}

// admission creates the agent's pod in a dry run of the API server, which asks all admission rules. The namespace of the run may not exist yet.
func (c *Checker) admission(ctx context.Context) error {
	pod := c.Fleet.Agent(c.Fleet.Nodes[0])
	if pod.Namespace = c.Fleet.Namespace; c.Fleet.OwnNamespace {
		pod.Namespace = metav1.NamespaceDefault
	}
	// The account does not exist yet.
	no := false
	pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = "", &no
	c.Client.Warnings()
	_, err := c.Client.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		c.report(Fine, "admission", fmt.Sprintf("namespace %s takes the pod of an agent", pod.Namespace), "")
	case c.Fleet.Privileged && c.Fleet.OwnNamespace && strings.Contains(err.Error(), "violates PodSecurity"):
		c.report(Caution, "admission", "only the namespace of the run admits its pods, which a dry run cannot show", "touchstone cluster check without --dry shows it")
	case c.Fleet.Privileged && strings.Contains(err.Error(), "violates PodSecurity"):
		c.report(Obstacle, "admission", err.Error(), fmt.Sprintf("label the namespace: kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged; or leave out --namespace", pod.Namespace))
	case strings.Contains(err.Error(), "cannot create resource"): // the refusal of a right, before any rule of admission
		c.report(Caution, "admission", "not checked, without the right to create pods in namespace "+pod.Namespace, "a refusal shows when the run creates its first pod")
	case c.hasQuota && strings.Contains(err.Error(), "quota"): // it is an obstacle already
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		c.report(Obstacle, "admission", err.Error(), "an admission rule of the cluster refuses the pod of an agent: ask its administrator for an exemption of the namespace")
	case apierrors.IsNotFound(err):
	default:
		return c.Client.Explain(err)
	}
	for _, text := range c.Client.Warnings() {
		c.report(Caution, "admission", text, "")
	}
	return nil
}

// tryLimit is the longest time for one pod of a class, with the pull of the image.
const tryLimit = 5 * time.Minute

// Try starts one pod of each class on each node, or a privileged one, in the objects of the fleet, which the caller removes if there may be some.
func (c *Checker) Try(ctx context.Context) (hasObjects bool, err error) {
	if hasObjects, err = c.Fleet.Create(ctx, c.Client, nil); err != nil {
		return hasObjects, err
	}
	r := newRoster(func(error) {})
	watch, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	defer group.Wait()
	defer end()
	group.Go(func() {
		_ = kube.Follow(watch, c.Client.Pods(c.Fleet.Namespace), metav1.ListOptions{LabelSelector: engine.Label + "=" + c.Fleet.ID}, r)
	})
	attempts := []attempt{{"the agent", "", []string{Program, "version"}}}
	kind := "the agent's, and one of each class, on each node"
	if c.Fleet.Privileged {
		attempts = []attempt{{what: "the privileged agent"}}
		kind = "one on each node, as root of the node"
	}
	for _, t := range c.targets() {
		what := "class " + t.Runtime
		if t.Runtime == "" {
			what = "the default class"
		}
		attempts = append(attempts, attempt{what, t.Runtime, probe.Exit(0)})
	}
	places := make(chan struct{}, maxTries)
	var tries sync.WaitGroup
	successes := 0
	var problems []problem
	for _, node := range c.Fleet.Nodes {
		for i, attempt := range attempts {
			tries.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				c.Step(fmt.Sprintf("starting a pod of %s on %s", attempt.what, node.Name))
				p, isDone := c.try(ctx, r, node, attempt, i)
				c.mu.Lock()
				defer c.mu.Unlock()
				if isDone {
					successes++
				}
				if p != nil {
					problems = append(problems, *p)
				}
			})
		}
	}
	tries.Wait()
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	for _, f := range joined(c.judge(problems)) {
		c.report(f.Level, f.What, f.Text, f.Remedy)
	}
	if len(problems) == 0 {
		c.report(Fine, "pods", fmt.Sprintf("all %d ran: %s", successes, kind), "")
	}
	return true, nil
}

// problem is the failure of an attempt on a node.
type problem struct {
	attempt, node, text, remedy string
	// lacksHandler is set if the node does not have the handler of the class.
	lacksHandler bool
}

// judge makes findings of problems. A handler that other nodes have is no obstacle: a run skips the trials of its class on this node.
func (c *Checker) judge(problems []problem) []Finding {
	gaps := map[string]int{}
	for _, p := range problems {
		if p.lacksHandler {
			gaps[p.attempt]++
		}
	}
	var findings []Finding
	for _, p := range problems {
		f := Finding{Obstacle, fmt.Sprintf("%s on %s", p.attempt, p.node), p.text, p.remedy}
		if p.lacksHandler && gaps[p.attempt] < len(c.Fleet.Nodes) {
			f.Level = Caution
		}
		findings = append(findings, f)
	}
	return findings
}

// joined makes one finding of those with the same text and the same remedy, in the order of their objects.
func joined(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int { return strings.Compare(a.What, b.What) })
	var list []Finding
	for _, f := range findings {
		i := slices.IndexFunc(list, func(g Finding) bool { return g.Text == f.Text && g.Remedy == f.Remedy })
		if i < 0 {
			list = append(list, f)
		} else {
			list[i].What += ", " + f.What
		}
	}
	return list
}

// maxTries is the number of pods that Try starts at once.
const maxTries = 16

// attempt is a pod that Try starts on each node.
type attempt struct {
	what    string
	class   string // empty for the default class
	program []string
}

// targets are the targets of the plan that are pods.
func (c *Checker) targets() []target.Target {
	if c.Fleet.Privileged {
		return nil
	}
	p, err := plan.Parse(PlanFile, []byte(c.Fleet.Plan))
	if err != nil {
		return nil // the plan was written by this program
	}
	var targets []target.Target
	for _, t := range p.Targets {
		targets = append(targets, target.Target(t))
	}
	return targets
}

// try runs a program in a pod. It returns a problem if the pod does not run, and nil if ctx ends.
func (c *Checker) try(ctx context.Context, r *roster, node Node, a attempt, number int) (failed *problem, isDone bool) {
	pod := c.Fleet.plain(node, fmt.Sprintf("%s%s-try-%d", engine.Prefix, c.Fleet.RunID(node.Name), number), a.program)
	if a.class != "" {
		pod.Spec.RuntimeClassName = &a.class
	}
	if c.Fleet.Privileged {
		pod = c.Fleet.cleaner(node)
	}
	fail := func(reason, remedy string) (*problem, bool) {
		return &problem{attempt: a.what, node: node.Name, text: reason, remedy: remedy}, false
	}
	if _, err := c.Client.Pods(c.Fleet.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fail(c.Client.Explain(err).Error(), "")
	}
	limit, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	for {
		state, change := r.pod(pod.Name)
		switch {
		case state != nil && state.Status.Phase == corev1.PodSucceeded:
			return nil, true
		case state != nil && state.Status.Phase == corev1.PodFailed:
			return fail(failure(state)+prefixed(": ", c.lastLine(limit, state.Name)), "")
		case state != nil:
			if reason, final := startProblem(state); final || strings.HasPrefix(reason, imageProblem) {
				return fail(reason, "")
			}
		}
		if reason := c.sandboxProblem(limit, pod.Name); reason != "" {
			return &problem{a.what, node.Name, reason, "configure the handler of the class on the node, or choose other nodes or targets", true}, false
		}
		if limit.Err() != nil {
			if ctx.Err() != nil {
				return nil, false
			}
			return fail(fmt.Sprintf("its pod has not run in %v, and no event has the reason", tryLimit), "kubectl describe pod shows more during the check")
		}
		pause, stop := context.WithTimeout(limit, tryPause)
		await(pause, change)
		stop()
	}
}

// tryPause is the longest time between two looks at a pod.
const tryPause = 2 * time.Second

// failure is the reason why a pod has failed.
func failure(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			return fmt.Sprintf("its program failed: %s, exit code %d%s", cmp.Or(t.Reason, "ended"), t.ExitCode, prefixed(": ", t.Message))
		}
	}
	return disruption(pod)
}

// lastLine is the last line of a pod's log; empty without a log.
func (c *Checker) lastLine(ctx context.Context, pod string) string {
	lines := int64(1)
	text, err := c.Client.Pods(c.Fleet.Namespace).GetLogs(pod, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// sandboxProblem is the reason why a pod gets no sandbox. No field of the pod has it, only an event.
func (c *Checker) sandboxProblem(ctx context.Context, pod string) string {
	events, err := c.Client.Events(c.Fleet.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		return ""
	}
	for i := range events.Items {
		e := &events.Items[i]
		if e.Reason == "FailedCreatePodSandBox" && strings.Contains(e.Message, "no runtime for") {
			return e.Message
		}
	}
	return ""
}

// Summary counts the objects of a run.
func (f *Fleet) Summary() string {
	space := fmt.Sprintf("in namespace %s", f.Namespace)
	if f.OwnNamespace {
		space = fmt.Sprintf("the namespace %s with", f.Namespace)
	}
	return fmt.Sprintf("%s a service account, a role, its binding, two config maps and an agent on each chosen node (%d, image %s); --manifest of touchstone cluster run prints them", space, len(f.Nodes), f.Image)
}
