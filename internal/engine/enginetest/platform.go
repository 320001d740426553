package enginetest

import (
	"maps"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// PlatformGaps adds the gaps of gVisor's platform kvm, which are the same with every engine, to the gaps of a target. Of three runs of
// ProcessLimit two ended with exit code 0 and one did not end in time. The kernel refused no fork in them.
func PlatformGaps(t *testing.T, name string, gaps map[string]string) map[string]string {
	t.Helper()
	if platform, _ := Parse(t, name).Option("platform"); platform != "kvm" {
		return gaps
	}
	reasons := map[string]string{"ProcessLimit": "on the platform kvm the threads of a container run on a few threads of the host, which stay below the limit"}
	maps.Copy(reasons, gaps)
	return reasons
}

// ShimGaps are the gaps of gVisor with containerd, which depend on the shim. The sandbox has the container's OOM score with both.
func ShimGaps(t *testing.T, name string) map[string]string {
	t.Helper()
	target := Parse(t, name)
	if target.Runtime != "runsc" {
		return nil
	}
	if shim, _ := target.Option("shim"); shim == "runc" {
		const reason = "behind runc's shim the pod's pause container takes the address away from the pod's network interface"
		return map[string]string{"Bridge": reason, "HostEnd": reason}
	}
	may, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	Check(t, err)
	if may == 0 {
		return nil
	}
	return map[string]string{"OOMScore": "containerd-shim-runsc-v1 gives itself and the calls of runsc an OOM score of -999, if the kernel allows it"}
}

// OtherPlatform checks that a target of gVisor's platform kvm cannot be opened if its runsc ignores the platform. The session's
// engines must be private or none. TestMain must call Main.
func OtherPlatform(t *testing.T, d Opener, name string, s engine.Session) {
	t.Helper()
	rival := impostor(t, &s, name, withoutKVM)
	Open(t, d, name, s)
	_, err := open(t, d, rival, s)
	if err == nil || !strings.Contains(err.Error(), "holds no virtual machine of KVM") {
		t.Errorf("%s with a runsc that runs on systrap: %v; want a refusal", name, err)
	}
}
