package workload

import (
	"fmt"
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

// NginxConfiguration configures one process that serves dir, accepts bodies of any size at NginxPost, writes only below /tmp,
// keeps files and connections open, and logs only warnings and errors. The process stays root, because the image does not have Debian's other users.
func NginxConfiguration(dir string) string {
	return nginxConfiguration(dir, strconv.Itoa(NginxPort), "warn")
}

// IdleNginxConfiguration is NginxConfiguration for a socket that no other container has, and for a log whose first line follows the
// start.
func IdleNginxConfiguration(dir string) string {
	return nginxConfiguration(dir, "unix:/tmp/nginx.sock", "notice")
}

// NginxListening is a part of the first line of IdleNginxConfiguration's log. nginx writes it when its sockets listen.
const NginxListening = "event method"

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
