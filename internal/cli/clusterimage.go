package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	reference "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// agentImageOptions are the flags about the image of agents.
type agentImageOptions struct {
	probeOnly bool
	programs  []string
	name      string
}

func (a *App) clusterImageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Make the image of agents and measured pods",
		Long: `The image holds touchstone, the probe and the programs of the workload image. All pods of a
cluster run use it, so each node needs one image. --probe-only leaves out the programs: the image
is smaller, and benchmarks that need them are skipped.

A registry of yours is the usual way. Nodes of a test cluster can load the file instead:

  kind load image-archive FILE
  minikube image load FILE
  k3s ctr images import FILE
  ctr -n k8s.io images import FILE       on each node with containerd
  podman load -i FILE                    on each node with CRI-O

The image has the architecture of this program. For nodes of other architectures, take touchstone
for each of them from a release, and name all of them with --program. One name then serves all
nodes.`,
	}
	save := &cobra.Command{
		Use:   "save FILE",
		Short: "Write the image to a file",
		Example: `  touchstone cluster image save agent.tar
  touchstone cluster image save agent.tar --probe-only`,
		Args: between(1, 1),
	}
	push := &cobra.Command{
		Use:   "push REFERENCE",
		Short: "Push the image to a registry, and print its digest",
		Long:  `Pushes the image with the credentials of docker login or podman login. Give the printed name to --image.`,
		Example: `  touchstone cluster image push registry.example.org/touchstone:1
  touchstone cluster image push registry.example.org/touchstone:1 \
      --program amd64/touchstone,arm64/touchstone`,
		Args: between(1, 1),
	}
	var opts agentImageOptions
	for _, c := range []*cobra.Command{save, push} {
		c.Flags().BoolVar(&opts.probeOnly, "probe-only", false, "leave out the programs of the workload image")
		c.Flags().StringSliceVar(&opts.programs, "program", nil, "`FILES` with touchstone in place of this program, one for each architecture of the nodes")
	}
	save.Flags().StringVar(&opts.name, "name", "", "`NAME` of the image in the file (default localhost/touchstone:VERSION)")
	save.RunE = func(cmd *cobra.Command, args []string) error { return a.saveAgentImage(cmd.Context(), opts, args[0]) }
	push.RunE = func(cmd *cobra.Command, args []string) error { return a.pushAgentImage(cmd.Context(), opts, args[0]) }
	addVerbs(cmd, save, push)
	return cmd
}

// saveAgentImage writes the image of agents to a file.
func (a *App) saveAgentImage(ctx context.Context, opts agentImageOptions, file string) error {
	if opts.name == "" {
		opts.name = defaultImage()
	}
	tag, err := reference.NewTag(opts.name)
	if err != nil {
		return usage(fmt.Errorf("--name: %w", err))
	}
	defer a.clear()
	artifact, err := a.agentImage(ctx, opts)
	if err != nil {
		return err
	}
	a.show(fmt.Sprintf("writing %s …", file))
	if err := replaceFile(file, func(w io.Writer) error { return image.SaveTagged(ctx, w, tag, image.Epoch(), artifact) }); err != nil {
		return err
	}
	return a.printDigest(opts.name+" ", artifact)
}

// pushAgentImage pushes the image of agents to a registry.
func (a *App) pushAgentImage(ctx context.Context, opts agentImageOptions, text string) error {
	ref, err := parseReference(text)
	if err != nil {
		return usage(err)
	}
	defer a.clear()
	artifact, err := a.agentImage(ctx, opts)
	if err != nil {
		return err
	}
	a.show(fmt.Sprintf("pushing %s …", ref))
	if err := remote.Push(ref, artifact, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", ref, err)
	}
	return a.printDigest(ref.Context().String()+"@", artifact)
}

// agentImage is the image of agents with the programs of opts, or with this program.
func (a *App) agentImage(ctx context.Context, opts agentImageOptions) (image.Artifact, error) {
	files := opts.programs
	if files == nil {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		files = []string{program}
	}
	var images []v1.Image
	for _, file := range files {
		program, err := os.ReadFile(file)
		if err != nil {
			return nil, usage(fmt.Errorf("--program: %w", err))
		}
		arch, err := image.ProgramArch(program)
		if err != nil {
			return nil, usage(fmt.Errorf("%s cannot be the agent: %w", file, err))
		}
		base, err := a.agentBase(ctx, arch, opts.probeOnly)
		if err != nil {
			return nil, err
		}
		img, err := image.Agent(base, program)
		if err != nil {
			return nil, err
		}
		images = append(images, img)
	}
	artifact, err := image.Agents(images...)
	if err != nil {
		return nil, usage(fmt.Errorf("--program: %w", err))
	}
	return artifact, nil
}

// agentBase is the image below touchstone: the image of the probe, or the workload image.
func (a *App) agentBase(ctx context.Context, arch string, isProbeOnly bool) (base v1.Image, err error) {
	if isProbeOnly {
		return image.Build(arch)
	}
	err = a.withImage(ctx, arch, nil, func(_ string, img v1.Image) error {
		base = img
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w; --probe-only makes an image without it", err)
	}
	return base, nil
}
