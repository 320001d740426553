// Touchstone tells what a container runtime costs on this machine.
package main

import (
	"os"

	"github.com/touchstone-bench/touchstone/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
