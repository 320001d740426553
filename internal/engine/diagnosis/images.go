package diagnosis

// busyRegistry are the signs of a registry that may serve the next request, and of another pull of the same image.
const busyRegistry = `[^\n]*(?:locked: unavailable|429 Too Many|toomanyrequests|\b50[0234] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time))`

// noPause are the messages of engines that cannot pull their pause image.
var noPause = match(
	`failed to (?:get|start) sandbox (?:container )?image "(?P<image>[^"]+)"`,      // containerd
	`pod sandbox[^\n]*initializing source docker://(?P<image>[^\s"]+?): `,          // CRI-O
	`(?:failed pulling|unable to pull sandbox) image "(?P<image>[^"]*pause[^"]*)"`, // cri-dockerd
)

// images are images that an engine cannot pull.
var images = []rule{
	{
		patterns:  match(`(?:sandbox|pause)[^\n]*` + busyRegistry),
		cause:     "the registry of the pause image is busy",
		advice:    "repeat the run later" + orManaged,
		transient: true,
	},
	{
		patterns: noPause,
		when:     isOf("containerd"),
		cause:    "containerd has no pause image and cannot pull ${image}",
		advice:   "import it: ctr -n k8s.io images import FILE, from a machine with ctr -n k8s.io images export FILE ${image}" + orManaged,
		general:  true,
	},
	{
		patterns: noPause,
		when:     isOf("docker"), // cri-dockerd
		cause:    "Docker has no pause image and cannot pull ${image}",
		advice:   "import it: docker load -i FILE, from a machine with docker save -o FILE ${image}",
		general:  true,
	},
	{
		patterns: noPause,
		cause:    "${engine} has no pause image and cannot pull ${image}",
		advice:   "import it: podman load -i FILE, from a machine with podman save -o FILE ${image}" + orManaged,
		general:  true,
	},
	{
		patterns: match(`server gave HTTP response to HTTPS client`),
		when:     isOf("containerd"),
		cause:    "containerd asks the run's registry ${registry} by TLS: a hosts.toml for all registries says so",
		advice:   "remove certs.d/_default/hosts.toml from its configuration" + orManaged,
	},
	{
		patterns: match(`server gave HTTP response to HTTPS client`),
		when:     isOf("docker"),
		cause:    "Docker asks the run's registry ${registry} by TLS",
		advice:   `add "insecure-registries": ["127.0.0.0/8"] to /etc/docker/daemon.json and restart Docker` + orManaged,
	},
	{
		patterns: match(`server gave HTTP response to HTTPS client`),
		cause:    "${engine} asks the run's registry ${registry} by TLS",
		advice:   `let it pull from ${registry} without TLS: a [[registry]] with location = "127.0.0.1" and insecure = true in /etc/containers/registries.conf.d`,
		general:  true,
	},
	{
		patterns: match(`Source image rejected: [^\n]*`, `is rejected by policy`),
		cause:    "the signature policy of ${engine} forbids images of the run's registry ${registry}",
		advice:   `allow them: {"docker": {"127.0.0.1": [{"type": "insecureAcceptAnything"}]}} below "transports" in /etc/containers/policy.json` + orManaged,
	},
	{
		patterns: match(`open (?P<file>\S*/policy\.json): no such file or directory`),
		cause:    "${engine} has no signature policy",
		advice:   `install the package containers-common, or write {"default": [{"type": "insecureAcceptAnything"}]} to ${file}`,
	},
	{
		patterns: match(`registry (?P<host>\S+) is blocked in (?P<file>\S+)`),
		cause:    "${file} blocks the run's registry",
		advice:   "remove blocked = true for ${host} from ${file}" + orManaged,
	},
	{
		// The run's registry has a loopback address, so another host in a URL with its path is a mirror.
		patterns: match(`(?P<url>https?://(?P<host>[^/\s"]+)/[^\s"]*touchstone/[^\s"]*)`, `(?P<url>https?://(?P<host>[^/\s"]+)/[^\s"]*[?&]ns=127\.0\.0\.1[^\s"]*)`),
		when:     func(f Facts) bool { return f.Registry != "" },
		cause:    "${engine} asks the mirror ${host} for images of the run's registry ${registry}",
		advice:   "let it ask ${registry} itself: remove the mirror for all registries from its configuration" + orManaged,
		refine:   mirror,
	},
}

// orManaged is the alternative to an engine of the user.
const orManaged = ", or use --managed for a private engine"

// mirror keeps the rule for hosts other than the run's registry.
func mirror(f Facts, values map[string]string, cause, advice string) (string, string) {
	if values["host"] == f.Registry {
		return "", ""
	}
	return cause, advice
}
