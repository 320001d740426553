package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// AgentPath is the path of touchstone in an image of the agent.
const AgentPath = "/touchstone"

// ProgramArch returns the architecture of a static program. A program that needs an interpreter or libraries is an error: no image of an agent has
// them.
func ProgramArch(program []byte) (string, error) {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", fmt.Errorf("it is no program for Linux: %w", err)
	}
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", errors.New("it needs libraries, and the image has none; build it with CGO_ENABLED=0, or take a release")
	}
	for arch, m := range machines {
		if m.elf == file.Machine {
			return arch, nil
		}
	}
	return "", fmt.Errorf("no image exists for its architecture, %v", file.Machine)
}

// Agents is the artifact of images of agents, one for each architecture: an image alone, and else their index, so that one name serves all nodes.
func Agents(images ...v1.Image) (Artifact, error) {
	if len(images) == 1 {
		return images[0], nil
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var archs []string
	for _, img := range images {
		config, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		if slices.Contains(archs, config.Architecture) {
			return nil, fmt.Errorf("two programs are for %s; name one for each architecture", config.Architecture)
		}
		archs = append(archs, config.Architecture)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	return index, nil
}

// Agent adds touchstone to an image of benchmarks. Agents and the pods that they measure share the image, so that a node pulls one.
func Agent(base v1.Image, program []byte) (v1.Image, error) {
	layer, err := Layer(Epoch(), []File{
		{Name: "data/", Mode: 0o755},
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/touchstone/", Mode: 0o755},
		{Name: "etc/touchstone-earlier/", Mode: 0o755},
		{Name: AgentPath[1:], Mode: 0o755, Content: program},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: Epoch()}, CreatedBy: "touchstone cluster image"}})
}
