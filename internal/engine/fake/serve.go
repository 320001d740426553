package fake

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// server is the web server of the probe's command serve. On the host's network it is a real one on the loopback interface. In a
// network of its own no client could reach it, so it does not exist.
type server struct {
	port  int
	http  *http.Server
	ended chan struct{}
}

func serve(n engine.Network, port int) (*server, error) {
	if n != engine.HostNet {
		if port == 0 {
			port = 8080
		}
		return &server{port: port}, nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen on the loopback interface: %w", err)
	}
	s := &server{
		port:  listener.Addr().(*net.TCPAddr).Port,
		ended: make(chan struct{}),
		http: &http.Server{
			ReadHeaderTimeout: 10 * time.Second,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "touchstone\n")
			}),
		},
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener) // it always returns an error after close
	}()
	return s, nil
}

// close accepts nil, the server of any other process.
func (s *server) close() {
	if s == nil || s.http == nil {
		return
	}
	_ = s.http.Close()
	<-s.ended
}
