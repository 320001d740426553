package programs

import (
	"fmt"
	"net/netip"
	"path"
	"strconv"
)

// Nginx is the path of nginx in the workload image.
const Nginx = "/usr/sbin/nginx"

var nginxTool = Tool{Name: "nginx", Packages: []string{"nginx-light"}, Files: []string{Nginx, "/etc/nginx/mime.types"}}

// NginxPort is the port of nginx.
const NginxPort = 8080

// NginxConfig is the name of the configuration in the directory with the files.
const NginxConfig = "nginx.conf"

// NginxServer calls nginx for the files in a directory of the container, which also contains the configuration. nginx exits
// with code 0 on SIGTERM.
func NginxServer(dir string) []string {
	return []string{Nginx, "-e", "stderr", "-c", path.Join(dir, NginxConfig)}
}

// NginxPost is a path for requests with a body. nginx discards the body and answers NginxAnswer, like the server of Ethr.
const (
	NginxPost   = "/post"
	NginxAnswer = "OK."
)

// The files of the web server that its clients fetch, by their paths in URLs.
const (
	SmallFile  = "/small"
	SmallBytes = 1
	LargeFile  = "/large"
	LargeBytes = 1 << 20
)

// SentFile is the file that a client sends. It has SentBytes, the default buffer of Ethr.
const (
	SentFile  = "/sent"
	SentBytes = 16 << 10
)

// WebFiles are the files for NginxServer in a directory, by their names after the directory's. The server listens at NginxPort of all
// addresses, or only at an address if it is valid.
func WebFiles(dir string, address netip.AddrPort) map[string][]byte {
	listen := strconv.Itoa(NginxPort)
	if address.IsValid() {
		listen = address.String()
	}
	return map[string][]byte{
		SmallFile: make([]byte, SmallBytes), LargeFile: make([]byte, LargeBytes), SentFile: make([]byte, SentBytes),
		"/" + NginxConfig: []byte(nginxConfiguration(dir, listen, "warn")),
	}
}

// IdleNginxConfiguration configures nginx as WebFiles does, but for a socket that no other container has, and for a log whose first line follows the
// start.
func IdleNginxConfiguration(dir string) string {
	return nginxConfiguration(dir, "unix:/tmp/nginx.sock", "notice")
}

// NginxListening is a part of the first line of IdleNginxConfiguration's log. nginx writes it when its sockets listen.
const NginxListening = "event method"

// nginxConfiguration configures one process that serves dir, accepts bodies of any size at NginxPost, writes only below /tmp,
// keeps files and connections open, and logs only messages of a level and above. The process stays root, because the image does not have
// Debian's other users.
func nginxConfiguration(dir, listen, level string) string {
	return fmt.Sprintf(`daemon off;
master_process off;
user root root;
pid /tmp/nginx.pid;
error_log stderr %s;
events { worker_connections 64; }
http {
  access_log off;
  default_type application/octet-stream;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  open_file_cache max=16;
  client_max_body_size 0;
  client_body_temp_path /tmp/nginx-body;
  proxy_temp_path /tmp/nginx-proxy;
  fastcgi_temp_path /tmp/nginx-fastcgi;
  uwsgi_temp_path /tmp/nginx-uwsgi;
  scgi_temp_path /tmp/nginx-scgi;
  server {
    listen %s;
    root %s;
    location = %s { return 200 "%s"; }
  }
}
`, level, listen, dir, NginxPost, NginxAnswer)
}
