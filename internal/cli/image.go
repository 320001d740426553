package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

func (a *App) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build, show, save, load, push and compare images",
		Long: `The workload image holds the programs of benchmarks, with their dependencies only: sysbench,
fio, 7z, dav1d, Redis, iperf3 and others, from Debian packages. A run builds the image when it
first needs it.

The image consists of the packages on a list and two programs that are part of touchstone. The
same touchstone builds the same image, bit for bit, on every machine. The build needs mmdebstrap, a Debian
mirror and about a minute. It does not need root. A machine without mmdebstrap or a mirror can load an image
that another machine saved.

The image cache is /var/cache/touchstone, or below the user's cache directory without root.
TOUCHSTONE_CACHE names another directory.`,
	}
	addVerbs(
		cmd,
		a.imageBuildCommand(), a.imageShowCommand(), a.imageSBOMCommand(), a.imageListCommand(), a.imageSaveCommand(),
		a.imageLoadCommand(), a.imagePushCommand(), a.imageCompareCommand(), a.imageVerifyCommand(), a.imageRemoveCommand(), a.imagePruneCommand(),
	)
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
		Short: "Build the workload image, unless the cache has it",
		Long: `Builds the workload image from the list of packages for the architecture. The build executes no
program of that architecture, so it may differ from this machine's.

A mirror has the packages of a list until Debian updates them, about every two months. After that they
come from snapshot.debian.org. --update makes a new list from the mirror's current packages, and
uses it until --pinned returns to the embedded list. Do not compare results from images of different
lists: each run records the image's digest, and that its list was updated. A mirror with older packages
than the embedded list is refused. A newer embedded list replaces an updated one.
--lock FILE reads a list from a file. With --update it writes the new list to the file and does not use it. It
also writes the digests of the image's layers, to a file with the ending .pin.`,
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
			product, err := build(cmd.Context(), options)
			if err != nil {
				return err
			}
			if renew && lock != "" {
				if err := a.writePin(product, lock); err != nil {
					return err
				}
			}
			if reset {
				cache, err := image.OpenCache("")
				if err == nil {
					err = debian.Discard(cache, options.Arch)
				}
				if err != nil {
					return err
				}
			}
			return a.printDigest(product.Name()+" ", product.OCI())
		},
	}
	f := cmd.Flags()
	addArch(cmd, &options.Arch)
	f.StringVar(&options.Mirror, "mirror", "", "`URL` of a Debian mirror, in place of the mirror that apt uses on this machine")
	f.StringVar(&lock, "lock", "", "`FILE` with the list of packages")
	f.BoolVar(&renew, "update", false, "make a new list from the mirror's current packages")
	f.BoolVar(&reset, "pinned", false, "return to the embedded list")
	return cmd
}

// printDigest prints the digest of an image after lead.
func (a *App) printDigest(lead string, img image.Artifact) error {
	digest, err := img.Digest()
	if err == nil {
		a.clear()
		fmt.Fprintf(a.env.Stdout, "%s%s\n", lead, digest)
	}
	return err
}

// addArch adds the flag for the image's architecture.
func addArch(cmd *cobra.Command, arch *string) {
	cmd.Flags().StringVar(arch, "arch", runtime.GOARCH, "`ARCHITECTURE` of the image: "+strings.Join(debian.Architectures(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(debian.Architectures(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// maxLock is above the size of every list of packages, in bytes; ParseLock limits its lines.
const maxLock = 4 << 20

// setLock selects a list of packages: the embedded list with reset, or the list in a file unless renew writes it.
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
	content, err := readFile(file, maxLock)
	if err != nil {
		return err
	}
	if content, err = textfile.Read(bytes.NewReader(content), maxLock, textfile.Lock); err != nil {
		return usage(fmt.Errorf("read the list of packages in %s: %w", file, err))
	}
	lock, err := debian.ParseLock(content)
	if err != nil {
		return usage(fmt.Errorf("read the list of packages in %s: %w", file, err))
	}
	o.Lock = &lock
	return nil
}

// writeLock makes a new list of packages and writes it to a file.
func (a *App) writeLock(ctx context.Context, o *debian.Options, file string) error {
	lock, err := debian.Update(ctx, *o)
	if err != nil {
		return err
	}
	o.Lock = &lock
	return a.writeBytes(file, lock.Format())
}

// writePin writes the digests of the image's layers beside the list of packages in a file.
func (a *App) writePin(product *debian.Image, lock string) error {
	pin, err := product.Pin()
	if err != nil {
		return err
	}
	return a.writeBytes(strings.TrimSuffix(lock, ".lock")+".pin", pin)
}

// onCache returns the function of a verb that works on the image cache.
func onCache(do func(ctx context.Context, cache *image.Cache, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cache, err := image.OpenCache("")
		if err != nil {
			return err
		}
		return do(cmd.Context(), cache, args)
	}
}

// onImage completes a command whose last argument is an image, after a number of other arguments.
func (a *App) onImage(cmd *cobra.Command, count int, do func(ctx context.Context, args []string, name string, img v1.Image) error) *cobra.Command {
	var arch string
	addArch(cmd, &arch)
	cmd.Args = between(count, count+1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withImage(cmd.Context(), arch, args[count:], func(name string, img v1.Image) error { return do(cmd.Context(), args, name, img) })
	}
	return cmd
}

// withImage calls do with the image that args name: an image of the cache, a file or a folder. Without args it is the
// workload image, which withImage does not build.
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
	product, err := debian.Cached(debian.Options{Arch: arch})
	if err != nil {
		return err
	}
	if product == nil {
		return fmt.Errorf("the cache has no workload image for %s; build it with touchstone image build --arch %[1]s, or load a saved one with touchstone image load FILE", arch)
	}
	if !product.Pinned() {
		a.line("note: " + execution.UnpinnedNote)
	}
	return do(product.Name(), product.OCI())
}

func (a *App) imageShowCommand() *cobra.Command {
	var format format
	cmd := &cobra.Command{
		Use:   "show [IMAGE]",
		Short: "Show the packages in the workload image",
		Long: `Shows the packages with files in the image: version, licences, number of files and size. The
licences come from the package's copyright file, which is in /usr/share/doc of the image. The table
shows the first few of them, and -o json all.`,
	}
	addFormat(cmd, &format)
	return a.onImage(cmd, 0, func(_ context.Context, _ []string, name string, img v1.Image) error {
		return a.showImage(format, name, img)
	})
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
		// Size is the compressed size in bytes, and Unpacked the size of the files.
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
		rows = append(rows, []string{p.Name, p.Version, fmt.Sprint(p.Files), quantity.Megabytes(p.Size, 2), dash(firstOf(p.Licences))})
	}
	if format == formatTable {
		fmt.Fprintf(a.env.Stdout, "%s\n%s\nDebian %s of %s for %s: %s MB, %s MB unpacked\n\n",
			name, digest, contents.Suite, contents.Date, contents.Arch, quantity.Megabytes(data.Size, 1), quantity.Megabytes(data.Unpacked, 1))
	}
	return a.print(format, data, []string{"PACKAGE", "VERSION", "FILES", "MB", "LICENCES"}, rows)
}

func (a *App) imageSBOMCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "sbom [IMAGE]",
		Short:   "Write the bill of materials of the workload image",
		Long:    `Writes the contents of the image as SPDX 2.3 in JSON, for programs that check licences and known vulnerabilities.`,
		Example: `  touchstone image sbom -O sbom.spdx.json`,
	}
	addFile(cmd, &file)
	return a.onImage(cmd, 0, func(_ context.Context, _ []string, _ string, img v1.Image) error {
		bill, err := debian.SBOM(img)
		if err != nil {
			return err
		}
		return a.writeTo(file, func(w io.Writer) error {
			_, err := jsonWriter(w).Write(bill)
			return err
		})
	})
}

func (a *App) imageListCommand() *cobra.Command {
	var format format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the images in the cache",
		RunE: onCache(func(_ context.Context, cache *image.Cache, _ []string) error {
			entries, err := cache.List()
			if err != nil {
				return err
			}
			header := []string{"NAME", "PLATFORM", "MB", "UNPACKED", "DIGEST", "PROBLEM"}
			return printList(a, format, entries, header, func(e image.Entry) []string {
				mark := "-"
				if e.Unpacked {
					mark = "yes"
				}
				return []string{e.Name, e.Platform, quantity.Megabytes(e.Size, 1), mark, e.Digest, dash(e.Problem)}
			})
		}),
	}
	addFormat(cmd, &format)
	return cmd
}

func (a *App) imageSaveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "save FILE [IMAGE]",
		Short: "Write an image to a file, for a machine that cannot build it",
		Long: `Writes the workload image, or another image of the cache, as a tar archive. touchstone image load, docker load,
podman load, skopeo and ctr images import can read it.`,
		Example: `  touchstone image save workload.tar
  scp workload.tar board: && ssh board touchstone image load workload.tar`,
	}
	return a.onImage(cmd, 1, func(ctx context.Context, args []string, name string, img v1.Image) error {
		a.show(fmt.Sprintf("writing %s …", args[0]))
		return replaceFile(args[0], func(w io.Writer) error { return image.Save(ctx, w, name, img) })
	})
}

// between accepts minimum to maximum arguments.
func between(minimum, maximum int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < minimum {
			return usage(fmt.Errorf("%s: an argument is missing", cmd.Name()))
		}
		return atMost(maximum)(cmd, args)
	}
}

func (a *App) imageLoadCommand() *cobra.Command {
	var label string
	cmd := &cobra.Command{
		Use:   "load FILE",
		Short: "Load an image from a file into the cache",
		Long: `Reads an image into the cache: the workload image that the same version of touchstone saved on another machine, or
an image of your own. The file is an archive of touchstone image save, docker save or podman save, also compressed with
gzip, or an OCI layout. The digests of all its parts are checked. An archive becomes the workload image only if it has
the digest that this touchstone knows. Any other image needs a name of its own, which does not begin with workload-.`,
		Example: `  touchstone image load workload.tar
  touchstone image load mine.tar --name mine`,
		Args: between(1, 1),
		RunE: onCache(func(ctx context.Context, cache *image.Cache, args []string) error {
			defer a.clear()
			a.show(fmt.Sprintf("reading %s …", args[0]))
			name, img, err := cache.Import(ctx, args[0], debian.Naming(label))
			if err != nil {
				return err
			}
			return a.printDigest(name+" ", img)
		}),
	}
	cmd.Flags().StringVar(&label, "name", "", "`NAME` of the image in the cache")
	return cmd
}

func (a *App) imagePushCommand() *cobra.Command {
	var arch string
	cmd := &cobra.Command{
		Use:   "push REFERENCE [IMAGE]",
		Short: "Push an image to a registry",
		Long: `Pushes the workload image, or another image of the cache, to a registry, with the credentials of docker login or
podman login. Registries on loopback addresses use plain HTTP, all others HTTPS.`,
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
				return a.printDigest(ref.Context().String()+"@", img)
			})
		},
	}
	addArch(cmd, &arch)
	return cmd
}

// parseReference parses a reference. Only loopback addresses use plain HTTP. The library by itself would also use it
// for names that end in .local.
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
		Short: "Compare the images in the cache with their digests",
		Long: `Reads the named images, or all, and compares every byte with the digests. Each use of an image includes a check of
the parts that it reads; verify is for a disk that may be faulty. A damaged workload image is rebuilt when it is used.`,
		Args: cobra.ArbitraryArgs,
		RunE: onCache(func(ctx context.Context, cache *image.Cache, names []string) error {
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
				err := cache.Verify(ctx, name)
				a.clear()
				if err == nil {
					fmt.Fprintf(a.env.Stdout, "%s is intact\n", name)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}),
	}
}

func (a *App) imageRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove images from the cache",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(fmt.Errorf("%s: name an image; touchstone image list shows the names", cmd.Name()))
			}
			return nil
		},
		RunE: onCache(func(ctx context.Context, cache *image.Cache, names []string) error {
			var errs []error
			for _, name := range names {
				_, err := cache.Get(name)
				if err == nil || errors.Is(err, image.ErrDamaged) {
					err = cache.Remove(ctx, name)
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}),
	}
}

func (a *App) imagePruneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prune",
		Short: "Remove workload images of other versions, and leftovers of killed processes",
		Long: `Removes the workload images that this version of touchstone does not use, and the leftovers of killed processes in
the cache. It does not remove your own images, or images that a run is using.`,
		RunE: onCache(func(ctx context.Context, cache *image.Cache, _ []string) error {
			names := map[string]bool{}
			for _, arch := range debian.Architectures() {
				product, err := debian.Cached(debian.Options{Arch: arch})
				if err == nil && product != nil {
					names[product.Name()] = true
				}
			}
			return cache.Prune(ctx, func(name string) bool { return names[name] || !image.IsOwn(name) })
		}),
	}
}

// firstOf joins the first few items of a list for a table, and counts the others.
func firstOf(list []string) string {
	const limit = 3
	if len(list) <= limit {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, %d more", strings.Join(list[:limit], ", "), len(list)-limit)
}
