package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// agentImageOptions are the flags about the image of agents.
type agentImageOptions struct {
	probeOnly bool
	program   string
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
  ctr -n k8s.io images import FILE       on each node with containerd`,
	}
	save := &cobra.Command{
		Use:   "save FILE",
		Short: "Write the image to a file",
		Example: `  touchstone cluster image save agent.tar
  touchstone cluster image save agent.tar --probe-only`,
		Args: between(1, 1),
	}
	push := &cobra.Command{
		Use:     "push REFERENCE",
		Short:   "Push the image to a registry, and print its digest",
		Long:    `Pushes the image with the credentials of docker login or podman login. Give the printed name to --image.`,
		Example: `  touchstone cluster image push registry.example.org/bench/touchstone:1`,
		Args:    between(1, 1),
	}
	var opts agentImageOptions
	for _, c := range []*cobra.Command{save, push} {
		c.Flags().BoolVar(&opts.probeOnly, "probe-only", false, "leave out the programs of the workload image")
		c.Flags().StringVar(&opts.program, "program", "", "`FILE` with touchstone for another architecture, in place of this program")
	}
	save.Flags().StringVar(&opts.name, "name", "", "`NAME` of the image in the file (default localhost/touchstone:VERSION)")
	save.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withAgentImage(cmd.Context(), opts, func(img v1.Image) error {
			label := opts.name
			if label == "" {
				label = defaultImage()
			}
			a.show(fmt.Sprintf("writing %s …", args[0]))
			if err := replaceFile(args[0], func(w io.Writer) error { return image.Save(cmd.Context(), w, label, img) }); err != nil {
				return err
			}
			return a.printDigest(label+" ", img)
		})
	}
	push.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := parseReference(args[0])
		if err != nil {
			return usage(err)
		}
		return a.withAgentImage(cmd.Context(), opts, func(img v1.Image) error {
			a.show(fmt.Sprintf("pushing %s …", ref))
			if err := remote.Write(ref, img, remote.WithContext(cmd.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
				return fmt.Errorf("push %s: %w", ref, err)
			}
			return a.printDigest(ref.Context().String()+"@", img)
		})
	}
	addVerbs(cmd, save, push)
	return cmd
}

// withAgentImage calls do with the image of agents.
func (a *App) withAgentImage(ctx context.Context, opts agentImageOptions, do func(v1.Image) error) error {
	defer a.clear()
	file := opts.program
	if file == "" {
		var err error
		if file, err = os.Executable(); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return usage(fmt.Errorf("--program: %w", err))
	}
	arch, err := image.ProgramArch(program)
	if err != nil {
		return fmt.Errorf("%s cannot be the agent: %w", file, err)
	}
	add := func(base v1.Image) error {
		img, err := image.Agent(base, program)
		if err != nil {
			return err
		}
		return do(img)
	}
	if opts.probeOnly {
		base, err := image.Build(arch)
		if err != nil {
			return err
		}
		return add(base)
	}
	if err := a.withImage(ctx, arch, nil, func(_ string, base v1.Image) error { return add(base) }); err != nil {
		return errors.Join(err, errNoPrograms)
	}
	return nil
}

// errNoPrograms is the remedy for a missing workload image.
var errNoPrograms = errors.New("--probe-only makes an image without it")
