// Touchstone measures the cost of container runtimes on this machine.
package main

import (
	"os"

	"github.com/touchstone-bench/touchstone/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
