package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	reference "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/image/debian"
	"github.com/touchstone-bench/touchstone/internal/process"
)

func (a *App) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Make the workload image, and see, save, load and push it",
		Long: `The workload image holds the programs that benchmarks run: sysbench, fio, 7z, dav1d, Redis,
iperf3 and others, from packages of Debian, and nothing that they do not need. Benchmarks
make it when they first need it.

It is made of just the packages of a list and two programs that come with touchstone, and so
is the same to the last bit wherever the same binary makes it. Making it needs mmdebstrap, a
mirror of Debian and a minute, and no root. On a machine without them, load what was saved on
another.

Images are kept in /var/cache/touchstone, or in the user's cache without root;
TOUCHSTONE_CACHE names another directory.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("there is no command %q; see %s --help", args[0], cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.imageBuildCommand(), a.imageShowCommand(), a.imageSBOMCommand(), a.imageListCommand(), a.imageSaveCommand(),
		a.imageLoadCommand(), a.imagePushCommand(), a.imageVerifyCommand(), a.imageRemoveCommand(), a.imagePruneCommand(),
	)
	for _, sub := range cmd.Commands() {
		limitArgs(sub)
	}
	return cmd
}

func (a *App) imageBuildCommand() *cobra.Command {
	var (
		options      debian.Options
		lock         string
		renew, reset bool
	)
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Make the workload image, unless it is there",
		Long: `Makes the workload image of the packages on the list for the architecture. Nothing of that
architecture is executed, so that it need not be this machine's.

A mirror has the packages of a list until Debian updates them, every two months or so; then they come
from snapshot.debian.org. --update makes a new list of what the mirror has now. It is the one in use
from then on, until --pinned returns to the one that comes with touchstone. Results from
images of different lists are not to be compared: each run records the image's digest.
With --lock FILE a list is read from a file, or with --update written to it and not put to use.`,
		Example: `  touchstone image build
  touchstone image build --arch arm64 --mirror http://ftp.de.debian.org/debian
  touchstone image build --update`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if renew && reset {
				return usage(errors.New("--update and --pinned exclude each other"))
			}
			if err := setLock(&options, lock, renew, reset); err != nil {
				return err
			}
			launcher, err := process.New(process.Options{})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, launcher.Close()) }()
			options.Launcher, options.Progress = launcher, a.step
			defer a.clear()
			build := debian.Build
			switch {
			case renew && lock == "":
				build = debian.Renew
			case renew:
				if err := a.writeLock(cmd.Context(), &options, lock); err != nil {
					return err
				}
			}
			made, err := build(cmd.Context(), options)
			if err != nil {
				return err
			}
			if reset {
				if err := discardLock(options.Arch); err != nil {
					return err
				}
			}
			digest, err := made.OCI().Digest()
			if err != nil {
				return err
			}
			a.clear()
			fmt.Fprintf(a.env.Stdout, "%s %s\n", made.Name(), digest)
			return nil
		},
	}
	f := cmd.Flags()
	addArch(cmd, &options.Arch)
	f.StringVar(&options.Mirror, "mirror", "", "`URL` of a mirror of Debian, instead of the one that apt uses here")
	f.StringVar(&lock, "lock", "", "`FILE` with the list of packages")
	f.BoolVar(&renew, "update", false, "make a new list of what the mirror has now")
	f.BoolVar(&reset, "pinned", false, "return to the list that comes with touchstone")
	return cmd
}

// addArch gives a verb the flag that says for which architecture the image is.
func addArch(cmd *cobra.Command, arch *string) {
	cmd.Flags().StringVar(arch, "arch", runtime.GOARCH, "`ARCHITECTURE` of the image: "+strings.Join(debian.Architectures(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(debian.Architectures(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// setLock chooses a list of packages: that of a file, unless it is to be written there, or the one that comes with touchstone.
func setLock(o *debian.Options, file string, renew, reset bool) error {
	embedded, err := debian.Embedded(o.Arch)
	if err != nil {
		return usage(err)
	}
	if reset {
		o.Lock = &embedded
	}
	if file == "" || renew {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lock, err := debian.ParseLock(content)
	if err != nil {
		return usage(fmt.Errorf("read the list of packages in %s: %w", file, err))
	}
	o.Lock = &lock
	return nil
}

func discardLock(arch string) error {
	cache, err := image.OpenCache("")
	if err != nil {
		return err
	}
	return debian.Discard(cache, arch)
}

// writeLock makes a new list of packages, and writes it to a file.
func (a *App) writeLock(ctx context.Context, o *debian.Options, file string) error {
	lock, err := debian.Update(ctx, *o)
	if err != nil {
		return err
	}
	o.Lock = &lock
	return a.writeTo(file, func(w io.Writer) error {
		_, err := w.Write(lock.Format())
		return err
	})
}

// noteList says that an image is not made of the list of packages that comes with touchstone.
func (a *App) noteList(made *debian.Image) {
	if !made.Pinned() {
		a.line("note: " + execution.UnpinnedNote)
	}
}

// withImage gives what the argument of a verb names: an image of the cache, a file or folder, or without one the workload
// image, which is not made for that.
func (a *App) withImage(ctx context.Context, arch string, args []string, do func(name string, img v1.Image) error) error {
	defer a.clear()
	if len(args) > 0 {
		cache, err := image.OpenCache("")
		if err != nil {
			return err
		}
		img, release, err := cache.Load(ctx, args[0])
		if err != nil {
			return err
		}
		return errors.Join(do(args[0], img), release())
	}
	if _, err := debian.Embedded(arch); err != nil {
		return usage(err)
	}
	made, err := debian.Cached(debian.Options{Arch: arch})
	if err != nil {
		return err
	}
	if made == nil {
		return fmt.Errorf("the workload image for %s is not there; make it with touchstone image build --arch %[1]s, or load one that was saved: touchstone image load FILE", arch)
	}
	a.noteList(made)
	return do(made.Name(), made.OCI())
}

func (a *App) imageShowCommand() *cobra.Command {
	var format format
	var arch string
	cmd := &cobra.Command{
		Use:   "show [IMAGE]",
		Short: "Show what is in the workload image",
		Long: `Shows the packages of which there are files in the image, with versions, licences and how much of
each it is. The licences are those that a package's copyright file names, the first few of them in
the table, and all with -o json; the files themselves are in the image, in /usr/share/doc.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withImage(cmd.Context(), arch, args, func(name string, img v1.Image) error { return a.showImage(format, name, img) })
		},
	}
	addFormat(cmd, &format)
	addArch(cmd, &arch)
	return cmd
}

func (a *App) showImage(format format, name string, img v1.Image) error {
	contents, err := debian.ContentsOf(img)
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	data := struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
		// Size is what the image weighs, compressed, in bytes; Unpacked what its files do.
		Size     int64 `json:"size"`
		Unpacked int64 `json:"unpacked"`
		debian.Contents
	}{Name: name, Digest: digest.String(), Contents: contents}
	for _, l := range manifest.Layers {
		data.Size += l.Size
	}
	var rows [][]string
	for _, p := range contents.Packages {
		data.Unpacked += p.Size
		rows = append(rows, []string{p.Name, p.Version, fmt.Sprint(p.Files), fmt.Sprintf("%.2f", float64(p.Size)/1e6), dash(firstOf(p.Licences))})
	}
	if format == formatTable {
		fmt.Fprintf(a.env.Stdout, "%s\n%s\nDebian %s of %s for %s: %.1f MB, %.1f MB unpacked\n\n",
			name, digest, contents.Suite, contents.Date, contents.Arch, float64(data.Size)/1e6, float64(data.Unpacked)/1e6)
	}
	return format.print(a.env.Stdout, data, []string{"PACKAGE", "VERSION", "FILES", "MB", "LICENCES"}, rows)
}

func (a *App) imageSBOMCommand() *cobra.Command {
	var file, arch string
	cmd := &cobra.Command{
		Use:     "sbom [IMAGE]",
		Short:   "Write the bill of materials of the workload image",
		Long:    `Writes what is in the image as SPDX 2.3 in JSON, for programs that look for licences and known flaws.`,
		Example: `  touchstone image sbom -O sbom.spdx.json`,
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withImage(cmd.Context(), arch, args, func(_ string, img v1.Image) error {
				bill, err := debian.SBOM(img)
				if err != nil {
					return err
				}
				return a.writeTo(file, func(w io.Writer) error {
					_, err := w.Write(bill)
					return err
				})
			})
		},
	}
	addFile(cmd, &file)
	addArch(cmd, &arch)
	return cmd
}

func (a *App) imageListCommand() *cobra.Command {
	var format format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the images that are kept",
		RunE: func(*cobra.Command, []string) error {
			cache, err := image.OpenCache("")
			if err != nil {
				return err
			}
			entries, err := cache.List()
			if err != nil {
				return err
			}
			var rows [][]string
			for _, e := range entries {
				unpacked := "-"
				if e.Unpacked {
					unpacked = "yes"
				}
				rows = append(rows, []string{e.Name, e.Platform, fmt.Sprintf("%.1f", float64(e.Size)/1e6), unpacked, e.Digest, dash(e.Problem)})
			}
			return format.print(a.env.Stdout, entries, []string{"NAME", "PLATFORM", "MB", "UNPACKED", "DIGEST", "PROBLEM"}, rows)
		},
	}
	addFormat(cmd, &format)
	return cmd
}

func (a *App) imageSaveCommand() *cobra.Command {
	var arch string
	cmd := &cobra.Command{
		Use:   "save FILE [IMAGE]",
		Short: "Write an image to a file, for a machine that cannot make it",
		Long: `Writes the workload image, or another one that is kept, as a tar archive. touchstone image load reads it, and so do
docker load, podman load, skopeo and ctr images import.`,
		Example: `  touchstone image save workload.tar
  scp workload.tar board: && ssh board touchstone image load workload.tar`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withImage(cmd.Context(), arch, args[1:], func(name string, img v1.Image) error {
				a.show(fmt.Sprintf("writing %s …", args[0]))
				return a.writeTo(args[0], func(w io.Writer) error { return image.Save(cmd.Context(), w, name, img) })
			})
		},
	}
	addArch(cmd, &arch)
	return cmd
}

// between refuses fewer or more arguments.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return usage(fmt.Errorf("%s: an argument is missing", cmd.Name()))
		}
		return atMost(most)(cmd, args)
	}
}

func (a *App) imageLoadCommand() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "load FILE",
		Short: "Keep an image from a file",
		Long: `Reads an image and keeps it: the workload image that was saved on another machine by the same version of
touchstone, or one of your own. It may be an archive that touchstone image save, docker save or podman save
has written, also compressed by gzip, or an OCI layout. All of it is compared with its digests.`,
		Example: `  touchstone image load workload.tar
  touchstone image load mine.tar --name mine`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := image.OpenCache("")
			if err != nil {
				return err
			}
			defer a.clear()
			a.show(fmt.Sprintf("reading %s …", args[0]))
			name, img, err := cache.Import(cmd.Context(), args[0], as)
			if err != nil {
				return err
			}
			digest, err := img.Digest()
			if err != nil {
				return err
			}
			a.clear()
			fmt.Fprintf(a.env.Stdout, "%s %s\n", name, digest)
			return nil
		},
	}
	cmd.Flags().StringVar(&as, "name", "", "`NAME` to keep it by")
	return cmd
}

func (a *App) imagePushCommand() *cobra.Command {
	var arch string
	cmd := &cobra.Command{
		Use:   "push REFERENCE [IMAGE]",
		Short: "Push an image to a registry",
		Long: `Pushes the workload image, or another one that is kept, to a registry. On this machine's loopback addresses that is done by
plain HTTP, else by HTTPS, with the credentials that docker login or podman login have left.`,
		Example: `  touchstone image push registry.example.org/bench/workload:trixie`,
		Args:    between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseReference(args[0])
			if err != nil {
				return usage(err)
			}
			return a.withImage(cmd.Context(), arch, args[1:], func(_ string, img v1.Image) error {
				a.show(fmt.Sprintf("pushing %s …", ref))
				if err := remote.Write(ref, img, remote.WithContext(cmd.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
					return fmt.Errorf("push %s: %w", ref, err)
				}
				digest, err := img.Digest()
				if err != nil {
					return err
				}
				a.clear()
				fmt.Fprintf(a.env.Stdout, "%s@%s\n", ref.Context(), digest)
				return nil
			})
		},
	}
	addArch(cmd, &arch)
	return cmd
}

// parseReference reads a reference. Plain HTTP is for this machine alone, whatever the library thinks of names that
// end in .local.
func parseReference(text string) (reference.Reference, error) {
	ref, err := reference.ParseReference(text)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(ref.Context().RegistryStr())
	if err != nil {
		host = ref.Context().RegistryStr()
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return reference.ParseReference(text, reference.Insecure)
	}
	return ref, nil
}

func (a *App) imageVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Compare the images that are kept with their digests",
		Long: `Reads the images, all without a name, and compares every byte with the digests. What is used is checked in
passing; this is for a disk that is not trusted. A damaged workload image is made again when it is used.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			cache, err := image.OpenCache("")
			if err != nil {
				return err
			}
			if len(names) == 0 {
				entries, err := cache.List()
				if err != nil {
					return err
				}
				for _, e := range entries {
					names = append(names, e.Name)
				}
			}
			defer a.clear()
			var errs []error
			for _, name := range names {
				a.show(fmt.Sprintf("reading %s …", name))
				err := cache.Verify(cmd.Context(), name)
				a.clear()
				if err == nil {
					fmt.Fprintf(a.env.Stdout, "%s is whole\n", name)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
}

func (a *App) imageRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove images that are kept",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(fmt.Errorf("%s: name an image; touchstone image list shows them", cmd.Name()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			cache, err := image.OpenCache("")
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range names {
				_, err := cache.Get(name)
				if err == nil || errors.Is(err, image.ErrDamaged) {
					err = cache.Remove(cmd.Context(), name)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
}

func (a *App) imagePruneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Remove the workload images of other versions, and what killed processes left",
		Long: `Removes the workload images that this version of touchstone does not use, and what processes that were killed have left
in the cache. Your own images stay; so does what a run is using.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := image.OpenCache("")
			if err != nil {
				return err
			}
			used := map[string]bool{}
			for _, arch := range debian.Architectures() {
				made, err := debian.Cached(debian.Options{Arch: arch})
				if err == nil && made != nil {
					used[made.Name()] = true
				}
			}
			return cache.Prune(cmd.Context(), func(name string) bool { return used[name] || !image.IsOwn(name) })
		},
	}
}

// firstOf spells the first few of a list for a table, and counts the others: -o json has them all.
func firstOf(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, %d more", strings.Join(list[:few], ", "), len(list)-few)
}
