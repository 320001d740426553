package engine

import "github.com/touchstone-bench/touchstone/internal/monitor"

// Kind classifies engines by the layers between Touchstone and a program.
type Kind string

// The kinds of engines, from the inside out.
const (
	HostProcess Kind = "native"  // a process of the host, without a container
	BareRuntime Kind = "runtime" // Touchstone calls the runtime itself
	FullEngine  Kind = "engine"  // an engine, with its daemon, shim or monitor, calls the runtime
)

// Description declares the facts about an engine that the rest of Touchstone needs: the accounting of cost, the checks of a
// plan, the selection of targets and the layers of a report. No other package knows an engine by name.
type Description struct {
	// Name is the engine's name in targets. It is also the key of its socket in a plan and in Session.Sockets.
	Name string
	Kind Kind
	// Socket reports that a plan may name the socket of the user's own engine, which also selects its targets.
	Socket bool
	// CRI reports that the engine speaks CRI, so that --cri can name its socket.
	CRI bool
	// AddressVariable is the environment variable with the address of the user's own daemon, such as DOCKER_HOST.
	// Users set it for other purposes too, so an address alone does not select the engine's targets.
	AddressVariable string
	// Programs are the engine's own programs, by component of the cost. The runtimes' programs are declared in package
	// runtimes.
	Programs monitor.Programs
}
