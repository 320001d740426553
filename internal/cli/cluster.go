package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// clusterOptions are the flags of all verbs about a cluster.
type clusterOptions struct {
	place     kube.Place
	namespace string
	dir       string
}

// fleetOptions are the flags that choose what is measured and where.
type fleetOptions struct {
	clusterOptions
	file       string
	overrides  plan.Overrides
	nodes      []string
	selector   string
	perKind    int
	parallel   int
	image      string
	secrets    []string
	lease      time.Duration
	noEvents   bool
	privileged bool
	manifest   bool
	beside     bool
	format     format
	keepAfter  bool
}

func (a *App) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Measure the RuntimeClasses of a Kubernetes cluster, on its nodes",
		Long: `Measures pods of each RuntimeClass on the nodes of a Kubernetes cluster. One agent runs on each
chosen node, as an ordinary pod at the restricted level of Pod Security. It creates the measured
pods on its own node, in shuffled order, and takes all times on the clocks of that node. The
results of all nodes are runs in one results file.

  touchstone cluster image save FILE   make the image of agents and measured pods
  touchstone cluster check             see whether a run can work, before anything is created
  touchstone cluster run -f plan.yaml  measure, collect, report and clean up

A run needs the right to create a namespace, or one that you name. docs/cluster.md lists all
rights and objects. KUBECONFIG, --kubeconfig and --context choose the cluster, as for kubectl.`,
	}
	addVerbs(
		cmd, a.clusterCheckCommand(), a.clusterRunCommand(), a.clusterStatusCommand(), a.clusterCollectCommand(), a.clusterStopCommand(),
		a.clusterCleanupCommand(), a.clusterImageCommand(),
	)
	return cmd
}

func addCluster(cmd *cobra.Command, o *clusterOptions) {
	f := cmd.Flags()
	f.StringVar(&o.place.Kubeconfig, "kubeconfig", "", "`FILE` with the cluster and the credentials, as for kubectl")
	f.StringVar(&o.place.Context, "context", "", "`NAME` of a context of this file")
	f.StringVar(&o.namespace, "namespace", "", "`NAME` of an existing namespace, in place of one for the run")
}

func addFleet(cmd *cobra.Command, o *fleetOptions) {
	addCluster(cmd, &o.clusterOptions)
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "plan `FILE`; without one the cluster plan: start and stop of pods")
	f.StringSliceVarP(&o.overrides.Targets, "targets", "t", nil, "`TARGETS` such as k8s/gvisor, k8s for the default class, or 'k8s/*'")
	f.StringVar(&o.overrides.Baseline, "baseline", "", "`TARGET` that the others are compared with")
	f.StringSliceVar(&o.overrides.Filters, "filter", nil, "benchmarks by whole components of their `NAMES`, in place of the plan's")
	o.overrides.Blocks = f.IntP("runs", "n", 0, "`NUMBER` of measured blocks (repetitions)")
	o.overrides.Seed = f.Uint64("seed", 0, "`NUMBER` that determines the order of trials on each node")
	f.StringSliceVar(&o.nodes, "nodes", nil, "`NAMES` of nodes, in place of all nodes")
	f.StringVar(&o.selector, "selector", "", "`LABELS` of nodes, as for kubectl, such as pool=blue")
	f.IntVar(&o.perKind, "per-kind", 0, "largest `NUMBER` of nodes of each instance type")
	f.IntVar(&o.parallel, "parallel", 0, "`NUMBER` of nodes that measure at once; 0 is all of them")
	f.StringVar(&o.image, "image", "", "`IMAGE` of agents and measured pods (default localhost/touchstone:VERSION)")
	f.StringSliceVar(&o.secrets, "pull-secret", nil, "`NAMES` of secrets for the image, in the namespace")
	f.DurationVar(&o.lease, "lease", cluster.DefaultLease, "longest `TIME` without this program; then agents end by themselves")
	f.BoolVar(&o.privileged, "privileged-agents", false, "measure the nodes themselves, like touchstone benchmark: each agent is root on its node")
	f.BoolVar(&o.noEvents, "no-events", false, "leave the right to read events out of the role of agents")
}

// client returns a client for the cluster of the flags.
func (o *clusterOptions) client() (*kube.Client, error) {
	config, _, err := o.place.Load()
	if err != nil {
		return nil, err
	}
	return kube.New(config, "touchstone/"+version)
}

// defaultImage is the image that touchstone cluster image makes.
func defaultImage() string { return "localhost/touchstone:" + strings.TrimPrefix(tool().Version, "v") }

// clusterPlan reads the plan. The machine of this program does not matter for it.
func (o *fleetOptions) clusterPlan() (plan.Plan, error) {
	p := plan.Cluster()
	if o.privileged {
		p = plan.Quick()
	}
	if o.file != "" {
		var err error
		if p, err = plan.Load(o.file); err != nil {
			return p, err
		}
	}
	p, err := p.Apply(o.overrides)
	if err == nil {
		_, err = p.Resolve(catalogue.Catalogue{})
	}
	if err == nil && p.Trace > 0 {
		err = errors.New("the plan has the key trace, and the agents of a cluster record no traces; leave it out, or use touchstone benchmark on a node")
	}
	return p, err
}

// fleet reads the plan and the nodes of a run.
func (a *App) fleet(ctx context.Context, cmd *cobra.Command, o *fleetOptions, client *kube.Client) (f cluster.Fleet, exclusions []cluster.Excluded, err error) {
	flags := cmd.Flags()
	keepGiven(flags, "runs", &o.overrides.Blocks)
	keepGiven(flags, "seed", &o.overrides.Seed)
	p, err := o.clusterPlan()
	if err != nil {
		return f, nil, usage(err)
	}
	f = cluster.Fleet{
		ID: a.env.RunID(), Name: p.Name, Image: o.image, PullSecrets: o.secrets, Parallel: o.parallel, Lease: o.lease, Events: !o.noEvents && !o.privileged,
		Privileged: o.privileged,
	}
	f.Namespace, f.OwnNamespace = o.namespace, o.namespace == ""
	if f.OwnNamespace {
		f.Namespace = engine.Prefix + f.ID
	}
	if f.Image == "" {
		f.Image = defaultImage()
	}
	if _, err := parseReference(f.Image); err != nil {
		return f, nil, usage(fmt.Errorf("--image: %w", err))
	}
	selection := cluster.Selection{Selector: o.selector, Names: o.nodes, PerKind: o.perKind}
	if n := p.Nodes; o.selector == "" && o.nodes == nil {
		selection.Selector, selection.Names = n.Selector, n.Names
		if o.perKind == 0 {
			selection.PerKind = n.PerKind
		}
	}
	if !flags.Changed("parallel") {
		f.Parallel = p.Parallel
	}
	if o.lease < minLease {
		return f, nil, usage(fmt.Errorf("--lease %v is shorter than %v: agents would end while this program waits for the API server", o.lease, minLease))
	}
	if selection.PerKind < 0 || f.Parallel < 0 {
		return f, nil, usage(errors.New("--per-kind and --parallel are numbers of nodes, and not negative"))
	}
	f.Nodes, exclusions, err = cluster.Choose(ctx, client, f.ID, selection)
	if err != nil {
		return f, nil, err
	}
	if len(f.Nodes) == 0 {
		return f, exclusions, &exitError{ExitNoTarget, errors.New("no node can be measured" + reasons(exclusions))}
	}
	if p, err = resolveTargets(ctx, client, p, &f); err != nil {
		return f, exclusions, err
	}
	f.Seed = rand.Uint64()
	if p.Seed != nil {
		f.Seed = *p.Seed
	}
	f.Plan = string(p.YAML())
	for _, pattern := range p.Targets {
		if exact, ok := pattern.Exact(); ok {
			f.Targets = append(f.Targets, exact.String())
		}
	}
	if count := len(f.Nodes); f.Parallel != 1 && count > 1 && !f.Privileged {
		f.Caveats = append(f.Caveats, fmt.Sprintf("up to %d nodes measured at once and shared the control plane; --parallel 1 measures one after the other", f.AtOnce()))
	}
	f.Caveats = append(f.Caveats, cluster.Absences(exclusions)...)
	return f, exclusions, nil
}

// resolveTargets names the targets of a plan as far as that is possible outside of the nodes.
func resolveTargets(ctx context.Context, client *kube.Client, p plan.Plan, f *cluster.Fleet) (plan.Plan, error) {
	if f.Privileged {
		p, err := cluster.ResolveMachine(p)
		if err != nil {
			return p, usage(err)
		}
		return p, nil
	}
	classes, err := cluster.Classes(ctx, client)
	if err != nil {
		return p, err
	}
	if p, f.Handlers, err = cluster.Resolve(p, classes); err != nil {
		return p, usage(err)
	}
	return p, nil
}

// minLease is the shortest lease.
const minLease = time.Minute

// reasons lists the excluded nodes after a sentence.
func reasons(exclusions []cluster.Excluded) string {
	if len(exclusions) == 0 {
		return ": the cluster has no node that the selection matches"
	}
	var list strings.Builder
	for _, e := range exclusions {
		fmt.Fprintf(&list, "\nnode %s: %s", e.Name, e.Reason)
	}
	return list.String()
}

func (a *App) clusterRunCommand() *cobra.Command {
	var opts fleetOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Execute a plan on the nodes of the cluster, and record the results",
		Long: `Creates a namespace with one agent on each chosen node, collects the results while the agents
measure, shows them, and removes everything that it created. Targets are k8s/CLASS, with the name
of a RuntimeClass, and k8s for the default class. A plan without targets measures all of them.

--privileged-agents measures the nodes themselves, with a plan and targets for a machine. Each
agent is then root on its node. Without the flag nothing privileged is created.

Each node gets a run of its own in DIR/touchstone.db. The keys nodes and parallel of the plan
choose the nodes; the flags take precedence.

The first ^C ends the trials under way, collects the results so far and cleans up. The second ^C
ends this program at once: the agents go on until their lease ends, and touchstone cluster
collect continues. The same holds if this program is killed.

--manifest prints the objects in place of a run, for review or for another tool, and leaves out the
agents of nodes that measure in turns (--parallel). After kubectl apply, touchstone cluster
collect creates these and collects the results.`,
		Example: `  touchstone cluster run
  touchstone cluster run -f plan.yaml -d out/ --parallel 1
  touchstone cluster run --targets k8s/runc,k8s/gvisor --filter pods.start --runs 60
  touchstone cluster run --selector pool=blue --per-kind 3
  touchstone cluster run -f plan.yaml --manifest > run.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.clusterRun(cmd, &opts) },
	}
	addFleet(cmd, &opts)
	f := cmd.Flags()
	f.StringVarP(&opts.dir, "dir", "d", defaultDir, "output `FOLDER`")
	f.BoolVar(&opts.manifest, "manifest", false, "print all objects in place of a run")
	f.BoolVar(&opts.beside, "allow-concurrent", false, "start beside another cluster run on the same nodes; the reports mention it")
	f.BoolVar(&opts.keepAfter, "keep", false, "leave the objects in the cluster after the run, to look at them")
	addOutput(cmd, &opts.format, "`FORMAT` of the printed results", formatTable, formatJSON)
	return cmd
}

func (a *App) clusterRun(cmd *cobra.Command, opts *fleetOptions) (err error) {
	ctx := cmd.Context()
	client, err := opts.client()
	if err != nil {
		return err
	}
	f, exclusions, err := a.fleet(ctx, cmd, opts, client)
	if err != nil {
		return err
	}
	for _, e := range exclusions {
		a.line(e.String())
	}
	if opts.manifest {
		text, err := f.Manifest()
		if err != nil {
			return err
		}
		_, err = a.env.Stdout.Write(text)
		return err
	}
	if f.Privileged {
		a.line(cluster.PrivilegedText)
	}
	conflict, err := cluster.Busy(ctx, client, f.Nodes)
	switch {
	case err != nil:
		a.line("note: other cluster runs on these nodes would not be seen: " + err.Error())
	case conflict != "" && !opts.beside:
		return fmt.Errorf("%s: the two runs would measure each other; wait for its end, choose other nodes, or start nevertheless with --allow-concurrent", conflict)
	case conflict != "":
		f.Caveats = append(f.Caveats, conflict)
	}
	db, err := openResults(ctx, opts.dir, store.OpenMany)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := a.coordinator(client, db, f)
	defer a.onAbandon(func() error { return a.abandonFleet(f, opts.clusterOptions) })()
	a.line(fmt.Sprintf("cluster run %s: %s, namespace %s", f.ID, wording.Counted(len(f.Nodes), "node"), f.Namespace))
	hasObjects, err := f.Create(ctx, client, func(err error) { c.Observer.Note("", err.Error()) })
	if err != nil {
		f.Nodes = nil // without agents they are clean
		if hasObjects {
			err = errors.Join(err, a.clean(client, &f))
		}
		return err
	}
	return a.conductFleet(ctx, c, opts, db)
}

// coordinator returns a coordinator with the progress of this program.
func (a *App) coordinator(client *kube.Client, db cluster.Store, f cluster.Fleet) *cluster.Coordinator {
	return &cluster.Coordinator{Client: client, Store: db, Fleet: f, Observer: newFleetProgress(a.status, &f), Now: time.Now}
}

// abandonFleet reports what goes on in the cluster after the second ^C.
func (a *App) abandonFleet(f cluster.Fleet, o clusterOptions) error {
	a.line(fmt.Sprintf("the agents of cluster run %s go on, for %v at most; continue with: touchstone cluster collect %s%s, or remove them with: touchstone cluster cleanup %[3]s%[4]s",
		f.ID, f.Lease, f.ID, inNamespace(f, o)))
	return nil
}

// inNamespace is the flag that finds a run in a namespace of the user's.
func inNamespace(f cluster.Fleet, _ clusterOptions) string {
	if f.OwnNamespace {
		return ""
	}
	return " --namespace " + f.Namespace
}

// cleanLimit is the longest time of a clean-up, also after ^C.
const cleanLimit = 3 * time.Minute

// clean removes the objects of a run.
func (a *App) clean(client *kube.Client, f *cluster.Fleet) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanLimit)
	defer cancel()
	a.show("removing the objects of the run …")
	_, err := cluster.Clean(ctx, client, f)
	a.clear()
	if err != nil {
		return fmt.Errorf("clean up: %w; touchstone cluster cleanup %s removes the rest", err, f.ID)
	}
	return nil
}

func (a *App) clusterStatusCommand() *cobra.Command {
	var opts clusterOptions
	var format format
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show the cluster runs with objects in the cluster, or the nodes of one",
		Long: `Shows the cluster runs that have objects in the cluster. With a RUN, an ID or its beginning, it
shows the state of each node.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := opts.client()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				fleets, err := cluster.Find(cmd.Context(), client, opts.namespace)
				if err != nil {
					return err
				}
				return printList(a, format, fleets, []string{"RUN", "NAMESPACE", "PLAN", "NODES"}, func(f cluster.Fleet) []string {
					return []string{f.ID, f.Namespace, f.Name, fmt.Sprint(len(f.Nodes))}
				})
			}
			f, err := findFleet(cmd.Context(), client, opts, args)
			if err != nil {
				return err
			}
			states, err := cluster.Status(cmd.Context(), client, &f)
			if err != nil {
				return err
			}
			return printList(a, format, states, []string{"NODE", "KIND", "STATE", "DETAIL"}, func(s cluster.NodeStatus) []string {
				return []string{s.Node, s.Kind, string(s.Phase), dash(s.Text)}
			})
		},
	}
	addCluster(cmd, &opts)
	addFormat(cmd, &format)
	return cmd
}

// findFleet returns the run that args name; without args it is the only one.
func findFleet(ctx context.Context, client *kube.Client, o clusterOptions, args []string) (cluster.Fleet, error) {
	fleets, err := cluster.Find(ctx, client, o.namespace)
	if err != nil {
		return cluster.Fleet{}, err
	}
	var ids []string
	for _, f := range fleets {
		ids = append(ids, f.ID)
	}
	place := "the cluster has"
	if o.namespace != "" {
		place = fmt.Sprintf("namespace %q has", o.namespace)
	}
	if len(args) > 0 {
		fleets = slices.DeleteFunc(fleets, func(f cluster.Fleet) bool { return !strings.HasPrefix(f.ID, args[0]) })
	}
	switch {
	case len(fleets) == 1:
		return fleets[0], nil
	case len(ids) == 0:
		return cluster.Fleet{}, usage(fmt.Errorf("%s no cluster run; a run in a namespace of yours is found with --namespace", place))
	case len(fleets) == 0:
		return cluster.Fleet{}, usage(fmt.Errorf("%s no cluster run %q; the runs are %s", place, args[0], strings.Join(ids, ", ")))
	}
	return cluster.Fleet{}, usage(fmt.Errorf("%s several cluster runs: name one of %s", place, strings.Join(ids, ", ")))
}

func (a *App) clusterCollectCommand() *cobra.Command {
	var opts fleetOptions
	cmd := &cobra.Command{
		Use:   "collect [RUN]",
		Short: "Continue a cluster run whose program ended: collect its results",
		Long: `Takes over the agents of a cluster run after its program was killed, or after kubectl apply of a
manifest: collects all trials that DIR does not have yet, waits for the end of the run, shows the
results and cleans up. Nodes that wait for their turn are measured too.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			client, err := opts.client()
			if err != nil {
				return err
			}
			f, err := findFleet(cmd.Context(), client, opts.clusterOptions, args)
			if err == nil {
				err = f.Incomplete(cmd.Context(), client)
			}
			if err != nil {
				return err
			}
			db, err := openResults(cmd.Context(), opts.dir, store.OpenMany)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			defer a.onAbandon(func() error { return a.abandonFleet(f, opts.clusterOptions) })()
			return a.conductFleet(cmd.Context(), a.coordinator(client, db, f), &opts, db)
		},
	}
	addCluster(cmd, &opts.clusterOptions)
	f := cmd.Flags()
	f.StringVarP(&opts.dir, "dir", "d", defaultDir, "output `FOLDER`")
	f.BoolVar(&opts.keepAfter, "keep", false, "leave the objects in the cluster after the run, to look at them")
	addOutput(cmd, &opts.format, "`FORMAT` of the printed results", formatTable, formatJSON)
	return cmd
}

func (a *App) clusterStopCommand() *cobra.Command {
	var opts clusterOptions
	cmd := &cobra.Command{
		Use:   "stop [RUN]",
		Short: "End a cluster run before the end of its plan",
		Long: `Ends the agents of a cluster run, and with them the trials under way, which do not count. The program
that executes the run, or touchstone cluster collect, then collects the results and cleans up. Nodes
that wait for their turn (--parallel) are not measured.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := opts.client()
			if err != nil {
				return err
			}
			f, err := findFleet(cmd.Context(), client, opts, args)
			if err != nil {
				return err
			}
			count, err := cluster.Stop(cmd.Context(), client, &f)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.env.Stdout, "cluster run %s ends on %s; the trials under way do not count\n", f.ID, wording.Counted(count, "node"))
			return nil
		},
	}
	addCluster(cmd, &opts)
	return cmd
}

func (a *App) clusterCleanupCommand() *cobra.Command {
	var opts clusterOptions
	var sweep bool
	cmd := &cobra.Command{
		Use:   "cleanup [RUN]",
		Short: "Remove the objects of a cluster run from the cluster",
		Long: `Removes the objects of a cluster run: its namespace, or its objects in a namespace of yours. It
checks the label and the name of each object before its removal, and keeps everything of others.
Results that were not collected are lost with the agents.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := opts.client()
			if err != nil {
				return err
			}
			var fleets []cluster.Fleet
			if sweep {
				fleets, err = cluster.Find(cmd.Context(), client, opts.namespace)
			} else {
				var f cluster.Fleet
				f, err = findFleet(cmd.Context(), client, opts, args)
				fleets = []cluster.Fleet{f}
			}
			if err != nil {
				return err
			}
			var errs []error
			for i := range fleets {
				removals, err := cluster.Clean(cmd.Context(), client, &fleets[i])
				for _, object := range removals {
					fmt.Fprintf(a.env.Stdout, "removed %s\n", object)
				}
				errs = append(errs, err)
			}
			if len(fleets) == 0 {
				fmt.Fprintln(a.env.Stdout, "nothing to remove")
			}
			return errors.Join(errs...)
		},
	}
	addCluster(cmd, &opts)
	cmd.Flags().BoolVar(&sweep, "all", false, "remove the objects of all cluster runs, also of those under way")
	return cmd
}
