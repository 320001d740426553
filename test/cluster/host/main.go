// Command cluster-host has the parts of scripts/cluster.sh that a shell lacks: it makes the certificates of a cluster, connects the cluster's network
// with a port of this machine, and waits for the API. It is a small program of its own, because its forwarder runs as long as the cluster:
// in the program of test/kube it would take 90 MB of memory.
//
//	cluster-host certificates DIR SERVER FILE=COMMON_NAME[/ORGANIZATION][@HOST,…]…
//	cluster-host listen FILE COMMAND…
//	cluster-host forward FD ADDRESS
//	cluster-host await URL AUTHORITY
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster-host:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) >= 4 && args[0] == "certificates":
		return certificates(args[1], args[2], args[3:])
	case len(args) >= 3 && args[0] == "listen":
		return listen(args[1], args[2:])
	case len(args) == 3 && args[0] == "forward":
		return forward(args[1], args[2])
	case len(args) == 3 && args[0] == "await":
		return await(args[1], args[2])
	}
	return errors.New("usage: certificates DIR SERVER FILE=COMMON_NAME[/ORGANIZATION][@HOST,…]…, listen FILE COMMAND…, forward FD ADDRESS, or await URL AUTHORITY")
}
