package kata

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// groupPrefix begins the name of the cgroup that Kata makes for a sandbox, below the cgroup of the pod.
const groupPrefix = "kata_"

// sandboxID is the ID that an engine gives to a sandbox.
var sandboxID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// SandboxOf returns the ID of the sandbox that the name of a cgroup contains; empty for other cgroups.
func SandboxOf(group string) string {
	id, ok := strings.CutPrefix(group, groupPrefix)
	id = strings.TrimPrefix(id, "crio-") // CRI-O's prefix of the cgroups of containers
	if !ok || !sandboxID.MatchString(id) {
		return ""
	}
	return id
}

// stateDirs are the parents of the directories of a sandbox, without the leading slash.
var stateDirs = []string{"run/vc/sbs", "run/vc/vm", "run/kata", "run/kata-containers/shared/sandboxes"}

// namespace is containerd's namespace of pods.
const namespace = "k8s.io"

// socketOf returns the path of the shim's socket. address is the socket of containerd.
func socketOf(address, id string) string {
	return fmt.Sprintf("run/containerd/s/%x", sha256.Sum256([]byte(filepath.Join(address, namespace, id))))
}

// RemoveState removes the files of a sandbox whose processes have ended. A shim leaves its socket. Its name follows from the address of containerd's socket.
// A shim that is killed also leaves the files of the sandbox: its command "delete" fails if the guest had not booted, and sometimes
// later. proc is the directory of a process in /proc that sees the files of the shim. A sandbox without
// files is no error, and neither are an ID of another form and a process that has exited: its files were in its own mount namespace.
//
// The files of containers are mounts below one of the directories, in the mount namespace of the shim. If such a mount is visible to the
// process, RemoveState removes nothing and returns an error.
func RemoveState(proc, address, id string) error {
	if !sandboxID.MatchString(id) {
		return nil
	}
	err := removeState(proc, address, id)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("remove the files of sandbox %s: %w", id, err)
}

func removeState(proc, address, id string) (err error) {
	table, err := os.Open(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return err
	}
	mounts, err := mountinfo.GetMountsFromReader(table, nil)
	if err = errors.Join(err, table.Close()); err != nil {
		return err
	}
	for _, m := range mounts {
		for _, dir := range stateDirs {
			if mountpoint := "/" + path.Join(dir, id); m.Mountpoint == mountpoint || strings.HasPrefix(m.Mountpoint, mountpoint+"/") {
				return fmt.Errorf("%s is a mount", m.Mountpoint)
			}
		}
	}
	root, err := os.OpenRoot(filepath.Join(proc, "root"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, dir := range stateDirs {
		err = errors.Join(err, root.RemoveAll(path.Join(dir, id)))
	}
	if removeErr := root.Remove(socketOf(address, id)); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}
