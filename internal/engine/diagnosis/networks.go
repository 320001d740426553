package diagnosis

// networks are the networks of engines.
var networks = []rule{
	{
		patterns: match(`netavark[^\n]*nft[^\n]*No such file or directory \(os error 2\)`, `netavark[^\n]*unable to execute nft`),
		cause:    "Podman's netavark does not find the program nft",
		advice:   "install the package nftables",
	},
	{
		patterns: match(`netavark[^\n]*No such file or directory \(os error 2\)`),
		cause:    "Podman's netavark does not find the program iptables",
		advice:   "install the package iptables",
		general:  true,
	},
	{
		patterns: match(`(?i)failed to find plugin "(?P<plugin>[^"]+)" in path \[(?P<dirs>[^\]]*)\]`),
		cause:    "the CNI plug-in ${plugin} is in none of ${dirs}",
		advice:   "install the package containernetworking-plugins, or set the directory of the plug-ins in the configuration of ${engine}",
	},
	{
		patterns: match(
			`(?i)can't initialize ip6?tables table`, `(?i)could not fetch rule set generation id`, `(?i)extension \w+ revision \d+ not supported, missing kernel module`,
			`(?i)table does not exist \(do you need to insmod`,
		),
		cause:  "the kernel has no packet filter for iptables, or does not allow it here",
		advice: "load its modules: modprobe -a ip_tables iptable_nat nf_tables nft_masq",
	},
	{
		patterns: match(`NetworkReady`, `(?i)cni plugin not initialized`),
		when:     func(f Facts) bool { return !f.Private },
		cause:    "the network of ${engine} is not configured",
		advice:   "write a CNI network into /etc/cni/net.d" + orManaged,
	},
}
