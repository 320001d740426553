package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/image/compare"
	"github.com/touchstone-bench/touchstone/internal/quantity"
)

// filesShown is the number of files that the table lists of each layer without --files.
const filesShown = 10

func (a *App) imageCompareCommand() *cobra.Command {
	var format format
	var isFull bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two images layer by layer, also across architectures",
		Long: `Compares two images: their configurations, and their files layer by layer. The result shows the layers
that are the same, the reasons for the others, and the ELF files by architecture.

An image is a directory with an OCI layout, an archive of docker save, podman save or touchstone image save, also
compressed with gzip, or a name in the image cache. The name workload stands for the workload image. IMAGE@ARCHITECTURE
selects one of several architectures: workload@arm64, layout@riscv64. Without it the image is for this machine's
architecture if there are several.

Layers with the same digest are the same. The files of other pairs are compared by type, content, target, device
number, mode, owner, extended attributes and time of modification. Layers are paired by their digests, then by
the commands that made them, then by their order.

The images may be untrusted. Layers are read as streams, verified against their digests, and never unpacked.
-o json has every differing file.`,
		Example: `  touchstone image compare workload workload@arm64
  touchstone image compare old.tar new.tar --files
  touchstone image compare layout@amd64 layout@arm64 -o json`,
		Args: between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.compareImages(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return a.printComparison(format, c, isFull)
		},
	}
	addFormat(cmd, &format)
	cmd.Flags().BoolVar(&isFull, "files", false, fmt.Sprintf("list every differing file, and not only %d of each layer", filesShown))
	return cmd
}

// compareImages opens and compares two images.
func (a *App) compareImages(ctx context.Context, nameA, nameB string) (_ *compare.Comparison, err error) {
	defer a.clear()
	var images [2]v1.Image
	for i, name := range []string{nameA, nameB} {
		img, release, err := a.openImage(ctx, name)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
		images[i] = img
	}
	stamp := time.Now()
	return compare.Compare(ctx, nameA, images[0], nameB, images[1], compare.Options{
		Progress: func(side string, layer, layers int, bytes int64) {
			if moment := time.Now(); a.env.Live || moment.Sub(stamp) >= plainInterval {
				stamp = moment
				name := map[string]string{"a": nameA, "b": nameB}[side]
				a.step(fmt.Sprintf("reading %s: layer %d of %d, %d MiB", name, layer, layers, bytes>>20))
			}
		},
	})
}

// openImage opens the image of an argument. A file whose name has an @ goes before an architecture.
func (a *App) openImage(ctx context.Context, name string) (v1.Image, func() error, error) {
	path, arch := name, ""
	if index := strings.LastIndexByte(name, '@'); index > 0 {
		if _, err := os.Stat(name); err != nil {
			path, arch = name[:index], name[index+1:]
		}
	}
	if bench.Image(path) == bench.WorkloadImage {
		if arch == "" {
			arch = runtime.GOARCH
		}
		var result v1.Image
		err := a.withImage(ctx, arch, nil, func(_ string, img v1.Image) error {
			result = img
			return nil
		})
		return result, func() error { return nil }, err
	}
	cache, err := image.OpenCache("")
	if err != nil {
		return nil, nil, err
	}
	a.show(fmt.Sprintf("opening %s …", name))
	return cache.Open(ctx, path, arch)
}

func (a *App) printComparison(f format, c *compare.Comparison, isFull bool) error {
	if f != formatTable {
		return a.print(f, c, nil, nil)
	}
	w := a.env.Stdout
	var rows [][]string
	for _, side := range []struct {
		name string
		compare.Image
	}{{"A", c.A}, {"B", c.B}} {
		rows = append(rows, []string{
			side.name, side.Name, dash(side.Platform), fmt.Sprint(side.Layers), fmt.Sprint(side.Files), quantity.Megabytes(side.Size, 1), dash(architectures(side.ELF)), side.ID,
		})
	}
	if err := a.print(f, nil, []string{"", "IMAGE", "PLATFORM", "LAYERS", "FILES", "MB", "ELF FILES", "ID"}, rows); err != nil {
		return err
	}
	if c.Same {
		fmt.Fprintln(w, "\nThe images are the same: all layers, and all fields of the configuration.")
		return nil
	}
	fmt.Fprintln(w)
	if len(c.Config) == 0 {
		fmt.Fprintln(w, "The configurations are the same.")
	} else if err := printList(a, f, c.Config, []string{"CONFIGURATION", "A", "B"}, func(field compare.Field) []string {
		return []string{field.Name, dash(short(field.A)), dash(short(field.B))}
	}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := printList(a, f, c.Layers, []string{"LAYER A", "LAYER B", "MB A", "MB B", "RESULT", "WHY", "CREATED BY"}, layerRow); err != nil {
		return err
	}
	return a.printFiles(c, isFull)
}

func layerRow(p compare.Pair) []string {
	row := []string{"-", "-", "-", "-", string(p.Result), dash(p.Why), "-"}
	for i, l := range []*compare.Layer{p.A, p.B} {
		if l != nil {
			row[i], row[2+i] = fmt.Sprint(l.Number), quantity.Megabytes(l.Size, 1)
			row[6] = dash(short(l.CreatedBy))
		}
	}
	return row
}

// printFiles lists the differing files of the pairs of layers. A layer without a counterpart has only its row in the table of layers.
func (a *App) printFiles(c *compare.Comparison, isFull bool) error {
	for _, p := range c.Layers {
		if len(p.Files) == 0 {
			continue
		}
		files := p.Files
		if !isFull && len(files) > filesShown {
			files = files[:filesShown]
		}
		fmt.Fprintf(a.env.Stdout, "\nLayers %s and %s\n", layerRow(p)[0], layerRow(p)[1])
		if err := printList(a, formatTable, files, []string{"CHANGE", "FILE", "DIFFERENCES"}, func(file compare.File) []string {
			return []string{string(file.Change), file.Name, dash(differences(file))}
		}); err != nil {
			return err
		}
		if rest := len(p.Files) - len(files); rest > 0 {
			fmt.Fprintf(a.env.Stdout, "and %d more; --files lists all\n", rest)
		}
	}
	return nil
}

// differences spells the differing properties of a file with their values.
func differences(f compare.File) string {
	if f.Change != compare.Changed {
		v := f.A
		if v == nil {
			v = f.B
		}
		return strings.TrimSuffix(v.Type+", "+v.Arch, ", ")
	}
	var parts []string
	for _, aspect := range f.Aspects {
		part := string(aspect)
		if a, b := valueOf(*f.A, aspect), valueOf(*f.B, aspect); a != b {
			part += " " + dash(a) + " → " + dash(b)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// valueOf spells a property of a file. It is empty for a property without a short value.
func valueOf(v compare.Version, aspect compare.Aspect) string {
	switch aspect {
	case compare.Type:
		return v.Type
	case compare.Architecture:
		return v.Arch
	case compare.Target:
		return short(v.Target)
	case compare.Device:
		return v.Device
	case compare.Mode:
		return v.Mode
	case compare.Owner:
		return v.Owner
	case compare.Time:
		return v.Time.Format(time.RFC3339)
	case compare.Content:
		if v.Size > 0 {
			return fmt.Sprintf("%d B", v.Size)
		}
	case compare.Attributes:
	}
	return ""
}

// architectures spells the numbers of ELF files by architecture.
func architectures(elf map[string]int) string {
	var parts []string
	for _, arch := range slices.Sorted(maps.Keys(elf)) {
		parts = append(parts, fmt.Sprintf("%d %s", elf[arch], arch))
	}
	return strings.Join(parts, ", ")
}

// longestCell is the longest text from an image in a table, in characters.
const longestCell = 60

// short truncates a text for a table.
func short(text string) string {
	if runes := []rune(text); len(runes) > longestCell {
		return string(runes[:longestCell-1]) + "…"
	}
	return text
}
